// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Simulation, in user space, of senders that share a bottleneck, with the driver's own
 * dcqcn.c.  The bottleneck marks like RED; every packet is acknowledged, and a marked one
 * answered with a CNP.  Time is simulated: nothing depends on the machine.
 */
#include "compat.h"
#include <stdio.h>
#include <stdlib.h>
#include "dcqcn.h"

#define MOST_SENDERS	8
#define LINE		8192		/* packets on their way, a power of two */
#define HEADERS		58
#define NEVER		INT64_MAX
#define SECOND		1000000000ll
#define CNP_NS		50000		/* between CNPs to one sender */
#define AHEAD_NS	500000		/* how far ahead of its time a packet is sent */
#define PROBABILITY	0.1

struct scene {
	const char *name;
	u32 senders;
	double mbit;
	u32 mtu;
	u32 base_us;		/* round trip without a queue */
	double min;		/* queue in which marking begins; at three times that all are */
	double apart;		/* seconds between the senders' starts */
	double seconds;		/* first half: to settle, second half: measured */
};

static const struct scene scenes[] = {
	{ "20 Mbit/s, packets of 4096", 2, 20, 4096, 200, 40e3, 0, 20 },
	{ "20 Mbit/s, packets of 4096", 8, 20, 4096, 200, 40e3, 0, 20 },
	{ "20 Mbit/s, packets of 1024", 2, 20, 1024, 200, 40e3, 0, 20 },
	{ "20 Mbit/s, packets of 1024", 8, 20, 1024, 200, 40e3, 0, 20 },
	{ "200 Mbit/s, packets of 4096", 2, 200, 4096, 500, 125e3, 0, 20 },
	{ "200 Mbit/s, packets of 1024", 8, 200, 1024, 500, 125e3, 1, 20 },
	{ "2 Gbit/s, packets of 4096", 2, 2000, 4096, 100, 250e3, 0.2, 6 },
	{ "2 Gbit/s, packets of 4096", 8, 2000, 4096, 100, 250e3, 0.2, 6 },
	{ "10 Gbit/s, packets of 1024", 8, 10000, 1024, 50, 300e3, 0, 3 },
};

static const struct sroce_congestion_parameters defaults = {
	.rpg_time_reset = 300, .rpg_byte_reset = 32767, .rpg_threshold = 5, .rpg_ai_rate = 5,
	.rpg_hai_rate = 50, .rpg_min_rate = 1, .rpg_min_dec_fac = 50,
	.rate_reduce_monitor_period = 4, .initial_alpha_value = 1023, .dce_tcp_g = 960,
	.dce_tcp_rtt = 55, .clamp_tgt_rate = 1,
};

struct sender {
	struct sroce_dcqcn c;
	bool limited;
	s64 departs, wake;	/* of the next packet; when to look again */
	s64 timed, told;	/* when the round trip was measured, a CNP sent */
	u32 srtt, under_way;
	u64 sent;		/* bytes that got through in the second half */
};

struct packet {
	u32 from;
	bool marked;
	s64 sent, answered;
};

static struct sender senders[MOST_SENDERS];
static struct packet line[LINE];
static u32 acked, served, last;		/* of the line: what waits is from served to last */
static const struct scene *scene;
static s64 now, half, finished;
static double average, backlog;		/* bytes */
static u64 lost;
static u32 since, random_state;
static double threshold;
static int failed, number;

static void ok(int good, const char *what, const char *text)
{
	printf("%sok %d - %u senders, %s: %s\n", good ? "" : "not ", ++number, scene->senders,
	       scene->name, what);
	if (!good)
		printf("#   %s\n", text);
	failed += !good;
}

static double chance(void)
{
	random_state = random_state * 1664525 + 1013904223;
	return random_state / 4294967296.0;
}

static u32 bytes(void)
{
	return scene->mtu + HEADERS;
}

static s64 takes(void)
{
	return bytes() * 8e3 / scene->mbit;
}

/* RED's average, and its even spacing of marks */
static bool marks(void)
{
	average += (backlog - average) / (scene->min / 2 / bytes());
	if (average < scene->min) {
		since = 0;
		return false;
	}
	if (average >= 3 * scene->min)
		return true;
	if (!since++)
		threshold = chance();
	if (PROBABILITY * (average - scene->min) / (2 * scene->min) * since < threshold)
		return false;
	since = 0;
	return true;
}

