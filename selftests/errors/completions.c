// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion statuses, flushes, what posting refuses (IBA 9.9, 10.10, 11.6). */
#include "pair.h"

#include <errno.h>
#include <unistd.h>

static const char *op_name(enum ibv_wr_opcode op)
{
	switch (op) {
	case IBV_WR_SEND: return "SEND";
	case IBV_WR_RDMA_WRITE: return "WRITE";
	case IBV_WR_RDMA_READ: return "READ";
	case IBV_WR_ATOMIC_CMP_AND_SWP: return "CMP_SWAP";
	case IBV_WR_ATOMIC_FETCH_AND_ADD: return "FETCH_ADD";
	default: return "?";
	}
}

/* The first of three requests fails with a status; the rest is flushed, as are receives. */
static bool fails(struct pair *p, enum ibv_wc_status status)
{
	if (!completes(p->a.send_cq, 1, status) ||
	    !completes(p->a.send_cq, 2, IBV_WC_WR_FLUSH_ERR) ||
	    !completes(p->a.send_cq, 3, IBV_WC_WR_FLUSH_ERR) ||
	    !completes(p->a.recv_cq, 9, IBV_WC_WR_FLUSH_ERR))
		return false;
	return no_more(p->a.send_cq) && no_more(p->a.recv_cq) && becomes(p->a.qp, IBV_QPS_ERR);
}

static bool remote_access(struct pair *p, enum ibv_wr_opcode op, uint64_t offset,
			  uint32_t rkey_xor, int access)
{
	struct ibv_mr *mr;

	if (!pair_up(p, IBV_QPT_RC))
		return false;
	mr = ibv_reg_mr(p->b.dev.pd, p->b.memory, SIZE, access);
	expect(mr, "register memory: %s", strerror(errno));
	memset(p->b.memory, 0x5a, SIZE);
	side_recv(&p->a, 9, 100);
	side_post(&p->a, &p->b, op, 1, 8, offset, mr->rkey ^ rkey_xor);
	side_send(&p->a, 2, 10);
	side_send(&p->a, 3, 10);
	if (!fails(p, IBV_WC_REM_ACCESS_ERR))
		return false;
	for (int i = 0; i < SIZE; i++)
		expect(p->b.memory[i] == 0x5a, "memory changed at +%d", i);
	expect(!ibv_dereg_mr(mr), "deregister memory");
	return true;
}

/* Local trouble: a list entry that must not be used. */
static bool local_protection(struct pair *p, enum ibv_wr_opcode op, int kind)
{
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1, .opcode = op, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_mr *mr;
	struct ibv_pd *pd = NULL;
	bool good;

	if (!pair_up(p, IBV_QPT_RC))
		return false;
	if (kind == 2)
		pd = ibv_alloc_pd(p->a.dev.context);
	/* read-only memory serves for sending, so only READ is tried with it */
	mr = ibv_reg_mr(pd ? pd : p->a.dev.pd, p->a.memory, SIZE,
			kind == 3 ? 0 : IBV_ACCESS_LOCAL_WRITE);
	expect(mr, "register memory: %s", strerror(errno));
	sge = (struct ibv_sge) {
		.addr = (uintptr_t)p->a.memory + (kind == 1 ? SIZE - 4 : 0),
		.length = 8,
		.lkey = mr->lkey ^ (kind == 0 ? 0x7f00 : 0),
	};
	wr.wr.rdma.remote_addr = (uintptr_t)p->b.memory;
	wr.wr.rdma.rkey = p->b.mr->rkey;
	side_recv(&p->a, 9, 100);
	side_recv(&p->b, 9, 100);
	expect(!ibv_post_send(p->a.qp, &wr, &bad), "post");
	side_send(&p->a, 2, 10);
	side_send(&p->a, 3, 10);
	good = fails(p, IBV_WC_LOC_PROT_ERR);
	expect(!ibv_dereg_mr(mr), "deregister memory");
	expect(!pd || !ibv_dealloc_pd(pd), "free protection domain");
	return good;
}

/*
 * A WRITE that is complete when the longer one behind it fails: it completes by its ACK,
 * which nothing else asks for, as there is no transport timer and one doorbell for both.
 */
