// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Queue pairs: their life */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "sroce.h"

struct create_qp_cmd {
	struct ibv_create_qp_ex		ibv;
	struct sroce_create_rss_qp_cmd	drv;	/* the last of it for RSS only */
};

struct create_qp_resp {
	struct ib_uverbs_ex_create_qp_resp	ibv;
	struct sroce_create_qp_resp		drv;
};

static_assert(offsetof(struct create_qp_cmd, drv) == sizeof(struct ibv_create_qp_ex) &&
	      offsetof(struct create_qp_resp, drv) == sizeof(struct ib_uverbs_ex_create_qp_resp),
	      "the driver's part follows at once");

#define QP_ATTR_SUPPORTED (IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |	\
			   IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
#define QP_ATTR_RSS (IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH)

/* A raw packet queue pair that divides what it receives among other queues */
static bool qp_is_rss(const struct ibv_qp_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE;
}

static int qp_check_rss(const struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_rx_hash_conf *hash = &attr->rx_hash_conf;

	if (!(attr->comp_mask & QP_ATTR_RSS))
		return 0;
	if (attr->qp_type != IBV_QPT_RAW_PACKET || attr->cap.max_send_wr)
		return EOPNOTSUPP;
	if ((attr->comp_mask & QP_ATTR_RSS) != QP_ATTR_RSS)
		return EINVAL;
	return hash->rx_hash_key_len == sizeof(((struct sroce_rx_hash *)NULL)->key) ? 0 : EINVAL;
}

static int qp_check(const struct ibv_qp_init_attr_ex *attr)
{
	if (attr->comp_mask & ~(QP_ATTR_SUPPORTED | QP_ATTR_RSS))
		return EOPNOTSUPP;
	switch (attr->qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_XRC_SEND:
		if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD))
			return EINVAL;
		break;
	case IBV_QPT_XRC_RECV:
		if (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD))
			return EINVAL;
		break;
	default:
		return EOPNOTSUPP;
	}
	if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS && attr->create_flags)
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS &&
	    !sroce_qp_ex_supports(attr->qp_type, attr->send_ops_flags))
		return EOPNOTSUPP;
	return qp_check_rss(attr);
}

static bool qp_has_sq(const struct ibv_qp_init_attr_ex *attr)
{
	return attr->qp_type != IBV_QPT_XRC_RECV && !qp_is_rss(attr);
}

static bool qp_has_rq(const struct ibv_qp_init_attr_ex *attr)
{
	return !attr->srq && attr->qp_type != IBV_QPT_XRC_SEND &&
	       attr->qp_type != IBV_QPT_XRC_RECV && !qp_is_rss(attr);
}

static size_t send_wqe_size(const struct ibv_qp_cap *cap)
{
	size_t sges = (cap->max_send_sge ?: 1) * sizeof(struct sroce_sge);

	return sizeof(struct sroce_send_wqe) +
	       (sges > cap->max_inline_data ? sges : cap->max_inline_data);
}

static int qp_reserve(struct sroce_qp *qp, struct sroce_pd *pd,
		      const struct ibv_qp_init_attr_ex *attr, struct sroce_create_qp_cmd *cmd)
{
	int err = 0;

	if (qp_has_sq(attr))
		err = sroce_ring_reserve(&qp->sq.ring, pd, SROCE_RESOURCE_SQ,
					 attr->cap.max_send_wr, send_wqe_size(&attr->cap),
					 &cmd->sq);
	if (!err && qp_has_rq(attr))
		err = sroce_ring_reserve(&qp->rq.ring, pd, SROCE_RESOURCE_RQ,
					 attr->cap.max_recv_wr,
					 sroce_recv_wqe_size(attr->cap.max_recv_sge), &cmd->rq);
	return err;
}

static int qp_attach(struct sroce_qp *qp, struct ibv_context *context,
		     const struct ibv_qp_init_attr_ex *attr,
		     const struct sroce_create_qp_resp *resp)
{
	int err = 0;

	if (qp_has_sq(attr))
		err = sroce_ring_attach(&qp->sq.ring, context, &resp->sq_mi);
	if (!err && qp_has_rq(attr))
		err = sroce_ring_attach(&qp->rq.ring, context, &resp->rq_mi);
	return err;
}

static void qp_release(struct sroce_qp *qp)
{
	sroce_ring_release(&qp->sq.ring);
	sroce_ring_release(&qp->rq.ring);
	free(qp);
}

static void qp_set_hash(struct sroce_rx_hash *to, const struct ibv_rx_hash_conf *from)
{
	to->fields = from->rx_hash_fields_mask;
	to->function = from->rx_hash_function;
	to->key_length = from->rx_hash_key_len;
	memcpy(to->key, from->rx_hash_key, sizeof(to->key));
}

static int qp_command(struct sroce_qp *qp, struct ibv_context *context, struct sroce_pd *pd,
		      struct ibv_qp_init_attr_ex *attr)
{
	struct create_qp_resp resp = {};
	struct create_qp_cmd cmd = {};
	int err;

