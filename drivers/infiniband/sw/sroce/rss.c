// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Receive side scaling.  A raw packet queue pair with an indirection table has no receive
 * queue: a hash of a frame's addresses and ports chooses one of the table's, each with a
 * completion queue of its own.  Such a receive queue is a queue pair that only receives, and
 * that nothing but the table leads to.
 */
#include <linux/slab.h>
#include <rdma/ib_user_verbs.h>
#include "device.h"
#include "flow.h"
#include "qp.h"
#include "raw.h"
#include "rss.h"

/* What libibverbs calls these, enum ibv_rx_hash_function_flags and ibv_rx_hash_fields */
#define SROCE_RX_HASH_TOEPLITZ		BIT(0)
#define SROCE_RX_HASH_SRC_IPV4		BIT(0)
#define SROCE_RX_HASH_DST_IPV4		BIT(1)
#define SROCE_RX_HASH_SRC_IPV6		BIT(2)
#define SROCE_RX_HASH_DST_IPV6		BIT(3)
#define SROCE_RX_HASH_SRC_PORT_TCP	BIT(4)
#define SROCE_RX_HASH_DST_PORT_TCP	BIT(5)
#define SROCE_RX_HASH_SRC_PORT_UDP	BIT(6)
#define SROCE_RX_HASH_DST_PORT_UDP	BIT(7)
#define SROCE_RX_HASH_ALL		GENMASK(7, 0)

/* Addresses and ports of IPv6 */
#define SROCE_RSS_INPUT			36

/**
 * struct sroce_rss - how a queue pair divides what it receives
 * @table: its receive queues; the queue pair has a reference
 * @fields: SROCE_RX_HASH_*
 * @key: of the Toeplitz function
 */
struct sroce_rss {
	struct ib_rwq_ind_table	*table;
	u32			fields;
	u8			key[SROCE_RSS_KEY_BYTES];
};

/**
 * struct sroce_wq - a receive queue of an indirection table
 * @ibwq: the core's part
 * @qp: what receives
 */
struct sroce_wq {
	struct ib_wq	ibwq;
	struct sroce_qp	qp;
};

static struct sroce_wq *to_swq(struct ib_wq *ibwq)
{
	return container_of(ibwq, struct sroce_wq, ibwq);
}

/**
 * sroce_rss_create - have a queue pair divide what it receives
 * @qp: raw packet queue pair that is being created
 * @table: among these
 * @udata: struct sroce_create_rss_qp_cmd
 *
 * Context: process.  Return: 0, -EINVAL, -EOPNOTSUPP for a hash that we do not have, -ENOMEM,
 * -EFAULT.
 */
int sroce_rss_create(struct sroce_qp *qp, struct ib_rwq_ind_table *table, struct ib_udata *udata)
{
	struct sroce_create_rss_qp_cmd cmd;
	struct sroce_rss *rss;
	int err;

	if (!udata || udata->inlen < sizeof(cmd))
		return -EINVAL;
	err = ib_copy_from_udata(&cmd, udata, sizeof(cmd));
	if (err)
		return err;
	if (cmd.hash.function != SROCE_RX_HASH_TOEPLITZ ||
	    cmd.hash.fields & ~(u64)SROCE_RX_HASH_ALL)
		return -EOPNOTSUPP;
	if (cmd.hash.key_length != SROCE_RSS_KEY_BYTES ||
	    memchr_inv(cmd.hash.reserved, 0, sizeof(cmd.hash.reserved)))
		return -EINVAL;
	rss = kzalloc(sizeof(*rss), GFP_KERNEL_ACCOUNT);
	if (!rss)
		return -ENOMEM;
	rss->table = table;
	rss->fields = cmd.hash.fields;
	memcpy(rss->key, cmd.hash.key, sizeof(rss->key));
	qp->rss = rss;
	return 0;
}