static bool before_failure(struct pair *p)
{
	struct ibv_sge sge[2];
	struct ibv_send_wr *bad, wr[2] = {};

	if (!pair_start(p, IBV_QPT_RC, false))
		return false;
	p->path.timeout = 0;
	if (!pair_connect(p))
		return false;
	for (int i = 0; i < 2; i++) {
		sge[i] = (struct ibv_sge) {
			.addr = (uintptr_t)p->a.memory, .length = i ? 200 : 8,
			.lkey = p->a.mr->lkey ^ (i ? 0x7f00 : 0),
		};
		wr[i] = (struct ibv_send_wr) {
			.wr_id = i, .next = i ? NULL : &wr[1], .opcode = IBV_WR_RDMA_WRITE,
			.sg_list = &sge[i], .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
		};
		wr[i].wr.rdma.remote_addr = (uintptr_t)p->b.memory;
		wr[i].wr.rdma.rkey = p->b.mr->rkey;
	}
	expect(!ibv_post_send(p->a.qp, wr, &bad), "post");
	return completes(p->a.send_cq, 0, IBV_WC_SUCCESS) &&
	       completes(p->a.send_cq, 1, IBV_WC_LOC_PROT_ERR) && becomes(p->a.qp, IBV_QPS_ERR);
}

static bool short_receive(struct pair *p)
{
	if (!pair_up(p, IBV_QPT_RC))
		return false;
	side_recv(&p->a, 9, 100);
	side_recv(&p->b, 7, 50);
	side_recv(&p->b, 8, 50);
	side_send(&p->a, 1, 51);
	side_send(&p->a, 2, 10);
	side_send(&p->a, 3, 10);
	return fails(p, IBV_WC_REM_INV_REQ_ERR) &&
	       completes(p->b.recv_cq, 7, IBV_WC_LOC_LEN_ERR) &&
	       completes(p->b.recv_cq, 8, IBV_WC_WR_FLUSH_ERR) &&
	       becomes(p->b.qp, IBV_QPS_ERR);
}

static bool bad_receive(struct pair *p)
{
	struct ibv_sge sge;
	struct ibv_recv_wr *bad, wr = { .wr_id = 7, .sg_list = &sge, .num_sge = 1 };

	if (!pair_up(p, IBV_QPT_RC))
		return false;
	sge = (struct ibv_sge) { (uintptr_t)p->b.memory, 100, p->b.mr->lkey ^ 0x7f00 };
	expect(!ibv_post_recv(p->b.qp, &wr, &bad), "post receive");
	side_recv(&p->a, 9, 100);
	side_send(&p->a, 1, 51);
	side_send(&p->a, 2, 10);
	side_send(&p->a, 3, 10);
	return fails(p, IBV_WC_REM_OP_ERR) && completes(p->b.recv_cq, 7, IBV_WC_LOC_PROT_ERR) &&
	       becomes(p->b.qp, IBV_QPS_ERR);
}

static bool rnr(struct pair *p)
{
	if (!pair_start(p, IBV_QPT_RC, false))
		return false;
	p->path.rnr_retry = 2;
	if (!pair_connect(p))
		return false;
	side_recv(&p->a, 9, 100);
	for (int i = 1; i <= 3; i++)
		side_send(&p->a, i, 10);
	return fails(p, IBV_WC_RNR_RETRY_EXC_ERR);
}

/* A receive posted while the sender waits ends the wait. */
static bool rnr_recovers(struct pair *p)
{
	if (!pair_up(p, IBV_QPT_RC))
		return false;
	side_send(&p->a, 1, 10);
	usleep(20000);
	if (!no_more(p->a.send_cq))
		return false;
	side_recv(&p->b, 2, 10);
	return completes(p->a.send_cq, 1, IBV_WC_SUCCESS) &&
	       completes(p->b.recv_cq, 2, IBV_WC_SUCCESS);
}

