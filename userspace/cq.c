// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion queues: polled as a whole, or lazily, field by field */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "sroce.h"

struct create_cq_cmd {
	struct ibv_create_cq_ex		ibv;
	struct sroce_create_cq_cmd	drv;
};

struct create_cq_resp {
	struct ib_uverbs_ex_create_cq_resp	ibv;
	struct sroce_create_cq_resp		drv;
};

struct resize_cq_cmd {
	struct ibv_resize_cq		ibv;
	struct sroce_resize_cq_cmd	drv;
};

struct resize_cq_resp {
	struct ib_uverbs_resize_cq_resp	ibv;
	struct sroce_resize_cq_resp	drv;
};

static_assert(offsetof(struct create_cq_cmd, drv) == sizeof(struct ibv_create_cq_ex) &&
	      offsetof(struct create_cq_resp, drv) == sizeof(struct ib_uverbs_ex_create_cq_resp) &&
	      offsetof(struct resize_cq_cmd, drv) == sizeof(struct ibv_resize_cq) &&
	      offsetof(struct resize_cq_resp, drv) == sizeof(struct ib_uverbs_resize_cq_resp),
	      "the driver's part follows at once");
static_assert(sizeof(struct ib_uverbs_wc) == sizeof(((struct sroce_cqe *)NULL)->wc),
	      "a completion is what libibverbs knows of it, and more");

#define WC_EX_TIMES	(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
			 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define WC_EX_SUPPORTED	(IBV_WC_STANDARD_FLAGS | WC_EX_TIMES)

static const struct ib_uverbs_wc *wc_of(const struct sroce_cqe *cqe)
{
	return (const struct ib_uverbs_wc *)cqe->wc;
}

/* ---------------------------------------------------------------- polling */

static bool cq_empty(struct sroce_ring *ring, uint32_t index)
{
	if (index != ring->other)
		return false;
	ring->other = sroce_load_acquire(&ring->queue->producer_index) & ring->mask;
	return index == ring->other;
}

static void copy_wc(struct ibv_wc *to, const struct ib_uverbs_wc *wc)
{
	to->wr_id = wc->wr_id;
	to->status = wc->status;
	to->opcode = wc->opcode;
	to->vendor_err = wc->vendor_err;
	to->byte_len = wc->byte_len;
	to->imm_data = wc->ex.imm_data;
	to->qp_num = wc->qp_num;
	to->src_qp = wc->src_qp;
	to->wc_flags = wc->wc_flags;
	to->pkey_index = wc->pkey_index;
	to->slid = wc->slid;
	to->sl = wc->sl;
	to->dlid_path_bits = wc->dlid_path_bits;
}

int sroce_poll_cq(struct ibv_cq *ibv, int num, struct ibv_wc *wc)
{
	struct sroce_cq *cq = to_scq(ibv);
	struct sroce_ring *ring = &cq->ring;
	int n;

	sroce_lock_take(&cq->lock);
	for (n = 0; n < num && !cq_empty(ring, ring->index); n++) {
		copy_wc(&wc[n], wc_of(sroce_ring_element(ring, ring->index)));
		ring->index = sroce_ring_next(ring, ring->index);
	}
	if (n)
		sroce_store_release(&ring->queue->consumer_index, ring->index);
	sroce_lock_drop(&cq->lock);
	return n;
}

/**
 * sroce_cq_forget - drop the completions of a queue pair that is no more, or was reset
 * @cq: its send or receive CQ, or NULL
 * @qpn: its number
 *
 * What is left moves up, so that the consumer's end of the ring moves forward.
 */
void sroce_cq_forget(struct sroce_cq *cq, uint32_t qpn)
{
	struct sroce_ring *ring;
	uint32_t from, to;

	if (!cq)
		return;
	ring = &cq->ring;
	sroce_lock_take(&cq->lock);
	ring->other = sroce_load_acquire(&ring->queue->producer_index) & ring->mask;
	for (from = to = ring->other; from != ring->index;) {
		from = (from - 1) & ring->mask;
		if (wc_of(sroce_ring_element(ring, from))->qp_num == qpn)
			continue;
		to = (to - 1) & ring->mask;
		if (to != from)
			memcpy(sroce_ring_element(ring, to), sroce_ring_element(ring, from),
			       sizeof(struct sroce_cqe));
	}
	if (to != ring->index) {
		ring->index = to;
		sroce_store_release(&ring->queue->consumer_index, to);
	}
	sroce_lock_drop(&cq->lock);
}

