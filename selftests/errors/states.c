// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The queue pair state machine and its attributes (IBA 10.3.1, 11.2.5.2). */
#include "pair.h"

#include <errno.h>

static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

static struct pair *pair;

/* Bring side a's queue pair to a state by legal steps. */
static bool bring_to(enum ibv_qp_state state)
{
	struct side *s = &pair->a;
	int error = qp_to(s->qp, IBV_QPS_RESET);

	/* Linux lets no queue pair go from RESET to ERR */
	if (!error && state >= IBV_QPS_INIT)
		error = qp_to_init(&s->dev, s->qp, pair->path.access, 0x1234);
	if (!error && state >= IBV_QPS_RTR && state != IBV_QPS_ERR)
		error = qp_to_rtr(&s->dev, s->qp, &pair->b.address, &pair->path);
	if (!error && state >= IBV_QPS_RTS && state != IBV_QPS_ERR)
		error = qp_to_rts(s->qp, 1, &pair->path);
	if (!error && (state == IBV_QPS_SQD || state == IBV_QPS_ERR))
		error = qp_to(s->qp, state);
	expect(!error, "to %s: %s", names[state], strerror(error));
	expect(qp_state(s->qp) == (int)state, "state is %d, expected %s", qp_state(s->qp),
	       names[state]);
	return true;
}

static int step(enum ibv_qp_state to)
{
	struct side *s = &pair->a;

	switch (to) {
	case IBV_QPS_INIT: return qp_to_init(&s->dev, s->qp, pair->path.access, 0x1234);
	case IBV_QPS_RTR: return qp_to_rtr(&s->dev, s->qp, &pair->b.address, &pair->path);
	case IBV_QPS_RTS: return qp_to_rts(s->qp, 1, &pair->path);
	default: return qp_to(s->qp, to);
	}
}

/* Every transition with the attributes that its target takes: legal or EINVAL. */
static bool transitions(enum ibv_qp_type type)
{
	static const enum ibv_qp_state from[] = {
		IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR,
	};

	if (!pair_start(pair, type, false))
		return false;
	for (size_t i = 0; i < sizeof(from) / sizeof(*from); i++) {
		for (enum ibv_qp_state to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++) {
			enum ibv_qp_state f = from[i];
			bool legal = to == IBV_QPS_RESET || to == IBV_QPS_ERR ||
				     (f == IBV_QPS_RESET && to == IBV_QPS_INIT) ||
				     (f == IBV_QPS_INIT && to == IBV_QPS_INIT) ||
				     (f == IBV_QPS_INIT && to == IBV_QPS_RTR) ||
				     (f == IBV_QPS_RTR && to == IBV_QPS_RTS) ||
				     (f == IBV_QPS_RTS && to == IBV_QPS_SQD) ||
				     (f == IBV_QPS_SQD && to == IBV_QPS_SQD);
			int error;

			/* RTS needs other attributes from these than from RTR */
			if (to == IBV_QPS_RTS && (f == IBV_QPS_RTS || f == IBV_QPS_SQD))
				continue;
			/* the specification has it, Linux does not */
			if (f == IBV_QPS_RESET && to == IBV_QPS_ERR)
				continue;
			if (!bring_to(f))
				return false;
			error = step(to);
			expect(!error == legal, "%s to %s: %s, expected %s", names[f], names[to],
			       error ? strerror(error) : "success", legal ? "success" : "EINVAL");
			expect(legal || error == EINVAL, "%s to %s: %s, expected EINVAL",
			       names[f], names[to], strerror(error));
			expect(qp_state(pair->a.qp) == (int)(legal ? to : f),
			       "%s to %s: state is %s then", names[f], names[to],
			       names[qp_state(pair->a.qp)]);
		}
	}
	return true;
}

static struct ibv_qp_attr rtr_attr(void)
{
	return (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = pair->b.address.qpn,
		.rq_psn = 7,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = {
				.dgid = pair->b.address.gid,
				.sgid_index = pair->a.dev.gid_index,
				.hop_limit = 9,
			},
		},
	};
}

#define EVERYTHING ((IBV_QP_DEST_QPN << 1) - 1)
#define RTR_MASK (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | \
		  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_MASK (IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | \
		  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)

static bool refused(struct ibv_qp_attr attr, int mask, const char *what)
{
	int before = qp_state(pair->a.qp);
	int error = ibv_modify_qp(pair->a.qp, &attr, mask);

	expect(error == EINVAL, "%s: %s, expected EINVAL", what,
	       error ? strerror(error) : "success");
	expect(qp_state(pair->a.qp) == before, "%s: refused, but the state changed", what);
	return true;
}