static bool peer_gone(struct pair *p)
{
	if (!pair_start(p, IBV_QPT_RC, false))
		return false;
	p->path.timeout = 12;
	p->path.retry_cnt = 2;
	if (!pair_connect(p))
		return false;
	expect(!ibv_destroy_qp(p->b.qp), "destroy queue pair");
	p->b.qp = NULL;
	side_recv(&p->a, 9, 100);
	for (int i = 1; i <= 3; i++)
		side_send(&p->a, i, 10);
	return fails(p, IBV_WC_RETRY_EXC_ERR);
}

/* To ERR with requests outstanding: each completes, flushed, in order. */
static bool flush(struct pair *p)
{
	int i;

	if (!pair_up(p, IBV_QPT_RC))
		return false;
	for (i = 0; i < 8; i++) {
		expect(!side_recv(&p->a, 100 + i, 10), "post receive");
		/* the other side has no receive request: these wait */
		expect(!side_send(&p->a, i, 10), "post send");
	}
	expect(!qp_to(p->a.qp, IBV_QPS_ERR), "to ERR");
	for (i = 0; i < 8; i++)
		if (!completes(p->a.send_cq, i, IBV_WC_WR_FLUSH_ERR) ||
		    !completes(p->a.recv_cq, 100 + i, IBV_WC_WR_FLUSH_ERR))
			return false;
	/* what is posted now is flushed, too */
	expect(!side_recv(&p->a, 200, 10), "post receive in ERR");
	expect(!side_send(&p->a, 201, 10), "post send in ERR");
	return completes(p->a.recv_cq, 200, IBV_WC_WR_FLUSH_ERR) &&
	       completes(p->a.send_cq, 201, IBV_WC_WR_FLUSH_ERR) &&
	       no_more(p->a.send_cq) && no_more(p->a.recv_cq);
}

/* Receives are flushed though nothing but them is posted, which rings no doorbell. */
static bool flush_receives(struct pair *p)
{
	if (!pair_up(p, IBV_QPT_RC))
		return false;
	expect(!qp_to(p->a.qp, IBV_QPS_ERR), "to ERR");
	for (int i = 0; i < 3 * DEPTH; i++) {
		expect(!side_recv(&p->a, i, 10), "post receive %d", i);
		/* now one at a time, now a few at once */
		if (i % 5 == 4)
			continue;
		for (int k = i % 5 ? i : i - 1; k <= i; k++)
			if (k >= 0 && !completes(p->a.recv_cq, k, IBV_WC_WR_FLUSH_ERR))
				return false;
	}
	/* from here on the kernel looks less and less often, but it does not stop */
	sleep(3);
	expect(!side_recv(&p->a, 500, 10), "post receive after a pause");
	return completes(p->a.recv_cq, 500, IBV_WC_WR_FLUSH_ERR) && no_more(p->a.recv_cq) &&
	       no_more(p->a.send_cq);
}

/* Unsignalled requests complete if they fail. */
static bool unsignalled(struct pair *p)
{
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

	if (!pair_up(p, IBV_QPT_RC))
		return false;
	sge = (struct ibv_sge) { (uintptr_t)p->a.memory, 10, p->a.mr->lkey };
	for (wr.wr_id = 0; wr.wr_id < 4; wr.wr_id++)
		expect(!ibv_post_send(p->a.qp, &wr, &bad), "post send");
	expect(!qp_to(p->a.qp, IBV_QPS_ERR), "to ERR");
	for (int i = 0; i < 4; i++)
		if (!completes(p->a.send_cq, i, IBV_WC_WR_FLUSH_ERR))
			return false;
	return no_more(p->a.send_cq);
}

/* RESET forgets what was posted; the queue pair can be used again. */
static bool reset(struct pair *p)
{
	if (!pair_up(p, IBV_QPT_RC))
		return false;
	for (int i = 0; i < 8; i++) {
		side_recv(&p->a, 100 + i, 10);
		side_send(&p->a, i, 10);
	}
	expect(!qp_to(p->a.qp, IBV_QPS_RESET), "to RESET");
	expect(!qp_to(p->b.qp, IBV_QPS_RESET), "to RESET");
	if (!no_more(p->a.send_cq) || !no_more(p->a.recv_cq))
		return false;
	for (int i = 0; i < 3; i++) {
		if (!pair_connect(p))
			return false;
		for (int k = 0; k < DEPTH + 2; k++)
			if (!talks(p))
				return false;
		expect(!qp_to(p->a.qp, IBV_QPS_ERR), "to ERR");
		expect(!qp_to(p->a.qp, IBV_QPS_RESET), "to RESET");
		expect(!qp_to(p->b.qp, IBV_QPS_RESET), "to RESET");
	}
	return true;
}

