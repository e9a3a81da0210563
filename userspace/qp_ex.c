// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The builder of send work requests: ibv_wr_start() to ibv_wr_complete() */
#include <errno.h>
#include <string.h>
#include "sroce.h"

static struct sroce_send_wqe *wr_begin(struct ibv_qp_ex *ibv, uint32_t opcode)
{
	return sroce_wqe_begin(qp_ex_to_sqp(ibv), ibv->wr_id, opcode, ibv->wr_flags);
}

static void wr_send(struct ibv_qp_ex *ibv)
{
	wr_begin(ibv, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ibv, __be32 imm_data)
{
	struct sroce_send_wqe *wqe = wr_begin(ibv, IBV_WR_SEND_WITH_IMM);

	if (likely(wqe))
		wqe->wr.ex.imm_data = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *ibv, uint32_t rkey)
{
	struct sroce_send_wqe *wqe = wr_begin(ibv, IBV_WR_SEND_WITH_INV);

	if (likely(wqe))
		wqe->wr.ex.invalidate_rkey = rkey;
}

static struct sroce_send_wqe *wr_rdma(struct ibv_qp_ex *ibv, uint32_t opcode, uint32_t rkey,
				      uint64_t remote_addr)
{
	struct sroce_send_wqe *wqe = wr_begin(ibv, opcode);

	if (likely(wqe)) {
		wqe->wr.wr.rdma.remote_addr = remote_addr;
		wqe->wr.wr.rdma.rkey = rkey;
	}
	return wqe;
}

static void wr_rdma_write(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr)
{
	wr_rdma(ibv, IBV_WR_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm_data)
{
	struct sroce_send_wqe *wqe = wr_rdma(ibv, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr);

	if (likely(wqe))
		wqe->wr.ex.imm_data = imm_data;
}

static void wr_rdma_read(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr)
{
	wr_rdma(ibv, IBV_WR_RDMA_READ, rkey, remote_addr);
}

/* Eight bytes, which come with the request */
static void wr_atomic_write(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr,
			    const void *value)
{
	struct sroce_send_wqe *wqe = wr_rdma(ibv, IBV_WR_ATOMIC_WRITE, rkey, remote_addr);

	if (likely(wqe)) {
		memcpy(wqe->payload, value, sizeof(uint64_t));
		wqe->data.length = sizeof(uint64_t);
		wqe->wr.send_flags |= IBV_SEND_INLINE;
	}
}

/* Moves nothing; the length is that of what the peer is to make visible or persistent */
static void wr_flush(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr, size_t length,
		     uint8_t type, uint8_t level)
{
	struct sroce_send_wqe *wqe = wr_begin(ibv, IBV_WR_FLUSH);

	if (unlikely(!wqe))
		return;
	if (unlikely(length > UINT32_MAX && level == IBV_FLUSH_RANGE)) {
		qp_ex_to_sqp(ibv)->sq.err = EINVAL;
		return;
	}
	wqe->wr.wr.flush.remote_addr = remote_addr;
	wqe->data.length = length;
	wqe->wr.wr.flush.rkey = rkey;
	wqe->wr.wr.flush.type = type;
	wqe->wr.wr.flush.level = level;
}

static void wr_atomic(struct ibv_qp_ex *ibv, uint32_t opcode, uint32_t rkey,
		      uint64_t remote_addr, uint64_t compare_add, uint64_t swap)
{
	struct sroce_send_wqe *wqe = wr_begin(ibv, opcode);

	if (likely(wqe)) {
		wqe->wr.wr.atomic.remote_addr = remote_addr;
		wqe->wr.wr.atomic.compare_add = compare_add;
		wqe->wr.wr.atomic.swap = swap;
		wqe->wr.wr.atomic.rkey = rkey;
	}
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	wr_atomic(ibv, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	wr_atomic(ibv, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

static void wr_local_inv(struct ibv_qp_ex *ibv, uint32_t rkey)
{
	struct sroce_send_wqe *wqe = wr_begin(ibv, IBV_WR_LOCAL_INV);

	if (likely(wqe))
		wqe->wr.ex.invalidate_rkey = rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *ibv, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct sroce_send_wqe *wqe = wr_begin(ibv, IBV_WR_BIND_MW);

	if (likely(wqe))
		sroce_wqe_set_mw(wqe, mw, rkey, info);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ibv, struct ibv_ah *ah, uint32_t remote_qpn,
			   uint32_t remote_qkey)
{
	struct sroce_sq *sq = &qp_ex_to_sqp(ibv)->sq;

	if (unlikely(!sq->wqe))
		return;
	sq->wqe->wr.wr.ud.remote_qpn = remote_qpn;
	sq->wqe->wr.wr.ud.remote_qkey = remote_qkey;
	sq->wqe->wr.wr.ud.pkey_index = 0;
	sq->wqe->wr.wr.ud.ah_num = to_sah(ah)->number;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ibv, uint32_t remote_srqn)
{
	struct sroce_sq *sq = &qp_ex_to_sqp(ibv)->sq;

	if (likely(sq->wqe))
		sq->wqe->wr.srq_num = remote_srqn;
}

static void wr_set_inline_data(struct ibv_qp_ex *ibv, void *addr, size_t length)
{
	const struct ibv_data_buf buf = { .addr = addr, .length = length };

	sroce_wqe_set_inline(&qp_ex_to_sqp(ibv)->sq, &buf, 1);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ibv, size_t num,
				    const struct ibv_data_buf *list)
{
	sroce_wqe_set_inline(&qp_ex_to_sqp(ibv)->sq, list, num);
}

static void wr_set_sge(struct ibv_qp_ex *ibv, uint32_t lkey, uint64_t addr, uint32_t length)
{
	const struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	sroce_wqe_set_sges(&qp_ex_to_sqp(ibv)->sq, &sge, 1);
}

static void wr_set_sge_list(struct ibv_qp_ex *ibv, size_t num, const struct ibv_sge *list)
{
	sroce_wqe_set_sges(&qp_ex_to_sqp(ibv)->sq, list, num);
}

/* Holds the lock until wr_complete() or wr_abort() */
static void wr_start(struct ibv_qp_ex *ibv)
{
	struct sroce_qp *qp = qp_ex_to_sqp(ibv);

	sroce_lock_take(&qp->sq.lock);
	qp->sq.wqe = NULL;
	qp->sq.err = unlikely(ibv->qp_base.state < IBV_QPS_RTS) ? EINVAL : 0;
}

static int wr_complete(struct ibv_qp_ex *ibv)
{
	return sroce_sq_finish(qp_ex_to_sqp(ibv));
}

static void wr_abort(struct ibv_qp_ex *ibv)
{
	struct sroce_qp *qp = qp_ex_to_sqp(ibv);

	qp->sq.wqe = NULL;
	qp->sq.next = qp->sq.ring.index;
	sroce_lock_drop(&qp->sq.lock);
}

#define OPS_SEND	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define OPS_WRITE	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
#define OPS_LOCAL	(IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW)
#define OPS_RC		(OPS_SEND | OPS_WRITE | OPS_LOCAL | IBV_QP_EX_WITH_SEND_WITH_INV | \
			 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |	\
			 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_FLUSH | \
			 IBV_QP_EX_WITH_ATOMIC_WRITE)

/**
 * sroce_qp_ex_supports - can a queue pair of this type build these?
 * @type: type
 * @send_ops: IBV_QP_EX_WITH_*
 */
bool sroce_qp_ex_supports(enum ibv_qp_type type, uint64_t send_ops)
{
	switch (type) {
	case IBV_QPT_RAW_PACKET:
		return !(send_ops & ~(uint64_t)IBV_QP_EX_WITH_SEND);
	case IBV_QPT_UD:
		return !(send_ops & ~(uint64_t)OPS_SEND);
	case IBV_QPT_UC:
		return !(send_ops & ~(uint64_t)(OPS_SEND | OPS_WRITE | OPS_LOCAL |
						IBV_QP_EX_WITH_SEND_WITH_INV));
	case IBV_QPT_RC:
	case IBV_QPT_XRC_SEND:
		return !(send_ops & ~(uint64_t)OPS_RC);
	default:
		return !send_ops;
	}
}

static void fill_setters(struct ibv_qp_ex *ibv, enum ibv_qp_type type)
{
	ibv->wr_start = wr_start;
	ibv->wr_complete = wr_complete;
	ibv->wr_abort = wr_abort;
	ibv->wr_set_inline_data = wr_set_inline_data;
	ibv->wr_set_inline_data_list = wr_set_inline_data_list;
	ibv->wr_set_sge = wr_set_sge;
	ibv->wr_set_sge_list = wr_set_sge_list;
	if (type == IBV_QPT_UD)
		ibv->wr_set_ud_addr = wr_set_ud_addr;
	if (type == IBV_QPT_XRC_SEND)
		ibv->wr_set_xrc_srqn = wr_set_xrc_srqn;
}

static void fill_builders(struct ibv_qp_ex *ibv, uint64_t ops)
{
#define FILL(flag, member)							\
	do {									\
		if (ops & IBV_QP_EX_WITH_##flag)				\
			ibv->member = member;					\
	} while (0)

	FILL(RDMA_WRITE, wr_rdma_write);
	FILL(RDMA_WRITE_WITH_IMM, wr_rdma_write_imm);
	FILL(SEND, wr_send);
	FILL(SEND_WITH_IMM, wr_send_imm);
	FILL(RDMA_READ, wr_rdma_read);
	FILL(ATOMIC_CMP_AND_SWP, wr_atomic_cmp_swp);
	FILL(ATOMIC_FETCH_AND_ADD, wr_atomic_fetch_add);
	FILL(LOCAL_INV, wr_local_inv);
	FILL(BIND_MW, wr_bind_mw);
	FILL(SEND_WITH_INV, wr_send_inv);
	FILL(ATOMIC_WRITE, wr_atomic_write);
	FILL(FLUSH, wr_flush);
#undef FILL
}

/*
 * struct verbs_qp ends with a word that says whether the queue pair has a builder,
 * behind the builder's functions; and libibverbs grew functions (v44, v45) without
 * another name for its provider interface.  So where that word is depends on the
 * libibverbs that runs.  It clears it when it creates the queue pair: that tells.
 * A function whose place is the word's, or behind it, is one that this libibverbs
 * does not have.
 */
static const size_t mask_places[] = {
	offsetof(struct ibv_qp_ex, wr_atomic_write),	/* v39 to v43 */
	offsetof(struct ibv_qp_ex, wr_flush),		/* v44 */
	offsetof(struct verbs_qp, comp_mask),
};

#define MASK_PLACES	(sizeof(mask_places) / sizeof(mask_places[0]))
#define MASK_UNTOUCHED	0xffffffffu

static uint32_t *mask_at(struct sroce_qp *qp, unsigned int n)
{
	return (uint32_t *)((char *)&qp->ibv + mask_places[n]);
}

/**
 * sroce_qp_ex_prepare - before libibverbs creates a queue pair
 * @qp: queue pair
 */
void sroce_qp_ex_prepare(struct sroce_qp *qp)
{
	unsigned int n;

	for (n = 0; n < MASK_PLACES; n++)
		*mask_at(qp, n) = MASK_UNTOUCHED;
}

/**
 * sroce_qp_ex_finish - after libibverbs created it: give it its builder
 * @qp: queue pair
 * @type: of it
 * @ops: IBV_QP_EX_WITH_*
 * @wanted: whether a builder was asked for at all
 *
 * Return: 0, or EOPNOTSUPP for an operation that this libibverbs does not have.
 */
int sroce_qp_ex_finish(struct sroce_qp *qp, enum ibv_qp_type type, uint64_t ops, bool wanted)
{
	struct ibv_qp_ex *ibv = &qp->ibv.qp_ex;
	unsigned int n, place;

	for (place = 0; place < MASK_PLACES - 1; place++)
		if (*mask_at(qp, place) != MASK_UNTOUCHED)
			break;
	for (n = place + 1; n < MASK_PLACES; n++)
		if (*mask_at(qp, n) == MASK_UNTOUCHED)
			*mask_at(qp, n) = 0;
	for (n = 0; n < place; n++)
		*mask_at(qp, n) = 0;
	if (!wanted)
		return 0;
	if ((ops & IBV_QP_EX_WITH_ATOMIC_WRITE && place == 0) ||
	    (ops & IBV_QP_EX_WITH_FLUSH && place <= 1))
		return EOPNOTSUPP;
	*mask_at(qp, place) |= VERBS_QP_EX;
	fill_setters(ibv, type);
	fill_builders(ibv, ops);
	return 0;
}
