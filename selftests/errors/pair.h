/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* pair.h - two devices in one process, and a queue pair on each, connected. */
#ifndef SELFTEST_PAIR_H
#define SELFTEST_PAIR_H

#include "../common/tap.h"
#include "../common/verbs.h"

#define SIZE 65536
#define DEPTH 16
#define ENTRIES 32		/* of a scatter/gather list */

struct side {
	struct device dev;
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
	struct address address;
};

struct pair {
	struct side a;
	struct side b;
	struct path path;
	enum ibv_qp_type type;
};

/** pair_open() - open both devices; ends the process if that fails */
void pair_open(struct pair *p, char **names, const int *gid_indices);

/** pair_start() - queues and memory for a test point, in RESET; fails the test point */
bool pair_start(struct pair *p, enum ibv_qp_type type, bool srq);

/** pair_connect() - both queue pairs to RTS, with p->path; fails the test point */
bool pair_connect(struct pair *p);

/** pair_up() - pair_start() and pair_connect() with the default path */
bool pair_up(struct pair *p, enum ibv_qp_type type);

/** pair_stop() - destroy what pair_start() made; fails the test point */
bool pair_stop(struct pair *p);

/** side_recv() - post a receive request. Return: 0 or an errno */
int side_recv(struct side *s, uint64_t wr_id, uint32_t length);

/** side_send() - post a SEND. Return: 0 or an errno */
int side_send(struct side *s, uint64_t wr_id, uint32_t length);

/** side_post() - post a request of any kind to the other side's memory. Return: 0 or an errno */
int side_post(struct side *s, struct side *to, enum ibv_wr_opcode opcode, uint64_t wr_id,
	      uint32_t length, uint64_t offset, uint32_t rkey);

/**
 * completes() - expect the next completion
 * @cq: polled, for HANG_MS at most
 * @wr_id: of the request
 * @status: expected
 *
 * Fails the test point unless it comes.
 */
bool completes(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status);

/** no_more() - expect an empty completion queue */
bool no_more(struct ibv_cq *cq);

/** becomes() - wait for a queue pair's state; fails the test point */
bool becomes(struct ibv_qp *qp, enum ibv_qp_state state);

/** event_is() - expect the next asynchronous event within seconds; fails the test point */
bool event_is(struct device *dev, enum ibv_event_type type);

/** drop_events() - forget the asynchronous events so far */
void drop_events(struct device *dev);

/** talks() - a message goes from a to b: both still work */
bool talks(struct pair *p);

/* The groups of test points. */
void completion_cases(struct pair *p);
void state_cases(struct pair *p);
void resource_cases(struct pair *p);
void event_cases(struct pair *p);
void race_cases(struct pair *p);
void stream_cases(struct pair *p);
void garbage_cases(struct pair *p);

/* One test point: the call is its body, which says whether all went well. */
#define CASE(p, body, ...)					\
	do {							\
		if (tap_begin(__VA_ARGS__)) {			\
			(void)(body);				\
			pair_stop(p);				\
			tap_end();				\
		}						\
	} while (0)

#endif
