/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * integrity.h - what the client, which chooses and checks, says to the server
 *
 * The client connects a control socket and sends requests, each answered by one
 * reply. Both ends are of one build, so structures go as they are.
 */
#ifndef SELFTEST_INTEGRITY_H
#define SELFTEST_INTEGRITY_H

#include "../common/verbs.h"
#include "arena.h"

#define MAX_BATCH 64
#define MAX_SEGMENTS 32
#define MAX_QPS 8
#define QKEY 0x11770011
#define GRH 40

enum operation {
	SEND, SEND_IMM, WRITE, WRITE_IMM, READ, CMP_SWAP, FETCH_ADD, SEND_INV, OPERATIONS
};

enum {
	FENCE = 1,
	SOLICITED = 2,
	INLINE = 4,
	UNSIGNALLED = 8,
	LOCAL_READY = 16,	/* the local bytes are there already or come from an earlier one */
	REMOTE_READY = 32,	/* the same for the remote bytes of READ and atomics */
	GRH_APART = 64,		/* UD: the GRH in a scatter entry of its own */
};

/* One message, or one atomic, and the memory at both ends. */
struct transfer {
	uint8_t op;
	uint8_t qp;		/* index */
	uint8_t flags;
	uint8_t n_local;
	uint8_t n_remote;
	uint8_t remote_mr;
	uint32_t rkey;		/* if not 0, instead of the arena's */
	uint32_t length;
	uint32_t imm;
	uint64_t seed;		/* of the bytes moved */
	uint64_t original;	/* atomics: before, operands and after */
	uint64_t operand;
	uint64_t swap;
	uint64_t after;
	struct segment local[MAX_SEGMENTS];
	struct segment remote[MAX_SEGMENTS];
};

enum request_kind {
	SETUP, CONNECT, PREPARE, FINISH, ARM, EVENTS, BIND, TEARDOWN,
};

struct request {
	enum request_kind kind;
	union {
		struct {
			enum ibv_qp_type type;
			int n_qps;
			bool srq;
		} setup;
		struct {
			struct address peer[MAX_QPS];
			struct path path;
		} connect;
		struct {
			int n;		/* so many struct transfer follow */
		} prepare;
		struct {
			int receives;
			int ms;		/* wait so long for them */
			uint32_t used;	/* bytes of the arena to compare */
			bool uc_writes;	/* that may still be on their way */
		} finish;
		struct {
			int solicited_only;
		} arm;
		struct {
			int ms;		/* wait so long for the first */
		} events;
		struct {
			struct segment where;
		} bind;
	};
};

struct reply {
	int error;		/* errno */
	union {
		struct {
			struct address address[MAX_QPS];
			uint64_t memory;
			uint32_t rkey[ARENA_MRS];
			uint32_t max_sge;
		} setup;
		struct {
			int receives;
			struct ibv_wc wc[MAX_BATCH];
			struct mismatch mismatch;
			char grh_fault[128];
		} finish;
		struct {
			int count;
		} events;
		struct {
			uint32_t rkey;
		} bind;
	};
};

/* One end's objects for one test point. */
struct end {
	struct device dev;
	struct arena arena;
	enum ibv_qp_type type;
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	struct ibv_srq *srq;
	struct ibv_mw *mw;
	struct ibv_qp *qp[MAX_QPS];
	struct address address[MAX_QPS];
	int n_qps;
	uint32_t max_inline;
	int max_sge;
};

/** end_setup() - create completion queues and queue pairs. Return: 0 or an errno */
int end_setup(struct end *e, enum ibv_qp_type type, int n_qps, bool srq);

/** end_connect() - connect all queue pairs. Return: 0 or an errno */
int end_connect(struct end *e, const struct address *peer, const struct path *path);

/** end_teardown() - destroy what end_setup() made. Return: 0 or an errno */
int end_teardown(struct end *e);

/** takes_receive() - the operation consumes a receive request of the responder */
static inline bool takes_receive(enum operation op)
{
	return op == SEND || op == SEND_IMM || op == WRITE_IMM || op == SEND_INV;
}

/** serve() - answer the requests of one client until it closes */
void serve(struct end *e, int control);

/** run_cases() - the client: every test point. Return: exit status */
int run_cases(struct end *e, int control, uint64_t seed);

#endif