static void cq_show(struct sroce_cq *cq)
{
	cq->cqe = sroce_ring_element(&cq->ring, cq->ring.index);
	cq->ibv.cq_ex.wr_id = wc_of(cq->cqe)->wr_id;
	cq->ibv.cq_ex.status = wc_of(cq->cqe)->status;
}

/* Holds the lock until end_poll(), unless there was nothing */
static int cq_start_poll(struct ibv_cq_ex *ibv, struct ibv_poll_cq_attr *attr)
{
	struct sroce_cq *cq = cq_ex_to_scq(ibv);

	if (attr->comp_mask)
		return EINVAL;
	sroce_lock_take(&cq->lock);
	if (cq_empty(&cq->ring, cq->ring.index)) {
		sroce_lock_drop(&cq->lock);
		return ENOENT;
	}
	cq_show(cq);
	return 0;
}

static int cq_next_poll(struct ibv_cq_ex *ibv)
{
	struct sroce_cq *cq = cq_ex_to_scq(ibv);
	uint32_t next = sroce_ring_next(&cq->ring, cq->ring.index);

	if (cq_empty(&cq->ring, next))
		return ENOENT;
	cq->ring.index = next;
	cq_show(cq);
	return 0;
}

/* The completion that was shown last is consumed too */
static void cq_end_poll(struct ibv_cq_ex *ibv)
{
	struct sroce_cq *cq = cq_ex_to_scq(ibv);

	cq->ring.index = sroce_ring_next(&cq->ring, cq->ring.index);
	cq->cqe = NULL;
	sroce_store_release(&cq->ring.queue->consumer_index, cq->ring.index);
	sroce_lock_drop(&cq->lock);
}

#define CQ_READ(type, name, value)						\
	static type cq_read_##name(struct ibv_cq_ex *ibv)			\
	{									\
		const struct sroce_cqe *cqe = cq_ex_to_scq(ibv)->cqe;		\
										\
		return value;							\
	}

CQ_READ(enum ibv_wc_opcode, opcode, (enum ibv_wc_opcode)wc_of(cqe)->opcode)
CQ_READ(uint32_t, vendor_err, wc_of(cqe)->vendor_err)
CQ_READ(uint32_t, byte_len, wc_of(cqe)->byte_len)
CQ_READ(__be32, imm_data, wc_of(cqe)->ex.imm_data)
CQ_READ(uint32_t, qp_num, wc_of(cqe)->qp_num)
CQ_READ(uint32_t, src_qp, wc_of(cqe)->src_qp)
CQ_READ(unsigned int, wc_flags, wc_of(cqe)->wc_flags)
CQ_READ(uint32_t, slid, wc_of(cqe)->slid)
CQ_READ(uint8_t, sl, wc_of(cqe)->sl)
CQ_READ(uint8_t, dlid_path_bits, wc_of(cqe)->dlid_path_bits)
CQ_READ(uint64_t, completion_ts, cqe->monotonic_ns)
CQ_READ(uint64_t, completion_wallclock_ns, cqe->realtime_ns)

static void cq_fill(struct ibv_cq_ex *cq, uint64_t wc_flags)
{
	cq->start_poll = cq_start_poll;
	cq->next_poll = cq_next_poll;
	cq->end_poll = cq_end_poll;
	cq->read_opcode = cq_read_opcode;
	cq->read_vendor_err = cq_read_vendor_err;
	cq->read_wc_flags = cq_read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		cq->read_byte_len = cq_read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		cq->read_imm_data = cq_read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		cq->read_qp_num = cq_read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		cq->read_src_qp = cq_read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		cq->read_slid = cq_read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		cq->read_sl = cq_read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		cq->read_dlid_path_bits = cq_read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		cq->read_completion_ts = cq_read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		cq->read_completion_wallclock_ns = cq_read_completion_wallclock_ns;
}

/* ---------------------------------------------------------------- life */

static int cq_check(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr)
{
	if (attr->comp_mask & ~(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD) ||
	    attr->wc_flags & ~(uint64_t)WC_EX_SUPPORTED)
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	    attr->flags & ~(IBV_CREATE_CQ_ATTR_SINGLE_THREADED |
			    IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN))
		return EOPNOTSUPP;
	if (attr->wc_flags & WC_EX_TIMES && !(to_scontext(context)->ext & SROCE_EXT_CQE))
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD && !to_spd(attr->parent_domain)->base)
		return EINVAL;
	return 0;
}