	err = qp_reserve(qp, pd, attr, &cmd.drv.qp);
	if (err)
		return err;
	if (qp_is_rss(attr))
		qp_set_hash(&cmd.drv.hash, &attr->rx_hash_conf);
	sroce_qp_ex_prepare(qp);
	err = ibv_cmd_create_qp_ex2(context, &qp->ibv, attr, &cmd.ibv, sizeof(cmd), &resp.ibv,
				    sizeof(resp)
#if IBVERBS_PABI_VERSION >= 64
				    , NULL
#endif
				    );
	if (err)
		return err;
	err = sroce_qp_ex_finish(qp, attr->qp_type, attr->send_ops_flags,
				 attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS);
	if (!err)
		err = qp_attach(qp, context, attr, &resp.drv);
	if (err)
		ibv_cmd_destroy_qp(&qp->ibv.qp);
	return err;
}

struct ibv_qp *sroce_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct sroce_pd *pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD ? to_spd(attr->pd) : NULL;
	struct sroce_qp *qp;
	int err;

	err = qp_check(attr);
	if (err) {
		errno = err;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	sroce_lock_init(&qp->sq.lock, pd);
	sroce_lock_init(&qp->rq.lock, pd);
	err = qp_command(qp, context, pd, attr);
	if (err) {
		qp_release(qp);
		errno = err;
		return NULL;
	}
	qp->sig_all = attr->sq_sig_all;
	qp->sq.max_sge = attr->cap.max_send_sge;
	qp->sq.max_inline = attr->cap.max_inline_data;
	qp->rq.max_sge = attr->cap.max_recv_sge;
	return &qp->ibv.qp;
}

struct ibv_qp *sroce_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {};
	struct ibv_qp *qp;

	memcpy(&ex, attr, sizeof(*attr));
	ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	ex.pd = pd;
	qp = sroce_create_qp_ex(pd->context, &ex);
	if (qp)
		attr->cap = ex.cap;
	return qp;
}

/* Another process's XRC receive queue pair */
struct ibv_qp *sroce_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	struct ib_uverbs_create_qp_resp resp;
	struct ibv_open_qp cmd;
	struct sroce_qp *qp;
	int err;

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	err = ibv_cmd_open_qp(context, &qp->ibv, sizeof(qp->ibv), attr, &cmd, sizeof(cmd), &resp,
			      sizeof(resp));
	if (err) {
		free(qp);
		errno = err;
		return NULL;
	}
	return &qp->ibv.qp;
}

int sroce_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask,
		   struct ibv_qp_init_attr *init)
{
	struct ibv_query_qp cmd;

	return ibv_cmd_query_qp(ibv, attr, mask, init, &cmd, sizeof(cmd));
}

/* As other devices have it: whoever polls later finds nothing of what was before */
static void qp_forget_completions(struct ibv_qp *ibv)
{
	sroce_cq_forget(ibv->recv_cq ? to_scq(ibv->recv_cq) : NULL, ibv->qp_num);
	if (ibv->send_cq != ibv->recv_cq)
		sroce_cq_forget(ibv->send_cq ? to_scq(ibv->send_cq) : NULL, ibv->qp_num);
}

/* What was posted and not completed is forgotten on RESET */
static void qp_forget(struct sroce_qp *qp)
{
	qp_forget_completions(&qp->ibv.qp);
	if (qp->sq.ring.queue) {
		sroce_lock_take(&qp->sq.lock);
		qp->sq.next = qp->sq.ring.index;
		qp->sq.ring.other = qp->sq.ring.index;
		sroce_lock_drop(&qp->sq.lock);
	}
}

int sroce_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	struct ib_uverbs_ex_modify_qp_resp resp;
	struct ibv_modify_qp_ex cmd_ex = {};
	struct ibv_modify_qp cmd = {};
	int err;

	if (mask & IBV_QP_RATE_LIMIT)
		err = ibv_cmd_modify_qp_ex(ibv, attr, mask, &cmd_ex, sizeof(cmd_ex), &resp,
					   sizeof(resp));
	else
		err = ibv_cmd_modify_qp(ibv, attr, mask, &cmd, sizeof(cmd));
	if (!err && mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET)
		qp_forget(to_sqp(ibv));
	return err;
}

int sroce_destroy_qp(struct ibv_qp *ibv)
{
	int err = ibv_cmd_destroy_qp(ibv);

	if (err)
		return err;
	qp_forget_completions(ibv);
	qp_release(to_sqp(ibv));
	return 0;
}

struct ibv_xrcd *sroce_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	struct verbs_xrcd *xrcd = calloc(1, sizeof(*xrcd));
	struct ib_uverbs_open_xrcd_resp resp = {};
	struct ibv_open_xrcd cmd = {};
	int err;

	if (!xrcd)
		return NULL;
	err = ibv_cmd_open_xrcd(context, xrcd, sizeof(*xrcd), attr, &cmd, sizeof(cmd), &resp,
				sizeof(resp));
	if (err) {
		free(xrcd);
		errno = err;
		return NULL;
	}
	return &xrcd->xrcd;
}

int sroce_close_xrcd(struct ibv_xrcd *ibv)
{
	struct verbs_xrcd *xrcd = container_of(ibv, struct verbs_xrcd, xrcd);
	int err = ibv_cmd_close_xrcd(xrcd);

	if (!err)
		free(xrcd);
	return err;
}