static void transmit(u32 from)
{
	struct packet *p = &line[last % LINE];

	if (backlog + bytes() > 20 * scene->min || last - acked == LINE) {
		lost += now > half;
		senders[from].wake = now + SECOND / 10;	/* as if a timer had noticed */
		return;
	}
	*p = (struct packet){ .from = from, .marked = marks(), .sent = now };
	if (served == last)
		finished = now + takes();
	last++;
	backlog += bytes();
	senders[from].under_way++;
}

/* What a sender may do now: as congestion.c and send.c have it */
static void run(u32 n)
{
	struct sender *s = &senders[n];

	s->wake = NEVER;
	while (s->wake == NEVER) {
		if (s->limited)
			sroce_dcqcn_advance(&s->c, &defaults, now);
		else if (s->under_way >= 128)
			return;
		if (s->limited && s->under_way > (s->c.window + scene->mtu - 1) / scene->mtu) {
			s->c.full_at = now;
			return;
		}
		if (s->limited && s->departs - now >= AHEAD_NS) {
			s->c.full_at = now;
			s->wake = s->departs;
			return;
		}
		transmit(n);
		if (s->departs < now)
			s->departs = now;
		if (s->limited) {
			s->departs += bytes() * 1e9 / sroce_dcqcn_rate(&s->c, &defaults);
			sroce_dcqcn_sent(&s->c, &defaults, bytes());
		}
	}
}

static void notified(struct sender *s)
{
	s->told = now;
	s->c.mtu = scene->mtu;
	s->c.rtt = s->srtt;
	s->c.period = s->srtt;
	if (s->limited)
		sroce_dcqcn_notified(&s->c, &defaults, now);
	else
		sroce_dcqcn_start(&s->c, &defaults, (u64)s->under_way * scene->mtu, now);
	s->limited = true;
}

static void answered(const struct packet *p)
{
	struct sender *s = &senders[p->from];
	u32 us = (now - p->sent) / 1000;

	s->under_way--;
	if (!s->srtt) {
		s->srtt = us;
	} else if (now - s->timed >= s->srtt * 1000ll) {
		s->srtt = (7 * s->srtt + us) / 8;
		s->timed = now;
	}
	s->c.rtt = s->srtt;
	s->c.period = s->srtt;
	if (now > half)
		s->sent += bytes();
	if (p->marked && now - s->told >= CNP_NS)
		notified(s);
	run(p->from);
}

/* The next thing that happens */
static void step(void)
{
	s64 ends = served != last ? finished : NEVER;
	s64 answer = acked != served ? line[acked % LINE].answered : NEVER;
	u32 n, first = 0;

	for (n = 1; n < scene->senders; n++)
		if (senders[n].wake < senders[first].wake)
			first = n;
	if (ends <= answer && ends <= senders[first].wake) {
		now = ends;
		line[served++ % LINE].answered = now + scene->base_us * 1000ll;
		backlog -= bytes();
		finished = now + takes();
	} else if (answer <= senders[first].wake) {
		now = answer;
		answered(&line[acked++ % LINE]);
	} else {
		now = senders[first].wake;
		run(first);
	}
}

static void play(void)
{
	double sum = 0, squares = 0, queue = 0, use, jain;
	char text[128];
	s64 before;
	u32 n;

	memset(senders, 0, sizeof(senders));
	acked = served = last = since = 0;
	average = backlog = now = lost = 0;
	random_state = 1;
	half = scene->seconds / 2 * SECOND;
	for (n = 0; n < scene->senders; n++) {
		senders[n].wake = n * scene->apart * SECOND;
		senders[n].told = -CNP_NS;
	}
	while (now < 2 * half) {
		double waits = backlog;

		before = now;
		step();
		if (before > half)
			queue += waits * (now - before);
	}
	queue /= half;
	for (n = 0; n < scene->senders; n++) {
		double mbit = senders[n].sent * 8e3 / half;

		sum += mbit;
		squares += mbit * mbit;
	}
	use = sum / scene->mbit;
	jain = sum * sum / (scene->senders * squares);
	snprintf(text, sizeof(text), "use %.3f, Jain %.3f, queue %.0f kB, %llu lost", use, jain,
		 queue / 1000, (unsigned long long)lost);
	ok(use >= 0.9, "90 % of the bottleneck are used", text);
	ok(jain >= 0.95, "shares are even", text);
	ok(queue <= 3 * scene->min, "the queue stays where marking begins", text);
	ok(!lost, "nothing is lost once it has settled", text);
	if (getenv("VERBOSE"))
		printf("#   %s\n", text);
}

int main(void)
{
	for (scene = scenes; scene < scenes + sizeof(scenes) / sizeof(scenes[0]); scene++)
		play();
	printf("1..%d\n%d passed, %d failed, 0 skipped\n", number, number - failed, failed);
	return !!failed;
}