/* The input of the hash: those fields that are wanted, in this order; its length */
static u32 sroce_rss_input(const struct sroce_rss *rss, const struct sroce_flow_key *key, u8 *input)
{
	bool v6 = key->l3 == 6, udp = key->protocol == IPPROTO_UDP;
	u32 src = v6 ? SROCE_RX_HASH_SRC_IPV6 : SROCE_RX_HASH_SRC_IPV4;
	u32 dst = v6 ? SROCE_RX_HASH_DST_IPV6 : SROCE_RX_HASH_DST_IPV4;
	u32 sport = udp ? SROCE_RX_HASH_SRC_PORT_UDP : SROCE_RX_HASH_SRC_PORT_TCP;
	u32 dport = udp ? SROCE_RX_HASH_DST_PORT_UDP : SROCE_RX_HASH_DST_PORT_TCP;
	/* the first of several fragments goes where the others go, which have no ports */
	bool ports = key->l4 && !(key->flags & IB_IPV4_MORE_FRAG);
	u32 bytes = v6 ? 16 : 4, n = 0;

	if (!key->l3)
		return 0;
	if (rss->fields & src) {
		memcpy(input + n, key->saddr, bytes);
		n += bytes;
	}
	if (rss->fields & dst) {
		memcpy(input + n, key->daddr, bytes);
		n += bytes;
	}
	if (ports && rss->fields & sport) {
		memcpy(input + n, &key->sport, sizeof(key->sport));
		n += sizeof(key->sport);
	}
	if (ports && rss->fields & dport) {
		memcpy(input + n, &key->dport, sizeof(key->dport));
		n += sizeof(key->dport);
	}
	return n;
}

static u32 sroce_rss_toeplitz(const u8 *key, const u8 *input, u32 bytes)
{
	u32 window = key[0] << 24 | key[1] << 16 | key[2] << 8 | key[3];
	u32 hash = 0, i, bit;

	/* the key is four bytes longer than the longest input */
	for (i = 0; i < bytes; i++) {
		for (bit = 0; bit < 8; bit++) {
			if (input[i] & 0x80 >> bit)
				hash ^= window;
			window = window << 1 | (key[i + 4] >> (7 - bit) & 1);
		}
	}
	return hash;
}

/**
 * sroce_rss_receive - give frames to the receive queue that is theirs
 * @qp: queue pair with an indirection table that the caller keeps alive
 * @key: the frames' headers
 * @frames: frames, as for sroce_raw_receive()
 * @wc_flags: likewise
 *
 * Those without any of the wanted fields go to the first.
 * Context: softirqs disabled, no lock held.
 */
void sroce_rss_receive(struct sroce_qp *qp, const struct sroce_flow_key *key,
		       struct sk_buff *frames, int wc_flags)
{
	const struct sroce_rss *rss = qp->rss;
	u8 input[SROCE_RSS_INPUT];
	u32 index;

	static_assert(SROCE_RSS_INPUT + sizeof(u32) <= SROCE_RSS_KEY_BYTES);
	index = sroce_rss_toeplitz(rss->key, input, sroce_rss_input(rss, key, input));
	index &= (1u << rss->table->log_ind_tbl_size) - 1;
	/* it stays as long as the table, and that as long as the queue pair */
	sroce_raw_receive(&to_swq(rss->table->ind_tbl[index])->qp, frames, wc_flags);
}

/* An event of what receives is one of the receive queue */
static void sroce_wq_event(struct ib_event *event, void *context)
{
	struct sroce_wq *wq = context;
	struct ib_event of_wq = {
		.device = event->device,
		.element.wq = &wq->ibwq,
		.event = IB_EVENT_WQ_FATAL,
	};

	if (wq->ibwq.event_handler)
		wq->ibwq.event_handler(&of_wq, wq->ibwq.wq_context);
}

static int sroce_wq_check(const struct ib_wq_init_attr *init, const struct ib_udata *udata)
{
	if (init->wq_type != IB_WQT_RQ || init->create_flags)
		return -EOPNOTSUPP;
	if (!init->max_wr || init->max_wr > SROCE_MAX_WR || init->max_sge > SROCE_MAX_SGE ||
	    !udata || udata->outlen < sizeof(struct sroce_create_wq_resp))
		return -EINVAL;
	return 0;
}

static int sroce_wq_create(struct sroce_wq *wq, struct ib_wq_init_attr *attr,
			   struct ib_udata *udata)
{
	struct ib_qp_init_attr init = {
		.cap.max_recv_wr = attr->max_wr,
		.cap.max_recv_sge = attr->max_sge,
		.qp_type = IB_QPT_RAW_PACKET,
	};
	struct sroce_create_wq_resp resp = {};
	struct sroce_create_wq_cmd cmd = {};
	int err = 0;

	if (udata->inlen >= sizeof(cmd))
		err = ib_copy_from_udata(&cmd, udata, sizeof(cmd));
	if (!err)
		err = sroce_qp_create_half(&wq->qp, &init, udata, &cmd.ring, &resp.mi);
	if (err)
		return err;
	err = ib_copy_to_udata(udata, &resp, sizeof(resp));
	if (err) {
		sroce_qp_end(&wq->qp);
		return err;
	}
	attr->max_wr = init.cap.max_recv_wr;
	attr->max_sge = init.cap.max_recv_sge;
	return 0;
}

