// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What "rdma -dd resource show" tells of our objects beyond what the core knows: how far a
 * queue pair is, what waits in the queues, what a memory region is.  An object is looked at
 * with its lock held, and told of when that is dropped.
 */
#include <net/netlink.h>
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>
#include "cq.h"
#include "mr.h"
#include "qp.h"
#include "restrack.h"
#include "srq.h"

#define SROCE_MAX_DETAILS	16

/**
 * struct sroce_details - what is told of an object
 * @num: how much
 * @detail: names, each with a word, or with a number where there is none
 */
struct sroce_details {
	int	num;
	struct {
		const char	*name;
		const char	*word;
		u32		value;
	} detail[SROCE_MAX_DETAILS];
};

static void sroce_number(struct sroce_details *d, const char *name, u32 value)
{
	if (WARN_ON_ONCE(d->num == SROCE_MAX_DETAILS))
		return;
	d->detail[d->num].name = name;
	d->detail[d->num].word = NULL;
	d->detail[d->num++].value = value;
}

static void sroce_word(struct sroce_details *d, const char *name, const char *word)
{
	sroce_number(d, name, 0);
	d->detail[d->num - 1].word = word;
}

static void sroce_yes_no(struct sroce_details *d, const char *name, bool yes)
{
	sroce_word(d, name, yes ? "yes" : "no");
}

static int sroce_put_details(struct sk_buff *msg, const struct sroce_details *d)
{
	struct nlattr *table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	int i, err = 0;

	if (!table)
		return -EMSGSIZE;
	for (i = 0; i < d->num && !err; i++) {
		if (d->detail[i].word)
			err = rdma_nl_put_driver_string(msg, d->detail[i].name, d->detail[i].word);
		else
			err = rdma_nl_put_driver_u32(msg, d->detail[i].name, d->detail[i].value);
	}
	if (err) {
		nla_nest_cancel(msg, table);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, table);
	return 0;
}

static u32 sroce_ring_size(const struct sroce_ring *ring)
{
	return ring->queue ? ring->mask : 0;
}

/* Work requests that were posted and have not completed */
static u32 sroce_ring_pending(const struct sroce_ring *ring)
{
	if (!ring->queue)
		return 0;
	return sroce_ring_distance(ring, ring->index, sroce_ring_producer(ring));
}

static const char *sroce_qp_doing(const struct sroce_qp *qp)
{
	if (qp->req.rnr_wait)
		return "waits-for-receiver";
	if (qp->req.recovery.active)
		return "repeats-lost";
	if (qp->req.una != qp->req.psn)
		return "waits-for-ack";
	return sroce_ring_pending(&qp->req.ring) ? "has-requests" : "idle";
}

/**
 * sroce_fill_qp - ib_device_ops.fill_res_qp_entry
 * @msg: where to
 * @ibqp: queue pair
 *
 * Context: process.  Return: 0 or -EMSGSIZE.
 */
int sroce_fill_qp(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct sroce_qp *qp = to_sqp(ibqp);
	struct sroce_details d = {};

	spin_lock_bh(&qp->lock);
	if (qp->dead) {		/* before 7.0 the core lists what is being destroyed */
		spin_unlock_bh(&qp->lock);
		return 0;
	}
	sroce_number(&d, "sq_size", sroce_ring_size(&qp->req.ring));
	sroce_number(&d, "sq_pending", sroce_ring_pending(&qp->req.ring));
	sroce_number(&d, "rq_size", sroce_ring_size(&qp->resp.rq.ring));
	sroce_number(&d, "rq_pending", sroce_ring_pending(&qp->resp.rq.ring));
	sroce_number(&d, "path_mtu", qp->mtu);
	sroce_number(&d, "udp_sport", qp->av ? be16_to_cpu(qp->av->udp.source) : 0);
	sroce_word(&d, "requester", sroce_qp_doing(qp));
	sroce_number(&d, "unacked_psn", qp->req.una);
	sroce_number(&d, "next_psn", qp->req.psn);
	sroce_number(&d, "window", qp->req.recovery.window);
	sroce_number(&d, "srtt_us", qp->req.recovery.srtt);
	sroce_number(&d, "retries_left", qp->req.retries);
	sroce_number(&d, "rnr_retries_left", qp->req.rnr_retries);
	sroce_number(&d, "rd_atomic_pending", qp->req.rd_atomic);
	sroce_number(&d, "expected_psn", qp->resp.psn);
	sroce_number(&d, "msn", qp->resp.msn);
	spin_unlock_bh(&qp->lock);
	return sroce_put_details(msg, &d);
}

