// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Receive work requests, and shared receive queues */
#include <errno.h>
#include <stdlib.h>
#include "sroce.h"

struct create_srq_cmd {
	struct ibv_create_srq		ibv;
	struct sroce_create_srq_cmd	drv;
};

struct create_xsrq_cmd {
	struct ibv_create_xsrq		ibv;
	struct sroce_create_srq_cmd	drv;
};

struct create_srq_resp {
	struct ib_uverbs_create_srq_resp	ibv;
	struct sroce_create_srq_resp		drv;
};

struct modify_srq_cmd {
	struct ibv_modify_srq		ibv;
	struct sroce_modify_srq_cmd	drv;
};

static_assert(offsetof(struct create_srq_cmd, drv) == sizeof(struct ibv_create_srq) &&
	      offsetof(struct create_xsrq_cmd, drv) == sizeof(struct ibv_create_xsrq) &&
	      offsetof(struct create_srq_resp, drv) == sizeof(struct ib_uverbs_create_srq_resp) &&
	      offsetof(struct modify_srq_cmd, drv) == sizeof(struct ibv_modify_srq),
	      "the driver's part follows at once");

/**
 * sroce_recv_wqe_size - bytes of a receive work request
 * @max_sge: its scatter entries
 */
size_t sroce_recv_wqe_size(uint32_t max_sge)
{
	return sizeof(struct sroce_recv_wqe) + (max_sge ?: 1) * sizeof(struct sroce_sge);
}

static void recv_wqe_fill(struct sroce_recv_wqe *wqe, const struct ibv_recv_wr *wr)
{
	int i;

	wqe->wr_id = wr->wr_id;
	wqe->data.num_sge = wr->num_sge;
	for (i = 0; i < wr->num_sge; i++) {
		wqe->sge[i].addr = wr->sg_list[i].addr;
		wqe->sge[i].length = wr->sg_list[i].length;
		wqe->sge[i].lkey = wr->sg_list[i].lkey;
	}
}

/**
 * sroce_rq_post - post receive work requests
 * @rq: receive queue
 * @wr: chain of them
 * @bad: the first that was not posted
 * @doorbell: whether the ring's doorbell means anything
 * @ring: whether the kernel has to be called
 *
 * Return: 0, EINVAL for too many entries, ENOMEM when the queue is full.
 */
int sroce_rq_post(struct sroce_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad,
		  bool doorbell, bool *ring)
{
	uint32_t next;
	int err = 0;

	sroce_lock_take(&rq->lock);
	for (next = rq->ring.index; wr; wr = wr->next) {
		if (unlikely(wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)) {
			err = EINVAL;
			break;
		}
		if (unlikely(sroce_ring_full(&rq->ring, next))) {
			err = ENOMEM;
			break;
		}
		recv_wqe_fill(sroce_ring_element(&rq->ring, next), wr);
		next = sroce_ring_next(&rq->ring, next);
	}
	*ring = sroce_ring_produce(&rq->ring, next, doorbell) && doorbell;
	sroce_lock_drop(&rq->lock);
	if (err)
		*bad = wr;
	return err;
}

int sroce_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	bool ring;

	/* an SRQ is looked at when a message comes */
	return sroce_rq_post(&to_ssrq(ibv)->rq, wr, bad, false, &ring);
}

static struct sroce_srq *srq_alloc(struct ibv_pd *pd, const struct ibv_srq_attr *attr,
				   struct sroce_user_ring *user)
{
	struct sroce_srq *srq = calloc(1, sizeof(*srq));
	int err;

	if (!srq)
		return NULL;
	sroce_lock_init(&srq->rq.lock, to_spd(pd));
	err = sroce_ring_reserve(&srq->rq.ring, to_spd(pd), SROCE_RESOURCE_SRQ, attr->max_wr,
				 sroce_recv_wqe_size(attr->max_sge), user);
	if (err) {
		free(srq);
		errno = err;
		return NULL;
	}
	return srq;
}