static bool mandatory(void)
{
	static const int rtr[] = {
		IBV_QP_AV, IBV_QP_PATH_MTU, IBV_QP_DEST_QPN, IBV_QP_RQ_PSN,
		IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MIN_RNR_TIMER,
	};
	static const int rts[] = {
		IBV_QP_SQ_PSN, IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY,
		IBV_QP_MAX_QP_RD_ATOMIC,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	char what[64];

	if (!pair_start(pair, IBV_QPT_RC, false))
		return false;
	if (!refused(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT,
		     "INIT without access flags") ||
	    !refused(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS,
		     "INIT without port") ||
	    !refused(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		     IBV_QP_ACCESS_FLAGS | IBV_QP_SQ_PSN, "INIT with SQ PSN"))
		return false;
	if (!bring_to(IBV_QPS_INIT))
		return false;
	for (size_t i = 0; i < sizeof(rtr) / sizeof(*rtr); i++) {
		snprintf(what, sizeof(what), "RTR without attribute %#x", rtr[i]);
		if (!refused(rtr_attr(), RTR_MASK & ~rtr[i], what))
			return false;
	}
	if (!refused(rtr_attr(), RTR_MASK | IBV_QP_TIMEOUT, "RTR with timeout"))
		return false;
	if (!bring_to(IBV_QPS_RTR))
		return false;
	attr = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTS };
	for (size_t i = 0; i < sizeof(rts) / sizeof(*rts); i++) {
		snprintf(what, sizeof(what), "RTS without attribute %#x", rts[i]);
		if (!refused(attr, RTS_MASK & ~rts[i], what))
			return false;
	}
	return refused(attr, RTS_MASK | IBV_QP_PATH_MTU, "RTS with path MTU");
}

static bool values_init(void)
{
	struct ibv_qp_attr good = { .qp_state = IBV_QPS_INIT, .port_num = 1 }, attr;
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;

	if (!pair_start(pair, IBV_QPT_RC, false))
		return false;
	attr = good;
	attr.port_num = 2;
	if (!refused(attr, mask, "port 2"))
		return false;
	attr = good;
	attr.port_num = 0;
	if (!refused(attr, mask, "port 0"))
		return false;
	attr = good;
	attr.pkey_index = 0x7fff;
	if (!refused(attr, mask, "P_Key index 32767"))
		return false;
	attr = good;
	attr.qp_state = 17;
	return refused(attr, mask, "state 17");
}

static bool values_rtr(void)
{
	struct ibv_qp_attr attr;
	int mask = RTR_MASK;

	if (!pair_start(pair, IBV_QPT_RC, false) || !bring_to(IBV_QPS_INIT))
		return false;
	attr = rtr_attr();
	attr.path_mtu = 0;
	if (!refused(attr, mask, "path MTU code 0"))
		return false;
	attr = rtr_attr();
	attr.path_mtu = 6;
	if (!refused(attr, mask, "path MTU code 6"))
		return false;
	attr = rtr_attr();
	attr.ah_attr.is_global = 0;
	if (!refused(attr, mask, "no GRH"))
		return false;
	attr = rtr_attr();
	attr.ah_attr.grh.sgid_index = 255;
	if (!refused(attr, mask, "GID index 255"))
		return false;
	attr = rtr_attr();
	attr.ah_attr.port_num = 3;
	if (!refused(attr, mask, "address vector on port 3"))
		return false;
	attr = rtr_attr();
	attr.max_dest_rd_atomic = 255;
	if (pair->a.dev.attr.max_qp_rd_atom < 255 &&
	    !refused(attr, mask, "max_dest_rd_atomic 255"))
		return false;
	attr = rtr_attr();
	attr.min_rnr_timer = 32;
	return refused(attr, mask, "min_rnr_timer 32");
}

static bool values_rts(void)
{
	struct ibv_qp_attr good = { .qp_state = IBV_QPS_RTS, .timeout = 14 }, attr;

	if (!pair_start(pair, IBV_QPT_RC, false) || !bring_to(IBV_QPS_RTR))
		return false;
	attr = good;
	attr.timeout = 32;
	if (!refused(attr, RTS_MASK, "timeout 32"))
		return false;
	attr = good;
	attr.retry_cnt = 8;
	if (!refused(attr, RTS_MASK, "retry_cnt 8"))
		return false;
	attr = good;
	attr.rnr_retry = 8;
	if (!refused(attr, RTS_MASK, "rnr_retry 8"))
		return false;
	attr = good;
	attr.max_rd_atomic = 255;
	if (pair->a.dev.attr.max_qp_init_rd_atom < 255 &&
	    !refused(attr, RTS_MASK, "max_rd_atomic 255"))
		return false;
	attr = good;
	attr.cur_qp_state = IBV_QPS_RTS;
	return refused(attr, RTS_MASK | IBV_QP_CUR_STATE, "cur_qp_state that is not the current");
}