static const char *sroce_cq_armed(const struct sroce_cq *cq)
{
	if (cq->armed & IB_CQ_NEXT_COMP)
		return "any";
	return cq->armed & IB_CQ_SOLICITED ? "solicited" : "no";
}

/**
 * sroce_fill_cq - ib_device_ops.fill_res_cq_entry
 * @msg: where to
 * @ibcq: completion queue
 *
 * Context: process.  Return: 0 or -EMSGSIZE.
 */
int sroce_fill_cq(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct sroce_cq *cq = to_scq(ibcq);
	struct sroce_details d = {};
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);	/* whoever's the ring is */
	if (cq->dead) {
		spin_unlock_irqrestore(&cq->lock, flags);
		return 0;
	}
	sroce_number(&d, "size", sroce_ring_size(&cq->ring));
	sroce_number(&d, "waiting", sroce_ring_distance(&cq->ring, sroce_ring_consumer(&cq->ring),
							cq->ring.index));
	sroce_word(&d, "notify", sroce_cq_armed(cq));
	sroce_number(&d, "moderate_count", cq->moderate_count);
	sroce_number(&d, "moderate_us", cq->moderate_us);
	sroce_yes_no(&d, "overrun", cq->overrun);
	spin_unlock_irqrestore(&cq->lock, flags);
	return sroce_put_details(msg, &d);
}

static const char * const sroce_mr_types[] = {
	[SROCE_MR_DMA]		= "all-memory",
	[SROCE_MR_USER]		= "user",
	[SROCE_MR_ODP]		= "on-demand",
	[SROCE_MR_DM]		= "device-memory",
	[SROCE_MR_DMABUF]	= "dma-buf",
	[SROCE_MR_FAST]		= "fast-registration",
};

/**
 * sroce_fill_mr - ib_device_ops.fill_res_mr_entry
 * @msg: where to
 * @ibmr: memory region
 *
 * Context: process.  Return: 0 or -EMSGSIZE.
 */
int sroce_fill_mr(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct sroce_mr *mr = to_smr(ibmr);
	struct sroce_details d = {};

	spin_lock_bh(&mr->lock);
	sroce_word(&d, "type", sroce_mr_types[mr->type]);
	sroce_yes_no(&d, "valid", mr->valid);
	sroce_yes_no(&d, "local_write", mr->access & IB_ACCESS_LOCAL_WRITE);
	sroce_yes_no(&d, "remote_read", mr->access & IB_ACCESS_REMOTE_READ);
	sroce_yes_no(&d, "remote_write", mr->access & IB_ACCESS_REMOTE_WRITE);
	sroce_yes_no(&d, "remote_atomic", mr->access & IB_ACCESS_REMOTE_ATOMIC);
	sroce_number(&d, "windows", mr->windows);
	spin_unlock_bh(&mr->lock);
	return sroce_put_details(msg, &d);
}

/**
 * sroce_fill_srq - ib_device_ops.fill_res_srq_entry, where the kernel has it
 * @msg: where to
 * @ibsrq: shared receive queue
 *
 * Context: process.  Return: 0 or -EMSGSIZE.
 */
int sroce_fill_srq(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct sroce_srq *srq = to_ssrq(ibsrq);
	struct sroce_details d = {};
	unsigned long flags;

	spin_lock_irqsave(&srq->rq.lock, flags);
	if (srq->dead) {
		spin_unlock_irqrestore(&srq->rq.lock, flags);
		return 0;
	}
	sroce_number(&d, "size", sroce_ring_size(&srq->rq.ring));
	sroce_number(&d, "pending", sroce_ring_pending(&srq->rq.ring));
	sroce_number(&d, "limit", srq->limit);
	sroce_number(&d, "max_sge", srq->rq.max_sge);
	spin_unlock_irqrestore(&srq->rq.lock, flags);
	return sroce_put_details(msg, &d);
}
