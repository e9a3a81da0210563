// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * flush - RDMA FLUSH by ibv_wr_flush(), and what is refused of it
 *
 * usage: flush DEVICE_A GID_INDEX_A DEVICE_B GID_INDEX_B
 */
#include "../errors/pair.h"

#include <errno.h>

#define FLUSH_ACCESS (IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT)

enum { WRITE_ID = 7, FLUSH_ID };

/* A queue pair with a builder in place of a's own */
static bool with_builder(struct side *s)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.send_cq = s->send_cq,
		.recv_cq = s->recv_cq,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = s->dev.pd,
		.send_ops_flags = IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_RDMA_WRITE,
	};

	expect(!ibv_destroy_qp(s->qp), "destroy the queue pair: %s", strerror(errno));
	s->qp = ibv_create_qp_ex(s->dev.context, &init);
	expect(s->qp, "queue pair with a builder: %s", strerror(errno));
	s->address.qpn = s->qp->qp_num;
	return true;
}

/* What b's memory may be used for, and what a may do with it */
static bool start(struct pair *p, int access, int qp_access)
{
	if (!pair_start(p, IBV_QPT_RC, false) || !with_builder(&p->a))
		return false;
	expect(!ibv_dereg_mr(p->b.mr), "deregister");
	p->b.mr = ibv_reg_mr(p->b.dev.pd, p->b.memory, SIZE, access);
	expect(p->b.mr, "register: %s", strerror(errno));
	p->path.access = qp_access;
	return pair_connect(p);
}

static bool flush(struct pair *p, uint64_t offset, size_t length, uint8_t type, uint8_t level,
		  enum ibv_wc_status status)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(p->a.qp);
	struct ibv_wc wc;
	int err;

	ibv_wr_start(qp);
	qp->wr_id = FLUSH_ID;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(qp, p->b.mr->rkey, (uintptr_t)p->b.memory + offset, length, type, level);
	err = ibv_wr_complete(qp);
	expect(!err, "post a FLUSH: %s", strerror(err));
	expect(poll_for(p->a.send_cq, &wc, 1, HANG_MS) == 1, "no completion");
	expect(wc.wr_id == FLUSH_ID, "completion of %lu", (unsigned long)wc.wr_id);
	expect(wc.status == status, "status %s", ibv_wc_status_str(wc.status));
	expect(status || wc.opcode == IBV_WC_FLUSH, "opcode %d", wc.opcode);
	return true;
}

/* WRITEs, and FLUSHes behind them, posted in one go: in order, and all is there */
static bool behind_writes(struct pair *p)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(p->a.qp);
	struct ibv_wc wc[2 * 4];

	for (int i = 0; i < SIZE; i++)
		p->a.memory[i] = i * 31 >> 3;
	memset(p->b.memory, 0, SIZE);
	ibv_wr_start(qp);
	for (int i = 0; i < 4; i++) {
		qp->wr_id = WRITE_ID;
		qp->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(qp, p->b.mr->rkey, (uintptr_t)p->b.memory + i * SIZE / 4);
		ibv_wr_set_sge(qp, p->a.mr->lkey, (uintptr_t)p->a.memory + i * SIZE / 4, SIZE / 4);
		qp->wr_id = FLUSH_ID;
		ibv_wr_flush(qp, p->b.mr->rkey, (uintptr_t)p->b.memory + i * SIZE / 4, SIZE / 4,
			     IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
	}
	expect(!ibv_wr_complete(qp), "post");
	expect(poll_for(p->a.send_cq, wc, 8, HANG_MS) == 8, "completions are missing");
	for (int i = 0; i < 8; i++) {
		expect(!wc[i].status, "number %d: %s", i, ibv_wc_status_str(wc[i].status));
		expect(wc[i].wr_id == (i % 2 ? FLUSH_ID : WRITE_ID), "number %d: out of order", i);
	}
	expect(!memcmp(p->a.memory, p->b.memory, SIZE), "data differ");
	return true;
}

static const int granted = ALL_ACCESS | IBV_ACCESS_FLUSH_GLOBAL;
static const int all = ALL_ACCESS | FLUSH_ACCESS;

static bool succeed(struct pair *p)
{
	return start(p, granted, all) &&
	       flush(p, 0, SIZE, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, IBV_WC_SUCCESS) &&
	       flush(p, SIZE, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, IBV_WC_SUCCESS) &&
	       /* whatever the range */
	       flush(p, 3 * SIZE, 12345678, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR, IBV_WC_SUCCESS) &&
	       behind_writes(p);
}

static bool refuse(struct pair *p, int access, int qp_access, uint64_t offset, uint8_t type,
		   enum ibv_wc_status status)
{
	return start(p, access, qp_access) &&
	       flush(p, offset, SIZE, type, IBV_FLUSH_RANGE, status);
}

static bool ordinary_memory(struct pair *p)
{
	struct ibv_mr *mr;

	if (!pair_start(p, IBV_QPT_RC, false))
		return false;
	mr = ibv_reg_mr(p->b.dev.pd, p->b.memory, SIZE, ALL_ACCESS | IBV_ACCESS_FLUSH_PERSISTENT);
	expect(!mr, "registered");
	expect(errno == EINVAL, "%s", strerror(errno));
	return true;
}

int main(int argc, char **argv)
{
	char *names[2];
	struct pair p = {};
	int gids[2];

	if (argc != 5)
		die("usage: %s DEVICE_A GID_INDEX_A DEVICE_B GID_INDEX_B", argv[0]);
	for (int i = 0; i < 2; i++) {
		names[i] = argv[1 + 2 * i];
		gids[i] = atoi(argv[2 + 2 * i]);
	}
	pair_open(&p, names, gids);
	CASE(&p, succeed(&p), "FLUSH of a range, of nothing, of a region, behind WRITEs");
	CASE(&p, refuse(&p, granted, all, 0, IBV_FLUSH_PERSISTENT, IBV_WC_REM_ACCESS_ERR),
	     "a region that does not grant persistence");
	CASE(&p, refuse(&p, granted, all, 0, IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT,
			IBV_WC_REM_ACCESS_ERR), "a region that grants one of two");
	CASE(&p, refuse(&p, ALL_ACCESS, all, 0, IBV_FLUSH_GLOBAL, IBV_WC_REM_ACCESS_ERR),
	     "a region that does not grant FLUSH");
	CASE(&p, refuse(&p, granted, all, 1, IBV_FLUSH_GLOBAL, IBV_WC_REM_ACCESS_ERR),
	     "a range that ends behind the region");
	CASE(&p, refuse(&p, granted, ALL_ACCESS, 0, IBV_FLUSH_GLOBAL, IBV_WC_REM_INV_REQ_ERR),
	     "a queue pair that does not grant it");
	CASE(&p, refuse(&p, granted, all, 0, 0x10 | IBV_FLUSH_GLOBAL, IBV_WC_LOC_QP_OP_ERR),
	     "a type that FLUSH does not have, at the requester");
	CASE(&p, refuse(&p, granted, all, 0, 0, IBV_WC_LOC_QP_OP_ERR),
	     "a FLUSH of no type, at the requester");
	CASE(&p, ordinary_memory(&p), "no persistence of memory that is not persistent");
	return tap_plan();
}