/* Longer than the port's MTU can carry: refused where there is such an MTU. */
static bool mtu_above_port(void)
{
	struct ibv_qp_attr attr;

	if (!pair_start(pair, IBV_QPT_RC, false) || !bring_to(IBV_QPS_INIT))
		return false;
	if (pair->a.dev.port.active_mtu >= IBV_MTU_4096) {
		tap_skip("the port carries every path MTU");
		return true;
	}
	attr = rtr_attr();
	attr.path_mtu = pair->a.dev.port.active_mtu + 1;
	return refused(attr, RTR_MASK, "path MTU above the port's");
}

/* What was set is told again. */
static bool query(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (!pair_start(pair, IBV_QPT_RC, false))
		return false;
	pair->path = (struct path) {
		.mtu = IBV_MTU_512, .timeout = 13, .retry_cnt = 5, .rnr_retry = 3,
		.min_rnr_timer = 17, .max_rd_atomic = 2, .max_dest_rd_atomic = 4,
		.access = IBV_ACCESS_REMOTE_READ,
	};
	pair->b.address.psn = 0xabcdef;
	if (!bring_to(IBV_QPS_RTS))
		return false;
	expect(!ibv_query_qp(pair->a.qp, &attr, EVERYTHING, &init), "query");
#define IS(field, value) expect(attr.field == (value), #field " is %u, expected %u", \
				(unsigned int)attr.field, (unsigned int)(value))
	IS(qp_state, IBV_QPS_RTS);
	IS(path_mtu, IBV_MTU_512);
	IS(rq_psn, 0xabcdef);
	IS(sq_psn, 1);
	IS(dest_qp_num, pair->b.address.qpn);
	attr.qp_access_flags &= ALL_ACCESS;
	IS(qp_access_flags, IBV_ACCESS_REMOTE_READ);
	IS(timeout, 13);
	IS(retry_cnt, 5);
	IS(rnr_retry, 3);
	IS(min_rnr_timer, 17);
	IS(max_rd_atomic, 2);
	IS(max_dest_rd_atomic, 4);
	IS(port_num, 1);
	IS(pkey_index, 0);
	IS(ah_attr.grh.sgid_index, pair->a.dev.gid_index);
	IS(ah_attr.grh.hop_limit, 64);
#undef IS
	expect(!memcmp(&attr.ah_attr.grh.dgid, &pair->b.address.gid, 16), "wrong dgid");
	expect(init.cap.max_send_wr >= DEPTH && init.cap.max_recv_sge >= 4,
	       "capabilities below what was asked for");
	expect(init.send_cq == pair->a.send_cq && init.recv_cq == pair->a.recv_cq, "wrong CQs");
	expect(init.qp_type == IBV_QPT_RC, "wrong type");
	return true;
}

/* What RTS to RTS may change, and what it may not. */
static bool rts_to_rts(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .min_rnr_timer = 3,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE, .path_mtu = IBV_MTU_256,
	};

	if (!pair_start(pair, IBV_QPT_RC, false) || !bring_to(IBV_QPS_RTS))
		return false;
	expect(!ibv_modify_qp(pair->a.qp, &attr, IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER |
			      IBV_QP_ACCESS_FLAGS), "change of RNR timer and access flags");
	if (!refused(attr, IBV_QP_STATE | IBV_QP_PATH_MTU, "change of the path MTU"))
		return false;
	expect(!ibv_query_qp(pair->a.qp, &attr, EVERYTHING, &init), "query");
	expect(attr.min_rnr_timer == 3, "min_rnr_timer is %u, expected 3", attr.min_rnr_timer);
	expect((attr.qp_access_flags & ALL_ACCESS) == IBV_ACCESS_REMOTE_WRITE,
	       "access flags are %#x", attr.qp_access_flags);
	return true;
}

void state_cases(struct pair *p)
{
	pair = p;
	CASE(p, transitions(IBV_QPT_RC), "RC: every state transition");
	CASE(p, transitions(IBV_QPT_UC), "UC: every state transition");
	CASE(p, transitions(IBV_QPT_UD), "UD: every state transition");
	CASE(p, mandatory(), "attributes missing or too many: EINVAL");
	CASE(p, values_init(), "bad attribute values on the way to INIT: EINVAL");
	CASE(p, values_rtr(), "bad attribute values on the way to RTR: EINVAL");
	CASE(p, mtu_above_port(), "path MTU above the port's: EINVAL");
	CASE(p, values_rts(), "bad attribute values on the way to RTS: EINVAL");
	CASE(p, query(), "query tells what was set");
	CASE(p, rts_to_rts(), "RTS to RTS changes what it may");
}