static int cq_command(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr,
		      struct sroce_cq *cq)
{
	struct create_cq_cmd cmd = {};
	struct create_cq_resp resp = {};
	int err;

	err = sroce_ring_reserve(&cq->ring, cq->pd, SROCE_RESOURCE_CQ, attr->cqe,
				 sizeof(struct sroce_cqe), &cmd.drv.ring);
	if (err)
		return err;
#if IBVERBS_PABI_VERSION >= 59
	err = ibv_cmd_create_cq_ex(context, attr, NULL, &cq->ibv, &cmd.ibv, sizeof(cmd),
				   &resp.ibv, sizeof(resp), 0);
#else
	err = ibv_cmd_create_cq_ex(context, attr, &cq->ibv, &cmd.ibv, sizeof(cmd), &resp.ibv,
				   sizeof(resp), 0);
#endif
	if (err)
		return err;
	err = sroce_ring_attach(&cq->ring, context, &resp.drv.mi);
	if (err)
		ibv_cmd_destroy_cq(&cq->ibv.cq);
	return err;
}

static struct sroce_cq *cq_create(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct sroce_cq *cq;
	int err;

	err = cq_check(context, attr);
	if (err) {
		errno = err;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD)
		cq->pd = to_spd(attr->parent_domain);
	sroce_lock_init(&cq->lock, cq->pd);
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	    attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED)
		cq->lock.off = true;
	err = cq_command(context, attr, cq);
	if (err) {
		sroce_ring_release(&cq->ring);
		free(cq);
		errno = err;
		return NULL;
	}
	if (cq->pd)
		atomic_fetch_add(&cq->pd->uses, 1);
	return cq;
}

struct ibv_cq *sroce_create_cq(struct ibv_context *context, int cqe,
			       struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe,
		.channel = channel,
		.comp_vector = comp_vector,
	};
	struct sroce_cq *cq;

	if (cqe <= 0) {
		errno = EINVAL;
		return NULL;
	}
	cq = cq_create(context, &attr);
	return cq ? &cq->ibv.cq : NULL;
}

struct ibv_cq_ex *sroce_create_cq_ex(struct ibv_context *context,
				     struct ibv_cq_init_attr_ex *attr)
{
	struct sroce_cq *cq = cq_create(context, attr);

	if (!cq)
		return NULL;
	cq_fill(&cq->ibv.cq_ex, attr->wc_flags);
	return &cq->ibv.cq_ex;
}

int sroce_modify_cq(struct ibv_cq *ibv, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq cmd = {};

	return ibv_cmd_modify_cq(ibv, attr, &cmd, sizeof(cmd));
}

/* The kernel moves what is not polled yet, so nobody may poll meanwhile */
static int cq_resize_locked(struct sroce_cq *cq, int cqe)
{
	struct resize_cq_resp resp = {};
	struct resize_cq_cmd cmd = {};
	struct sroce_ring ring = {};
	int err;

	err = sroce_ring_reserve(&ring, cq->pd, SROCE_RESOURCE_CQ, cqe, sizeof(struct sroce_cqe),
				 &cmd.drv.ring);
	if (err)
		return err;
	err = ibv_cmd_resize_cq(&cq->ibv.cq, cqe, &cmd.ibv, sizeof(cmd), &resp.ibv, sizeof(resp));
	if (err) {
		sroce_ring_release(&ring);
		return err;
	}
	/* from here on the kernel fills the new ring: there is no way back */
	err = sroce_ring_attach(&ring, cq->ibv.cq.context, &resp.drv.mi);
	if (err)
		return err;
	sroce_ring_release(&cq->ring);
	cq->ring = ring;
	return 0;
}

int sroce_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct sroce_cq *cq = to_scq(ibv);
	int err;

	if (cqe <= 0)
		return EINVAL;
	sroce_lock_take(&cq->lock);
	err = cq_resize_locked(cq, cqe);
	sroce_lock_drop(&cq->lock);
	return err;
}

int sroce_destroy_cq(struct ibv_cq *ibv)
{
	struct sroce_cq *cq = to_scq(ibv);
	int err = ibv_cmd_destroy_cq(ibv);

	if (err)
		return err;
	sroce_ring_release(&cq->ring);
	if (cq->pd)
		atomic_fetch_sub(&cq->pd->uses, 1);
	free(cq);
	return 0;
}
