// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * clock - gettimeofday() from the time stamp counter, to be preloaded
 *
 * perftest times by the time stamp counter, and finds its frequency by comparing it with
 * gettimeofday() and /proc/cpuinfo.  In a guest without a vDSO, or on a busy machine, that
 * comparison is too noisy for it, and it reports zeros.  With the frequency found here,
 * where the two clocks are read side by side until nothing comes between, the comparison
 * always succeeds.  What perftest measures is not touched: it does not call
 * gettimeofday() while it does.
 */
#include <stdint.h>
#include <sys/time.h>
#include <time.h>
#include <x86intrin.h>

#define NS_PER_SEC 1000000000ULL
#define CALIBRATION_NS 20000000
#define ATTEMPTS 50

static uint64_t start_ticks;
static double ticks_per_us;

/* Both clocks at one moment: of several attempts the one that took the fewest ticks */
static uint64_t both_clocks(uint64_t *ns)
{
	uint64_t shortest = UINT64_MAX, ticks = 0;

	for (int i = 0; i < ATTEMPTS; i++) {
		struct timespec now;
		uint64_t before = __rdtsc(), took;

		clock_gettime(CLOCK_MONOTONIC, &now);
		took = __rdtsc() - before;
		if (took >= shortest)
			continue;
		shortest = took;
		ticks = before + took / 2;
		*ns = now.tv_sec * NS_PER_SEC + now.tv_nsec;
	}
	return ticks;
}

__attribute__((constructor)) static void calibrate(void)
{
	const struct timespec pause = { .tv_nsec = CALIBRATION_NS };
	uint64_t start_ns, end_ns, end_ticks;

	start_ticks = both_clocks(&start_ns);
	nanosleep(&pause, NULL);
	end_ticks = both_clocks(&end_ns);
	ticks_per_us = (end_ticks - start_ticks) * 1000.0 / (end_ns - start_ns);
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	uint64_t us = (__rdtsc() - start_ticks) / ticks_per_us;

	(void)zone;
	now->tv_sec = us / 1000000;
	now->tv_usec = us % 1000000;
	return 0;
}