static bool full_queues(struct pair *p)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint32_t n;
	int error;

	if (!pair_up(p, IBV_QPT_RC))
		return false;
	expect(!ibv_query_qp(p->a.qp, &attr, IBV_QP_CAP, &init), "query");
	expect(init.cap.max_send_wr >= DEPTH && init.cap.max_recv_wr >= DEPTH,
	       "capabilities below what was asked for: %u, %u", init.cap.max_send_wr,
	       init.cap.max_recv_wr);
	for (n = 0; !(error = side_send(&p->a, n, 10)) && n < 100000; n++)
		;
	expect(error == ENOMEM, "full send queue: %s, expected ENOMEM", strerror(error));
	expect(n >= DEPTH, "send queue took %u requests, asked for %u", n, DEPTH);
	for (n = 0; !(error = side_recv(&p->a, n, 10)) && n < 100000; n++)
		;
	expect(error == ENOMEM, "full receive queue: %s, expected ENOMEM", strerror(error));
	expect(n >= DEPTH, "receive queue took %u requests, asked for %u", n, DEPTH);
	return true;
}

static bool bad_wr(struct pair *p)
{
	struct ibv_sge sge[64];
	struct ibv_recv_wr *bad_recv = NULL, recv[2] = {
		{ .next = &recv[1], .sg_list = sge, .num_sge = 1 },
		{ .sg_list = sge, .num_sge = 64 },
	};
	struct ibv_send_wr *bad_send = NULL, send[2] = {
		{ .next = &send[1], .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND },
		{ .sg_list = sge, .num_sge = 64, .opcode = IBV_WR_SEND },
	};
	int error;

	if (!pair_up(p, IBV_QPT_RC))
		return false;
	for (int i = 0; i < 64; i++)
		sge[i] = (struct ibv_sge) { (uintptr_t)p->a.memory, 1, p->a.mr->lkey };
	error = ibv_post_recv(p->a.qp, recv, &bad_recv);
	expect(error == EINVAL || error == ENOMEM, "receive list of 64: %s", strerror(error));
	expect(bad_recv == &recv[1], "bad_wr is not the bad receive request");
	error = ibv_post_send(p->a.qp, send, &bad_send);
	expect(error == EINVAL || error == ENOMEM, "send list of 64: %s", strerror(error));
	expect(bad_send == &send[1], "bad_wr is not the bad send request");
	return true;
}

static bool long_inline(struct pair *p)
{
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE,
	};
	int error;

	if (!pair_up(p, IBV_QPT_RC))
		return false;
	sge = (struct ibv_sge) { (uintptr_t)p->a.memory, SIZE, 0 };
	error = ibv_post_send(p->a.qp, &wr, &bad);
	expect(error == EINVAL || error == ENOMEM, "inline %d bytes: %s", SIZE, strerror(error));
	return true;
}

/* What the service does not have: refused at once or by completion. */
static bool not_of_service(struct pair *p, enum ibv_qp_type type, enum ibv_wr_opcode op)
{
	struct ibv_wc wc;
	int error;

	if (!pair_up(p, type))
		return false;
	error = side_post(&p->a, &p->b, op, 1, 8, 0, p->b.mr->rkey);
	if (error) {
		expect(error == EINVAL || error == EOPNOTSUPP, "refused with %s", strerror(error));
		return true;
	}
	expect(poll_for(p->a.send_cq, &wc, 1, HANG_MS) == 1, "neither refused nor completed");
	expect(wc.status == IBV_WC_LOC_QP_OP_ERR, "completed with %s, expected %s",
	       ibv_wc_status_str(wc.status), ibv_wc_status_str(IBV_WC_LOC_QP_OP_ERR));
	return true;
}

