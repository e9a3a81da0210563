// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Receive queues of their own, and tables of them, for receive side scaling */
#include <errno.h>
#include <stdlib.h>
#include "sroce.h"

struct create_wq_cmd {
	struct ibv_create_wq		ibv;
	struct sroce_create_wq_cmd	drv;
};

struct create_wq_resp {
	struct ib_uverbs_ex_create_wq_resp	ibv;
	struct sroce_create_wq_resp		drv;
};

static_assert(offsetof(struct create_wq_cmd, drv) == sizeof(struct ibv_create_wq) &&
	      offsetof(struct create_wq_resp, drv) == sizeof(struct ib_uverbs_ex_create_wq_resp),
	      "the driver's part follows at once");

struct sroce_wq {
	struct ibv_wq	ibv;
	struct sroce_rq	rq;
};

static struct sroce_wq *to_swq(struct ibv_wq *ibv)
{
	return container_of(ibv, struct sroce_wq, ibv);
}

/* There is no call to be made: in the error state the kernel looks by itself */
static int wq_post_recv(struct ibv_wq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	bool ring;

	if (unlikely(ibv->state == IBV_WQS_RESET)) {
		*bad = wr;
		return EINVAL;
	}
	return sroce_rq_post(&to_swq(ibv)->rq, wr, bad, true, &ring);
}

static int wq_command(struct sroce_wq *wq, struct ibv_context *context,
		      struct ibv_wq_init_attr *attr)
{
	struct create_wq_resp resp = {};
	struct create_wq_cmd cmd = {};
	int err;

	err = sroce_ring_reserve(&wq->rq.ring, to_spd(attr->pd), SROCE_RESOURCE_RQ, attr->max_wr,
				 sroce_recv_wqe_size(attr->max_sge), &cmd.drv.ring);
	if (err)
		return err;
	err = ibv_cmd_create_wq(context, attr, &wq->ibv, &cmd.ibv, sizeof(cmd), &resp.ibv,
				sizeof(resp));
	if (err)
		return err;
	err = sroce_ring_attach(&wq->rq.ring, context, &resp.drv.mi);
	if (err)
		ibv_cmd_destroy_wq(&wq->ibv);
	return err;
}

struct ibv_wq *sroce_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
	struct sroce_wq *wq;
	int err;

	if (attr->wq_type != IBV_WQT_RQ ||
	    (attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS && attr->create_flags)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	wq = calloc(1, sizeof(*wq));
	if (!wq)
		return NULL;
	sroce_lock_init(&wq->rq.lock, to_spd(attr->pd));
	err = wq_command(wq, context, attr);
	if (err) {
		sroce_ring_release(&wq->rq.ring);
		free(wq);
		errno = err;
		return NULL;
	}
	wq->rq.max_sge = attr->max_sge;
	wq->ibv.state = IBV_WQS_RESET;
	wq->ibv.post_recv = wq_post_recv;
	return &wq->ibv;
}

int sroce_modify_wq(struct ibv_wq *ibv, struct ibv_wq_attr *attr)
{
	struct ibv_modify_wq cmd = {};
	int err = ibv_cmd_modify_wq(ibv, attr, &cmd, sizeof(cmd));

	if (!err && attr->attr_mask & IBV_WQ_ATTR_STATE && attr->wq_state == IBV_WQS_RESET)
		sroce_cq_forget(to_scq(ibv->cq), ibv->wq_num);
	return err;
}

int sroce_destroy_wq(struct ibv_wq *ibv)
{
	struct sroce_wq *wq = to_swq(ibv);
	int err = ibv_cmd_destroy_wq(ibv);

	if (err)
		return err;
	sroce_cq_forget(to_scq(ibv->cq), ibv->wq_num);
	sroce_ring_release(&wq->rq.ring);
	free(wq);
	return 0;
}

struct ibv_rwq_ind_table *sroce_create_rwq_table(struct ibv_context *context,
						 struct ibv_rwq_ind_table_init_attr *attr)
{
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = {};
	struct ibv_rwq_ind_table *table = calloc(1, sizeof(*table));
	int err;

	if (!table)
		return NULL;
	err = ibv_cmd_create_rwq_ind_table(context, attr, table, &resp, sizeof(resp));
	if (err) {
		free(table);
		errno = err;
		return NULL;
	}
	return table;
}

int sroce_destroy_rwq_table(struct ibv_rwq_ind_table *table)
{
	int err = ibv_cmd_destroy_rwq_ind_table(table);

	if (!err)
		free(table);
	return err;
}
