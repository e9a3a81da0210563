// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#define _GNU_SOURCE
#include "arena.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../common/verbs.h"

/* The finaliser of SplitMix64: every input gives an unrelated word. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

uint64_t stream_word(uint64_t seed)
{
	return mix(seed + 0x9e3779b97f4a7c15);
}

/* The bytes of a stream, from a position that is a multiple of 8. */
static void stream(uint64_t seed, uint64_t position, uint8_t *out, size_t length)
{
	uint64_t n = position / 8;

	while (length) {
		uint64_t word = mix(seed + 0x9e3779b97f4a7c15 * ++n);
		size_t part = length < 8 ? length : 8;

		memcpy(out, &word, part);
		out += part;
		length -= part;
	}
}

/*
 * Takes the pages away again and again; what is in them stays in the file. Less and
 * less often while nothing moves, so that in the end it does on any machine.
 */
static void *unmap_pages(void *arg)
{
	struct arena *a = arg;
	unsigned int moves = 0, us = FIRST_UNMAP_US;

	for (;;) {
		usleep(us);
		us *= 2;
		if (moves != atomic_load(&a->moves)) {
			moves = atomic_load(&a->moves);
			us = FIRST_UNMAP_US;
		}
		if (madvise(a->memory, ARENA_SIZE, MADV_DONTNEED))
			die("madvise: %s", strerror(errno));
	}
	return NULL;
}

static void *map_on_demand(struct arena *a)
{
	int fd = memfd_create("arena", 0);

	if (fd < 0 || ftruncate(fd, ARENA_SIZE))
		die("no memory");
	a->memory = mmap(NULL, ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (a->memory == MAP_FAILED)
		die("no memory");
	if (pthread_create(&a->unmapper, NULL, unmap_pages, a))
		die("no thread");
	return a->memory;
}

void arena_new(struct arena *a, struct ibv_pd *pd, uint64_t seed, bool demand)
{
	int access = ALL_ACCESS | (demand ? IBV_ACCESS_ON_DEMAND : IBV_ACCESS_MW_BIND);

	a->demand = demand;
	a->memory = demand ? map_on_demand(a) :
		    mmap(NULL, ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	a->wanted = mmap(NULL, ARENA_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (a->memory == MAP_FAILED || a->wanted == MAP_FAILED)
		die("no memory");
	stream(seed, 0, a->memory, ARENA_SIZE);
	memcpy(a->wanted, a->memory, ARENA_SIZE);
	a->mr[0] = ibv_reg_mr(pd, a->memory, ARENA_SIZE, access);
	if (!a->mr[0]) {
		access &= ~IBV_ACCESS_MW_BIND;
		a->mr[0] = ibv_reg_mr(pd, a->memory, ARENA_SIZE, access);
	}
	a->mr[1] = ibv_reg_mr(pd, a->memory + 13, ARENA_SIZE - 13 - 101, access);
	if (!a->mr[0] || !a->mr[1])
		die("cannot register memory: %s", strerror(errno));
}

void arena_free(struct arena *a)
{
	for (int i = 0; i < ARENA_MRS; i++)
		if (ibv_dereg_mr(a->mr[i]))
			die("cannot deregister memory");
	if (a->demand) {
		pthread_cancel(a->unmapper);
		pthread_join(a->unmapper, NULL);
	}
	munmap(a->memory, ARENA_SIZE);
	munmap(a->wanted, ARENA_SIZE);
}

void arena_expect(struct arena *a, const struct segment *s, int n, uint32_t length,
		  uint64_t seed)
{
	uint8_t chunk[4096];
	uint32_t used = 0;	/* within the segment */

	for (uint32_t position = 0; position < length; position += sizeof(chunk)) {
		uint32_t have = length - position, at = 0;

		if (have > sizeof(chunk))
			have = sizeof(chunk);
		stream(seed, position, chunk, have);
		while (at < have) {
			uint32_t part;

			while (used == s->length) {
				if (--n == 0)
					die("segments shorter than the message");
				s++;
				used = 0;
			}
			part = s->length - used;
			if (part > have - at)
				part = have - at;
			memcpy(a->wanted + s->offset + used, chunk + at, part);
			used += part;
			at += part;
		}
	}
}

void arena_fill(struct arena *a, const struct segment *s, int n, uint32_t length,
		uint64_t seed)
{
	arena_expect(a, s, n, length, seed);
	for (int i = 0; i < n; i++)
		memcpy(a->memory + s[i].offset, a->wanted + s[i].offset, s[i].length);
}

struct mismatch arena_compare(struct arena *a, size_t length)
{
	struct mismatch m = { .count = 0 };

	if (!memcmp(a->memory, a->wanted, length))
		return m;
	for (size_t i = 0; i < length; i++) {
		if (a->memory[i] == a->wanted[i])
			continue;
		if (!m.count++) {
			m.offset = i;
			m.got = a->memory[i];
			m.wanted = a->wanted[i];
		}
	}
	return m;
}