static bool long_datagram(struct pair *p)
{
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;
	int error;

	if (!pair_up(p, IBV_QPT_UD))
		return false;
	sge = (struct ibv_sge) {
		(uintptr_t)p->a.memory, mtu_bytes(p->a.dev.port.active_mtu) + 1, p->a.mr->lkey,
	};
	wr.wr.ud.ah = ah_new(&p->a.dev, &p->b.dev.gid);
	expect(wr.wr.ud.ah, "address handle: %s", strerror(errno));
	wr.wr.ud.remote_qpn = p->b.qp->qp_num;
	wr.wr.ud.remote_qkey = p->b.address.qkey;
	error = ibv_post_send(p->a.qp, &wr, &bad);
	if (!error) {
		expect(poll_for(p->a.send_cq, &wc, 1, HANG_MS) == 1,
		       "neither refused nor completed");
		expect(wc.status == IBV_WC_LOC_LEN_ERR, "completed with %s, expected %s",
		       ibv_wc_status_str(wc.status), ibv_wc_status_str(IBV_WC_LOC_LEN_ERR));
	}
	expect(!ibv_destroy_ah(wr.wr.ud.ah), "destroy address handle");
	return true;
}

/* A UD or UC send error moves a queue pair to SQE, from which it can return (IBA 10.3.1). */
static bool send_queue_error(struct pair *p)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE, .qkey = 0x1234,
	};
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (!pair_up(p, IBV_QPT_UC))
		return false;
	sge = (struct ibv_sge) { (uintptr_t)p->a.memory, 8, p->a.mr->lkey ^ 0x7f00 };
	expect(!ibv_post_send(p->a.qp, &wr, &bad), "post");
	if (!completes(p->a.send_cq, 1, IBV_WC_LOC_PROT_ERR) || !becomes(p->a.qp, IBV_QPS_SQE))
		return false;
	/* the receive queue still works */
	side_recv(&p->a, 2, 10);
	side_send(&p->b, 3, 10);
	if (!completes(p->b.send_cq, 3, IBV_WC_SUCCESS) ||
	    !completes(p->a.recv_cq, 2, IBV_WC_SUCCESS))
		return false;
	expect(!ibv_modify_qp(p->a.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), "SQE to RTS");
	side_recv(&p->b, 5, 10);
	side_send(&p->a, 4, 10);
	return completes(p->a.send_cq, 4, IBV_WC_SUCCESS) &&
	       completes(p->b.recv_cq, 5, IBV_WC_SUCCESS);
}

/* In SQD nothing new is sent; back in RTS it is. */
static bool drained(struct pair *p)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };

	if (!pair_up(p, IBV_QPT_RC) || !talks(p))
		return false;
	expect(!ibv_modify_qp(p->a.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
	       "RTS to SQD");
	if (!event_is(&p->a.dev, IBV_EVENT_SQ_DRAINED))
		return false;
	side_recv(&p->b, 1, 10);
	expect(!side_send(&p->a, 2, 10), "post in SQD");
	usleep(100000);
	if (!no_more(p->a.send_cq) || !no_more(p->b.recv_cq))
		return false;
	/* the receive queue works in SQD */
	side_recv(&p->a, 3, 10);
	side_send(&p->b, 4, 10);
	if (!completes(p->b.send_cq, 4, IBV_WC_SUCCESS) ||
	    !completes(p->a.recv_cq, 3, IBV_WC_SUCCESS))
		return false;
	expect(!qp_to(p->a.qp, IBV_QPS_RTS), "SQD to RTS");
	return completes(p->a.send_cq, 2, IBV_WC_SUCCESS) &&
	       completes(p->b.recv_cq, 1, IBV_WC_SUCCESS);
}

