/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * arena.h - registered memory with a copy of what it ought to hold
 *
 * Every byte of the arena is always accounted for: a transfer's expected effect
 * is applied to the copy, so that comparing the two finds wrong bytes as well as
 * bytes written where nothing should have been.
 */
#ifndef SELFTEST_ARENA_H
#define SELFTEST_ARENA_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#define ARENA_SIZE (36u << 20)
#define ARENA_MRS 2
#define FIRST_UNMAP_US 1000

struct segment {
	uint32_t offset;
	uint32_t length;
};

struct arena {
	uint8_t *memory;
	uint8_t *wanted;
	struct ibv_mr *mr[ARENA_MRS];	/* the second starts and ends off a page */
	bool demand;			/* not pinned, and now and then taken away */
	atomic_uint moves;		/* counts what the transfers come to */
	pthread_t unmapper;
};

struct mismatch {
	uint32_t offset;
	uint32_t count;		/* of wrong bytes; 0: none */
	uint8_t got;
	uint8_t wanted;
};

/** stream_word() - the first eight bytes of a pseudo-random stream */
uint64_t stream_word(uint64_t seed);

void arena_new(struct arena *a, struct ibv_pd *pd, uint64_t seed, bool demand);
void arena_free(struct arena *a);

/** arena_expect() - the first @length bytes of the segments shall hold stream @seed */
void arena_expect(struct arena *a, const struct segment *s, int n, uint32_t length,
		  uint64_t seed);

/** arena_fill() - the same, and put it there */
void arena_fill(struct arena *a, const struct segment *s, int n, uint32_t length,
		uint64_t seed);

/** arena_compare() - compare the first @length bytes of the arena with its copy */
struct mismatch arena_compare(struct arena *a, size_t length);

#endif