/* The kernel answered: either it is ready to be used, or it goes */
static struct ibv_srq *srq_finish(struct sroce_srq *srq, struct ibv_context *context, int err,
				  uint32_t max_sge, const struct create_srq_resp *resp)
{
	if (!err) {
		err = sroce_ring_attach(&srq->rq.ring, context, &resp->drv.mi);
		if (err)
			ibv_cmd_destroy_srq(&srq->ibv.srq);
	}
	if (err) {
		sroce_ring_release(&srq->rq.ring);
		free(srq);
		errno = err;
		return NULL;
	}
	srq->rq.max_sge = max_sge;
	srq->number = resp->drv.srq_num;
	return &srq->ibv.srq;
}

struct ibv_srq *sroce_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct create_srq_resp resp = {};
	struct create_srq_cmd cmd = {};
	struct sroce_srq *srq;
	int err;

	srq = srq_alloc(pd, &attr->attr, &cmd.drv.ring);
	if (!srq)
		return NULL;
	err = ibv_cmd_create_srq(pd, &srq->ibv.srq, attr, &cmd.ibv, sizeof(cmd), &resp.ibv,
				 sizeof(resp));
	return srq_finish(srq, pd->context, err, attr->attr.max_sge, &resp);
}

static int srq_check(const struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD))
		return EINVAL;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) || attr->srq_type == IBV_SRQT_BASIC)
		return 0;
	if (attr->srq_type != IBV_SRQT_XRC)
		return EOPNOTSUPP;
	return (attr->comp_mask & xrc) == xrc ? 0 : EINVAL;
}

struct ibv_srq *sroce_create_srq_ex(struct ibv_context *context,
				    struct ibv_srq_init_attr_ex *attr)
{
	struct create_srq_resp resp = {};
	struct create_xsrq_cmd cmd = {};
	struct sroce_srq *srq;
	int err;

	err = srq_check(attr);
	if (err) {
		errno = err;
		return NULL;
	}
	/* the kernel's command for extended ones knows no plain ones in old versions */
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) || attr->srq_type == IBV_SRQT_BASIC)
		return sroce_create_srq(attr->pd, (struct ibv_srq_init_attr *)attr);
	srq = srq_alloc(attr->pd, &attr->attr, &cmd.drv.ring);
	if (!srq)
		return NULL;
	err = ibv_cmd_create_srq_ex(context, &srq->ibv, attr, &cmd.ibv, sizeof(cmd), &resp.ibv,
				    sizeof(resp));
	return srq_finish(srq, context, err, attr->attr.max_sge, &resp);
}

static int srq_resize_locked(struct sroce_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct sroce_mmap_info mi = {};
	struct modify_srq_cmd cmd = { .drv.mmap_info_addr = (uintptr_t)&mi };
	struct sroce_ring ring = {};
	int err;

	err = ibv_cmd_modify_srq(&srq->ibv.srq, attr, mask, &cmd.ibv, sizeof(cmd));
	if (err)
		return err;
	err = sroce_ring_attach(&ring, srq->ibv.srq.context, &mi);
	if (err)
		return err;
	sroce_ring_release(&srq->rq.ring);
	ring.index = sroce_load_acquire(&ring.queue->producer_index) & ring.mask;
	srq->rq.ring = ring;
	return 0;
}

int sroce_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	struct sroce_srq *srq = to_ssrq(ibv);
	struct ibv_modify_srq cmd;
	int err;

	if (!(mask & IBV_SRQ_MAX_WR))
		return ibv_cmd_modify_srq(ibv, attr, mask, &cmd, sizeof(cmd));
	/* the kernel moves what is posted: nobody may post meanwhile */
	sroce_lock_take(&srq->rq.lock);
	err = srq_resize_locked(srq, attr, mask);
	sroce_lock_drop(&srq->rq.lock);
	return err;
}

int sroce_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd;

	return ibv_cmd_query_srq(ibv, attr, &cmd, sizeof(cmd));
}

int sroce_get_srq_num(struct ibv_srq *ibv, uint32_t *number)
{
	*number = to_ssrq(ibv)->number;
	return 0;
}

int sroce_destroy_srq(struct ibv_srq *ibv)
{
	struct sroce_srq *srq = to_ssrq(ibv);
	int err = ibv_cmd_destroy_srq(ibv);

	if (err)
		return err;
	sroce_ring_release(&srq->rq.ring);
	free(srq);
	return 0;
}