/* Memory deregistered under traffic: the traffic ends with the right error, no more. */
static bool deregistered(struct pair *p)
{
	struct ibv_wc wc;
	int done = 0;

	for (int round = 0; round < 20; round++) {
		struct ibv_mr *mr;

		if (!pair_up(p, IBV_QPT_RC))
			return false;
		mr = ibv_reg_mr(p->b.dev.pd, p->b.memory, SIZE, ALL_ACCESS);
		expect(mr, "register memory: %s", strerror(errno));
		for (int i = 0; i < DEPTH; i++)
			expect(!side_post(&p->a, &p->b,
					  i % 2 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, i,
					  SIZE, 0, mr->rkey), "post");
		usleep(random() % 2000);
		expect(!ibv_dereg_mr(mr), "deregister memory under traffic");
		for (int i = 0; i < DEPTH; i++) {
			expect(poll_for(p->a.send_cq, &wc, 1, HANG_MS) == 1, "no completion");
			if (wc.status == IBV_WC_SUCCESS) {
				done++;
				continue;
			}
			expect(wc.status == IBV_WC_REM_ACCESS_ERR ||
			       wc.status == IBV_WC_WR_FLUSH_ERR, "completion: %s",
			       ibv_wc_status_str(wc.status));
		}
		if (!pair_stop(p))
			return false;
	}
	return true;
}

void completion_cases(struct pair *p)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	static const char *const local[] = {
		"unknown L_Key", "past the end", "of another protection domain",
		"not writable",
	};

	for (int i = 0; i < 4; i++) {
		CASE(p, remote_access(p, ops[i], 0, 0x7f00, ALL_ACCESS),
		     "%s with an unknown R_Key: REM_ACCESS_ERR", op_name(ops[i]));
		CASE(p, remote_access(p, ops[i], SIZE, 0, ALL_ACCESS),
		     "%s out of bounds: REM_ACCESS_ERR", op_name(ops[i]));
		CASE(p, remote_access(p, ops[i], 0, 0, IBV_ACCESS_LOCAL_WRITE),
		     "%s without permission: REM_ACCESS_ERR", op_name(ops[i]));
	}
	for (int kind = 0; kind < 4; kind++) {
		if (kind < 3) {
			CASE(p, local_protection(p, IBV_WR_SEND, kind),
			     "SEND from memory %s: LOC_PROT_ERR", local[kind]);
			CASE(p, local_protection(p, IBV_WR_RDMA_WRITE, kind),
			     "WRITE from memory %s: LOC_PROT_ERR", local[kind]);
		}
		CASE(p, local_protection(p, IBV_WR_RDMA_READ, kind),
		     "READ to memory %s: LOC_PROT_ERR", local[kind]);
	}
	CASE(p, before_failure(p), "a WRITE before one that fails completes, without a timer");
	CASE(p, short_receive(p), "receive buffer too short: REM_INV_REQ_ERR, LOC_LEN_ERR");
	CASE(p, bad_receive(p), "receive buffer with a bad L_Key: REM_OP_ERR, LOC_PROT_ERR");
	CASE(p, rnr(p), "no receive request: RNR_RETRY_EXC_ERR");
	CASE(p, rnr_recovers(p), "a receive request posted late");
	CASE(p, peer_gone(p), "peer gone: RETRY_EXC_ERR");
	CASE(p, flush(p), "to ERR: both queues are flushed, in order");
	CASE(p, flush_receives(p), "receives posted in ERR are flushed, without a doorbell");
	CASE(p, unsignalled(p), "to ERR: unsignalled requests complete");
	CASE(p, reset(p), "to RESET: requests are forgotten, the queue pair works again");
	CASE(p, full_queues(p), "posting to a full queue: ENOMEM");
	CASE(p, bad_wr(p), "posting a list too long: refused, bad_wr names it");
	CASE(p, long_inline(p), "posting too much inline: refused");
	CASE(p, not_of_service(p, IBV_QPT_UC, IBV_WR_RDMA_READ), "READ on UC: refused");
	CASE(p, not_of_service(p, IBV_QPT_UC, IBV_WR_ATOMIC_FETCH_AND_ADD),
	     "FETCH_ADD on UC: refused");
	CASE(p, long_datagram(p), "UD message longer than the MTU: LOC_LEN_ERR");
	CASE(p, send_queue_error(p), "UC: a send error leads to SQE and back");
	CASE(p, drained(p), "SQD: drained event, nothing sent, on again in RTS");
	CASE(p, deregistered(p), "memory deregistered under traffic");
}