/**
 * sroce_create_wq - ib_device_ops.create_wq
 * @pd: protection domain
 * @init: what is wanted; on return, what there is
 * @udata: struct sroce_create_wq_cmd; answers with struct sroce_create_wq_resp
 *
 * Return: the receive queue, -EINVAL, -EOPNOTSUPP, -ENOMEM, -EFAULT.
 */
struct ib_wq *sroce_create_wq(struct ib_pd *pd, struct ib_wq_init_attr *init,
			      struct ib_udata *udata)
{
	struct sroce_wq *wq;
	struct ib_qp *ibqp;
	int err;

	err = sroce_wq_check(init, udata);
	if (err)
		return ERR_PTR(err);
	wq = kzalloc(sizeof(*wq), GFP_KERNEL_ACCOUNT);
	if (!wq)
		return ERR_PTR(-ENOMEM);
	ibqp = &wq->qp.ibqp;
	ibqp->device = pd->device;
	ibqp->pd = pd;
	ibqp->recv_cq = init->cq;
	ibqp->qp_type = IB_QPT_RAW_PACKET;
	ibqp->event_handler = sroce_wq_event;
	ibqp->qp_context = wq;
	wq->ibwq.event_handler = init->event_handler;
	wq->ibwq.wq_context = init->wq_context;
	err = sroce_wq_create(wq, init, udata);
	if (err) {
		kfree(wq);
		return ERR_PTR(err);
	}
	wq->ibwq.wq_num = ibqp->qp_num;
	wq->ibwq.state = IB_WQS_RESET;
	return &wq->ibwq;
}

static enum ib_qp_state sroce_wq_state(enum ib_wq_state state)
{
	switch (state) {
	case IB_WQS_RESET:
		return IB_QPS_RESET;
	case IB_WQS_RDY:
		return IB_QPS_RTR;
	default:
		return IB_QPS_ERR;
	}
}

/**
 * sroce_modify_wq - ib_device_ops.modify_wq
 * @ibwq: receive queue
 * @attr: new values
 * @mask: which of them, IB_WQ_*
 * @udata: nothing in it
 *
 * Return: 0, -EINVAL, -EOPNOTSUPP.
 */
int sroce_modify_wq(struct ib_wq *ibwq, struct ib_wq_attr *attr, u32 mask, struct ib_udata *udata)
{
	int from = mask & IB_WQ_CUR_STATE ? sroce_wq_state(attr->curr_wq_state) : -1;
	int err;

	if (mask & IB_WQ_FLAGS)
		return -EOPNOTSUPP;
	if (!(mask & IB_WQ_STATE))
		return 0;
	err = sroce_qp_move(&to_swq(ibwq)->qp, from, sroce_wq_state(attr->wq_state));
	if (!err)
		ibwq->state = attr->wq_state;
	return err;
}

/**
 * sroce_destroy_wq - ib_device_ops.destroy_wq
 * @ibwq: receive queue that is in no table: the core counts them
 * @udata: nothing in it
 *
 * Return: 0.
 */
int sroce_destroy_wq(struct ib_wq *ibwq, struct ib_udata *udata)
{
	struct sroce_wq *wq = to_swq(ibwq);

	sroce_qp_end(&wq->qp);
	kfree(wq);
	return 0;
}

/**
 * sroce_create_rwq_table - ib_device_ops.create_rwq_ind_table
 * @ibtable: allocated by the core, which keeps the receive queues in it
 * @init: how many they are
 * @udata: nothing in it
 *
 * Return: 0, -EINVAL.
 */
int sroce_create_rwq_table(struct ib_rwq_ind_table *ibtable,
			   struct ib_rwq_ind_table_init_attr *init, struct ib_udata *udata)
{
	if (1u << init->log_ind_tbl_size > SROCE_MAX_RWQ_TABLE)
		return -EINVAL;
	ibtable->ind_tbl_num = init->ind_tbl[0]->wq_num;
	return 0;
}

/**
 * sroce_destroy_rwq_table - ib_device_ops.destroy_rwq_ind_table
 * @ibtable: table that no queue pair uses: the core counts them
 *
 * Return: 0.
 */
int sroce_destroy_rwq_table(struct ib_rwq_ind_table *ibtable)
{
	return 0;
}
