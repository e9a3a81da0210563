// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue pairs: life, states and attributes (IBA volume 1, 10.2.4, 10.3.1 and
 * 11.2.5), and what happens after the lock is dropped.
 */
#include <linux/slab.h>
#include <linux/xarray.h>
#include <rdma/uverbs_ioctl.h>
#include "answer.h"
#include "complete.h"
#include "encap.h"
#include "mcast.h"
#include "port.h"
#include "qp.h"
#include "raw.h"
#include "respond.h"
#include "rss.h"
#include "send.h"
#include "trace.h"
#include "xrc.h"

#define SROCE_FIRST_QPN		16	/* 0 and 1 are special, some below are reserved */
#define SROCE_LAST_QPN		0xfffffe

/*
 * All queue pairs of all devices by number, so that a number is one of a kind
 * on this host.  Look-ups are RCU sections; an entry is erased a grace period
 * before its memory goes.
 */
static DEFINE_XARRAY_ALLOC(sroce_qps);
static u32 sroce_next_qpn = SROCE_FIRST_QPN;
static struct workqueue_struct *sroce_wq;

/**
 * sroce_qp_init - make the workers' queue
 *
 * Context: process.  Return: 0 or -ENOMEM.
 */
int sroce_qp_init(void)
{
	sroce_wq = alloc_workqueue("sroce", WQ_MEM_RECLAIM | SROCE_WQ_PERCPU, 0);
	return sroce_wq ? 0 : -ENOMEM;
}

/**
 * sroce_qp_exit - the reverse of sroce_qp_init(); there is no queue pair any more
 */
void sroce_qp_exit(void)
{
	destroy_workqueue(sroce_wq);
	WARN_ON(!xa_empty(&sroce_qps));
	xa_destroy(&sroce_qps);
}

static void sroce_qp_gone(struct kref *ref)
{
	complete(&container_of(ref, struct sroce_qp, ref)->gone);
}

/**
 * sroce_qp_put - drop a reference
 * @qp: queue pair
 *
 * Context: any.
 */
void sroce_qp_put(struct sroce_qp *qp)
{
	kref_put(&qp->ref, sroce_qp_gone);
}

/**
 * sroce_qp_find - the queue pair that a packet is for
 * @dev: device that has the destination address, for the general services
 * @qpn: number; 1 is the general services'
 *
 * The caller checks that the queue pair's device has that address too.
 * Context: any.  Return: the queue pair with a reference of the caller's, or NULL.
 */
struct sroce_qp *sroce_qp_find(const struct sroce_dev *dev, u32 qpn)
{
	struct sroce_qp *qp;

	rcu_read_lock();
	qp = qpn == IB_QPT_GSI ? rcu_dereference(dev->gsi) : xa_load(&sroce_qps, qpn);
	if (qp && !kref_get_unless_zero(&qp->ref))
		qp = NULL;
	rcu_read_unlock();
	return qp;
}

/**
 * sroce_qp_work_due - have the worker called when the lock is dropped
 * @qp: queue pair, locked
 * @when: now or later
 */
void sroce_qp_work_due(struct sroce_qp *qp, enum sroce_work when)
{
	qp->work_due = max(qp->work_due, when);
}

/* A packet may be in a queue of the stack for this long, at most */
#define SROCE_STREAM_JIFFIES	2

/**
 * sroce_stream_here - may packets of this stream be sent from this CPU?
 * @qp: queue pair, locked
 * @stream: its stream
 * @empty: none of its packets is under way
 * @when: when the worker of the CPU that may is to send what this one may not
 *
 * Return: whether they may; else that worker is called.
 */
bool sroce_stream_here(struct sroce_qp *qp, struct sroce_stream *stream, bool empty,
		       enum sroce_work when)
{
	/* whoever is at it transmits what we build */
	int cpu = qp->transmitting ? qp->transmit_cpu : smp_processor_id();

	if (stream->cpu != cpu && !empty &&
	    time_before(jiffies, stream->stamp + SROCE_STREAM_JIFFIES)) {
		qp->work_cpu = stream->cpu;
		sroce_qp_work_due(qp, when);
		return false;
	}
	stream->cpu = cpu;
	stream->stamp = jiffies;
	return true;
}

static void sroce_queue_work(struct sroce_qp *qp, enum sroce_work when, int cpu)
{
	bool pending;

	kref_get(&qp->ref);	/* the worker's */
	if (when == SROCE_WORK_NOW)
		pending = mod_delayed_work_on(cpu, sroce_wq, &qp->work, 0);
	else
		pending = !queue_delayed_work_on(cpu, sroce_wq, &qp->work,
						 when == SROCE_WORK_LATER ?
						 msecs_to_jiffies(2) : qp->resp.recheck);
	if (pending)
		sroce_qp_put(qp);	/* it has one already, and the caller too */
}

/**
 * sroce_qp_kick - have the worker send what was posted
 * @qp: queue pair that the caller keeps alive
 *
 * Context: any.
 */
void sroce_qp_kick(struct sroce_qp *qp)
{
	sroce_queue_work(qp, SROCE_WORK_NOW, WORK_CPU_UNBOUND);
}

/* What a doorbell asks for, and the worker without one */
static void sroce_qp_answer_ring(struct sroce_qp *qp)
	__must_hold(&qp->lock)
{
	bool rung = READ_ONCE(qp->rung);

	WRITE_ONCE(qp->rung, false);
	if (qp->dead)
		return;
	if (!rung || !sroce_coalesce_doorbell(qp))
		sroce_send_run(qp);
	if (qp->state == IB_QPS_ERR)	/* receives may have been posted as well */
		sroce_respond_flush(qp);
}

#define SROCE_RECHECK_MIN	max(HZ / 100, 1)
#define SROCE_RECHECK_MAX	HZ

/*
 * Receives that are posted in the error state complete as flushed, 10.3.1.5.  A
 * kernel user's call does that; a user only writes to the ring, so the worker has to
 * look there, less often the longer nothing comes.
 */
static void sroce_qp_recheck(struct sroce_qp *qp)
{
	struct sroce_responder *resp = &qp->resp;
	bool user = sroce_ring_is_user(&resp->rq.ring);

	if (user && sroce_rq_available(&resp->rq))
		resp->recheck = SROCE_RECHECK_MIN;
	else
		resp->recheck = min_t(unsigned long, resp->recheck * 2, SROCE_RECHECK_MAX);
	if (user)
		sroce_qp_work_due(qp, SROCE_WORK_RECHECK);
}

static void sroce_qp_work(struct work_struct *work)
{
	struct sroce_qp *qp = container_of(to_delayed_work(work), struct sroce_qp, work);

	spin_lock_bh(&qp->lock);
	if (qp->overrun && !qp->dead)
		sroce_qp_error(qp);
	if (qp->state == IB_QPS_ERR)
		sroce_qp_recheck(qp);
	/* a stream that this CPU may not send calls the worker of the right one */
	sroce_answer_run(qp);
	sroce_qp_answer_ring(qp);
	sroce_qp_unlock(qp);
	sroce_qp_put(qp);
}

/* Reports the events whose bits are set, with no lock held */
static void sroce_qp_report(struct sroce_qp *qp, u32 events)
{
	struct ib_event event = {
		.device = &qp->dev->ibdev,
		.element.qp = &qp->ibqp,
	};

	while (events) {
		event.event = __ffs(events);
		events &= events - 1;
		if (qp->ibqp.event_handler)
			qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
	}
}

/* Frames that one caller transmits, at the most, of a queue pair without a window */
#define SROCE_TRANSMIT_BUDGET	(8 * SROCE_TX_BUDGET)

/*
 * Transmits what is queued, in order: one caller at a time, and those that find
 * one at it leave theirs to him.  Softirqs are disabled, the lock is dropped.
 *
 * Of a stream there is no more than its window, or than this CPU builds itself.
 * Datagrams and raw frames can come from other CPUs without end; the worker goes on with
 * those, with raw frames on this CPU, to keep their order.
 */
static void sroce_qp_transmit(struct sroce_qp *qp)
	__must_hold(&qp->lock)
{
	struct sk_buff_head list;
	struct sk_buff *skb;
	u32 frames = 0;

	__skb_queue_head_init(&list);
	qp->transmitting = true;
	qp->transmit_cpu = smp_processor_id();
	while (!skb_queue_empty(&qp->tx)) {
		if (frames > SROCE_TRANSMIT_BUDGET &&
		    (sroce_qp_is_datagram(qp) || sroce_qp_is_raw(qp))) {
			if (sroce_qp_is_raw(qp))
				qp->work_cpu = qp->transmit_cpu;
			sroce_qp_work_due(qp, SROCE_WORK_NOW);
			break;
		}
		frames += skb_queue_len(&qp->tx);
		skb_queue_splice_init(&qp->tx, &list);
		spin_unlock(&qp->lock);
		while ((skb = __skb_dequeue(&list))) {
			if (unlikely(sroce_qp_is_raw(qp)))
				sroce_raw_transmit(qp->dev, skb);
			else
				sroce_transmit(qp->dev, skb);
		}
		spin_lock(&qp->lock);
	}
	qp->transmitting = false;
}

/* Drops the lock, after transmitting; returns the events to be reported */
static u32 sroce_qp_release(struct sroce_qp *qp)
	__releases(&qp->lock)
{
	struct sroce_srq *xrc_srq;
	enum sroce_work work;
	u32 events;

	if (!qp->transmitting && !skb_queue_empty(&qp->tx))
		sroce_qp_transmit(qp);
	work = qp->dead ? SROCE_WORK_NONE : qp->work_due;
	events = qp->events;
	xrc_srq = qp->resp.xrc_srq;
	qp->resp.xrc_srq = NULL;
	qp->work_due = SROCE_WORK_NONE;
	qp->events = 0;
	if (work)
		sroce_queue_work(qp, work, qp->work_cpu);
	qp->work_cpu = WORK_CPU_UNBOUND;	/* wherever that is then */
	spin_unlock(&qp->lock);
	sroce_xrc_leave(xrc_srq);
	return events;
}

/* Did somebody ring while the lock was held? */
static bool sroce_qp_was_rung(const struct sroce_qp *qp)
{
	smp_mb();	/* pairs with the one in sroce_qp_ring() */
	return READ_ONCE(qp->rung);
}

/* How often one CPU answers doorbells of another before its worker does */
#define SROCE_RING_ROUNDS	4

/**
 * sroce_qp_unlock - drop the lock and do what must not be done under it
 * @qp: queue pair, locked by spin_lock_bh(), that the caller keeps alive
 *
 * Answers doorbells, transmits frames, queues the worker, reports events, wakes
 * consumers.
 */
void sroce_qp_unlock(struct sroce_qp *qp)
	__releases(&qp->lock)
{
	int rounds = 0;
	u32 events = 0;

	do {
		if (READ_ONCE(qp->rung)) {
			if (rounds++ < SROCE_RING_ROUNDS)
				sroce_qp_answer_ring(qp);
			else
				sroce_qp_work_due(qp, SROCE_WORK_NOW);
		}
		events |= sroce_qp_release(qp);
		/* whoever has taken it since answers */
	} while (rounds <= SROCE_RING_ROUNDS && sroce_qp_was_rung(qp) && spin_trylock(&qp->lock));
	local_bh_enable();

	sroce_qp_report(qp, events);
	if (qp->ibqp.send_cq)
		sroce_cq_notify(to_scq(qp->ibqp.send_cq));
	if (qp->ibqp.recv_cq)
		sroce_cq_notify(to_scq(qp->ibqp.recv_cq));
	if (qp->ibqp.srq)
		sroce_srq_notify(to_ssrq(qp->ibqp.srq));
}

/**
 * sroce_qp_ring - have the requester run for what was posted
 * @qp: queue pair, not locked, that the caller keeps alive
 *
 * When another CPU has the lock, it is left to that one: it would otherwise be
 * waited for, while it copies and computes.
 * Context: process or softirq.
 */
void sroce_qp_ring(struct sroce_qp *qp)
{
	WRITE_ONCE(qp->rung, true);
	smp_mb();	/* pairs with sroce_qp_was_rung(): we get the lock, or it sees the ring */
	local_bh_disable();
	if (spin_trylock(&qp->lock))
		sroce_qp_unlock(qp);
	else
		local_bh_enable();
}

/**
 * sroce_qp_event - have an asynchronous event reported when the lock is dropped
 * @qp: queue pair, locked
 * @type: event
 */
void sroce_qp_event(struct sroce_qp *qp, enum ib_event_type type)
{
	qp->events |= BIT(type);
}

/**
 * sroce_qp_complete - add a completion
 * @qp: queue pair, locked
 * @ibcq: its send or receive CQ
 * @wc: completion
 * @solicited: it was a solicited message
 *
 * A CQ that is overrun takes the queue pair to the error state, 10.2.6.3.
 */
void sroce_qp_complete(struct sroce_qp *qp, struct ib_cq *ibcq, struct ib_wc *wc, bool solicited)
{
	trace_sroce_completion(qp, wc);
	if (!sroce_cq_add(to_scq(ibcq), wc, solicited) || qp->overrun)
		return;
	qp->overrun = true;
	sroce_qp_event(qp, IB_EVENT_QP_FATAL);
	sroce_qp_work_due(qp, SROCE_WORK_NOW);
}

static void sroce_qp_set_state(struct sroce_qp *qp, enum ib_qp_state state)
{
	WRITE_ONCE(qp->state, state);
	qp->attr.qp_state = state;
}

/**
 * sroce_qp_error - to the error state: everything posted completes as flushed
 * @qp: queue pair, locked
 */
void sroce_qp_error(struct sroce_qp *qp)
{
	if (qp->state == IB_QPS_ERR || qp->state == IB_QPS_RESET)
		return;
	sroce_qp_set_state(qp, IB_QPS_ERR);
	qp->resp.failed = true;
	qp->resp.nak = 0;
	qp->resp.ack_due = false;
	sroce_hold_purge(&qp->req.hold);
	sroce_hold_purge(&qp->resp.hold);
	sroce_complete_flush(qp);
	sroce_respond_flush(qp);
	qp->resp.recheck = SROCE_RECHECK_MIN;
	if (qp->ibqp.srq)
		sroce_qp_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
	else if (sroce_ring_is_user(&qp->resp.rq.ring))
		sroce_qp_work_due(qp, SROCE_WORK_RECHECK);
}

static void sroce_ring_reset(struct sroce_ring *ring)
{
	if (!ring->queue)
		return;
	ring->index = sroce_ring_producer(ring);
	sroce_ring_set_consumer(ring, ring->index);
	WRITE_ONCE(ring->queue->doorbell, ring->index);
}

/* Everything that a queue pair did before is forgotten */
static void sroce_qp_reset(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_responder *resp = &qp->resp;

	sroce_qp_set_state(qp, IB_QPS_RESET);
	if (cancel_delayed_work(&qp->work))
		sroce_qp_put(qp);	/* the work's; the caller has one too */
	qp->work_due = SROCE_WORK_NONE;
	__skb_queue_purge(&qp->tx);
	sroce_coalesce_stop(&qp->coalesce);
	sroce_recover_reset(qp);
	sroce_congestion_reset(qp);
	sroce_hold_purge(&req->hold);
	sroce_hold_purge(&resp->hold);
	sroce_ring_reset(&req->ring);
	req->next = req->ring.index;
	req->fresh = req->ring.index;
	req->gather_valid = false;
	req->scatter_valid = false;
	req->rd_atomic = 0;
	req->rnr_wait = false;
	req->gap = false;
	req->armed = false;
	sroce_ring_reset(&resp->rq.ring);
	if (resp->rq.ring.queue)
		sroce_ring_quiet(&resp->rq.ring);
	resp->recv.valid = false;
	resp->message = 0;
	resp->msn = 0;
	resp->nak = 0;
	resp->nak_sent = false;
	resp->not_ready = false;
	resp->ack_due = false;
	resp->failed = false;
	resp->resource_end = 0;
	resp->resource_next = 0;
	if (resp->resources)
		memset(resp->resources, 0, resp->num_resources * sizeof(*resp->resources));
	qp->comm_est = false;
	qp->overrun = false;
	qp->events = 0;
	sroce_cq_forget(qp->ibqp.send_cq ? to_scq(qp->ibqp.send_cq) : NULL, &qp->ibqp);
	sroce_cq_forget(qp->ibqp.recv_cq ? to_scq(qp->ibqp.recv_cq) : NULL, &qp->ibqp);
}

static int sroce_qp_check_cap(struct ib_device *ibdev, const struct ib_qp_init_attr *init)
{
	const struct ib_qp_cap *cap = &init->cap;

	if (cap->max_send_wr > SROCE_MAX_WR || cap->max_send_sge > SROCE_MAX_SGE ||
	    cap->max_inline_data > SROCE_MAX_INLINE ||
	    (!init->srq && (cap->max_recv_wr > SROCE_MAX_WR ||
			    cap->max_recv_sge > SROCE_MAX_SGE))) {
		ibdev_dbg(ibdev, "QP of %u+%u requests, %u+%u entries, %u inline: too large\n",
			  cap->max_send_wr, cap->max_recv_wr, cap->max_send_sge,
			  cap->max_recv_sge, cap->max_inline_data);
		return -EINVAL;
	}
	return 0;
}

/* An XRC initiator does not receive, and a target has no CQ of its own */
static bool sroce_cqs_ok(const struct ib_qp_init_attr *init)
{
	switch (init->qp_type) {
	case IB_QPT_XRC_INI:
		return init->send_cq;
	case IB_QPT_XRC_TGT:
		return init->xrcd;
	case IB_QPT_RAW_PACKET:
		if (init->rwq_ind_tbl)	/* what it receives completes where that says */
			return !init->recv_cq && !init->cap.max_send_wr && !init->srq;
		return init->send_cq && init->recv_cq;
	default:
		return init->send_cq && init->recv_cq;
	}
}

static int sroce_qp_check_init(struct ib_qp *ibqp, const struct ib_qp_init_attr *init)
{
	switch (init->qp_type) {
	case IB_QPT_RC:
	case IB_QPT_UC:
	case IB_QPT_UD:
		break;
	case IB_QPT_XRC_TGT:	/* the core does not say whose it is */
		break;
	case IB_QPT_XRC_INI:
		if (!ibqp->uobject)
			return -EOPNOTSUPP;
		break;
	case IB_QPT_RAW_PACKET:
		if (!ibqp->uobject || !sroce_raw_possible(to_sdev(ibqp->device)))
			return -EOPNOTSUPP;
		break;
	case IB_QPT_GSI:
		if (init->port_num != SROCE_PORT)
			return -EINVAL;
		if (rcu_access_pointer(to_sdev(ibqp->device)->gsi))
			return -EBUSY;
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (init->create_flags || (init->rwq_ind_tbl && init->qp_type != IB_QPT_RAW_PACKET))
		return -EOPNOTSUPP;
	if (!sroce_cqs_ok(init))
		return -EINVAL;
	return sroce_qp_check_cap(ibqp->device, init);
}

static int sroce_qp_create_sq(struct sroce_qp *qp, struct ib_qp_cap *cap, struct ib_udata *udata,
			      const struct sroce_user_ring *user, struct sroce_mmap_info *mi)
{
	struct sroce_requester *req = &qp->req;
	u32 payload;

	if (sroce_qp_is_xrc_target(qp) || qp->rss) {
		cap->max_send_wr = 0;
		cap->max_send_sge = 0;
		cap->max_inline_data = 0;
		return 0;
	}
	req->max_sge = max(cap->max_send_sge, 1u);
	payload = max(req->max_sge * (u32)sizeof(struct sroce_sge), cap->max_inline_data);
	req->max_inline = payload;
	req->gather = sroce_sgl_alloc(req->max_sge);
	req->scatter = sroce_sgl_alloc(req->max_sge);
	if (!req->gather || !req->scatter)
		return -ENOMEM;
	cap->max_send_sge = req->max_sge;
	cap->max_inline_data = req->max_inline;
	return sroce_ring_create(&req->ring, udata, user, &cap->max_send_wr,
				 sizeof(struct sroce_send_wqe) + payload, mi);
}

static int sroce_qp_create_rq(struct sroce_qp *qp, struct ib_srq *srq, struct ib_qp_cap *cap,
			      struct ib_udata *udata, const struct sroce_user_ring *user,
			      struct sroce_mmap_info *mi)
{
	u32 max_sge = srq ? to_ssrq(srq)->rq.max_sge : max(cap->max_recv_sge, 1u);
	bool xrc = qp->ibqp.qp_type == IB_QPT_XRC_INI || sroce_qp_is_xrc_target(qp);

	if (xrc)	/* a target, whatever its SRQs have */
		max_sge = SROCE_MAX_SGE;
	if (qp->rss)
		return 0;
	qp->resp.recv.sgl = sroce_sgl_alloc(max_sge);
	if (!qp->resp.recv.sgl)
		return -ENOMEM;
	if (srq || xrc) {
		cap->max_recv_wr = 0;
		cap->max_recv_sge = 0;
		return 0;
	}
	cap->max_recv_sge = max_sge;
	return sroce_rq_create(&qp->resp.rq, udata, user, &cap->max_recv_wr, max_sge, mi);
}

static void sroce_qp_free_queues(struct sroce_qp *qp)
{
	sroce_ring_destroy(&qp->req.ring);
	sroce_rq_destroy(&qp->resp.rq);
	kvfree(qp->req.wqes);
	kfree(qp->req.gather);
	kfree(qp->req.scatter);
	kfree(qp->resp.recv.sgl);
	kfree(qp->rss);
	kvfree(qp->resp.resources);
}

/* Gives the queue pair its number; from here on packets may find it */
static int sroce_qp_publish(struct sroce_qp *qp, enum ib_qp_type type)
{
	int err;

	if (type == IB_QPT_GSI) {
		qp->ibqp.qp_num = IB_QPT_GSI;
		rcu_assign_pointer(qp->dev->gsi, qp);
		return 0;
	}
	err = xa_alloc_cyclic(&sroce_qps, &qp->ibqp.qp_num, qp,
			      XA_LIMIT(SROCE_FIRST_QPN, SROCE_LAST_QPN), &sroce_next_qpn,
			      GFP_KERNEL);
	return err < 0 ? err : 0;
}

static void sroce_qp_unpublish(struct sroce_qp *qp)
{
	if (qp->ibqp.qp_num == IB_QPT_GSI)
		RCU_INIT_POINTER(qp->dev->gsi, NULL);
	else
		xa_erase(&sroce_qps, qp->ibqp.qp_num);
}

static void sroce_qp_setup(struct sroce_qp *qp, struct ib_device *ibdev,
			   const struct ib_qp_init_attr *init)
{
	qp->dev = to_sdev(ibdev);
	kref_init(&qp->ref);
	init_completion(&qp->gone);
	spin_lock_init(&qp->lock);
	spin_lock_init(&qp->req.post_lock);
	sroce_recover_init(qp);
	sroce_congestion_init(qp);
	sroce_coalesce_init(qp);
	sroce_hold_create(&qp->req.hold, qp->dev);
	sroce_hold_create(&qp->resp.hold, qp->dev);
	qp->xrcd = init->xrcd;
	__skb_queue_head_init(&qp->tx);
	INIT_DELAYED_WORK(&qp->work, sroce_qp_work);
	qp->work_cpu = WORK_CPU_UNBOUND;
	qp->sig_type = init->sq_sig_type;
	qp->attr.port_num = SROCE_PORT;
	qp->attr.path_mtu = IB_MTU_1024;
	qp->mtu = 1024;
	sroce_qp_set_state(qp, IB_QPS_RESET);
}

/**
 * sroce_create_qp - ib_device_ops.create_qp
 * @ibqp: allocated by the core
 * @init: what is wanted; on return, what there is
 * @udata: answers with struct sroce_create_qp_resp
 *
 * Return: 0, -EINVAL, -EOPNOTSUPP for a type or flag the device does not have,
 * -ENOMEM, -EFAULT.
 */
int sroce_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct sroce_create_qp_resp resp = {};
	struct sroce_create_qp_cmd cmd = {};
	struct sroce_qp *qp = to_sqp(ibqp);
	int err;

	err = sroce_qp_check_init(ibqp, init);
	if (err)
		return err;
	if (udata && udata->outlen < sizeof(resp))
		return -EINVAL;
	if (udata && udata->inlen >= sizeof(cmd)) {
		err = ib_copy_from_udata(&cmd, udata, sizeof(cmd));
		if (err)
			return err;
	}
	sroce_qp_setup(qp, ibqp->device, init);
	if (init->rwq_ind_tbl)
		err = sroce_rss_create(qp, init->rwq_ind_tbl, udata);
	if (!err)
		err = sroce_qp_create_sq(qp, &init->cap, udata, &cmd.sq, &resp.sq_mi);
	if (!err)
		err = sroce_qp_create_rq(qp, init->srq, &init->cap, udata, &cmd.rq, &resp.rq_mi);
	if (err)
		goto err_queues;
	qp->attr.cap = init->cap;
	if (!udata && qp->req.ring.queue) {
		err = sroce_send_prepare(qp);
		if (err)
			goto err_queues;
	}
	if (udata) {
		err = ib_copy_to_udata(udata, &resp, sizeof(resp));
		if (err)
			goto err_queues;
	}
	err = sroce_qp_publish(qp, init->qp_type);
	if (err)
		goto err_queues;
	return 0;

err_queues:
	sroce_qp_free_queues(qp);
	return err;
}

/**
 * sroce_qp_create_half - create what receives only, for RSS
 * @qp: zeroed, but for the device, domain, receive CQ and type in @ibqp
 * @init: its capacity
 * @udata: the user's call
 * @user: the user's memory for the queue, if any
 * @mi: where to say how it is mapped
 *
 * Context: process.  Return: 0 or an errno.
 */
int sroce_qp_create_half(struct sroce_qp *qp, struct ib_qp_init_attr *init,
			 struct ib_udata *udata, const struct sroce_user_ring *user,
			 struct sroce_mmap_info *mi)
{
	int err;

	sroce_qp_setup(qp, qp->ibqp.device, init);
	err = sroce_qp_create_rq(qp, NULL, &init->cap, udata, user, mi);
	if (!err)
		err = sroce_qp_publish(qp, qp->ibqp.qp_type);
	if (err)
		sroce_qp_free_queues(qp);
	return err;
}

/**
 * sroce_qp_move - change the state of what receives only
 * @qp: of sroce_qp_create_half()
 * @from: the state that it is in, or -1 for any
 * @to: RESET, RTR or ERR
 *
 * Return: 0, or -EINVAL when it is in another state or there is no way.
 */
int sroce_qp_move(struct sroce_qp *qp, int from, enum ib_qp_state to)
{
	int err = 0;

	spin_lock_bh(&qp->lock);
	if (from >= 0 && qp->state != from)
		err = -EINVAL;
	else if (to == IB_QPS_RESET)
		sroce_qp_reset(qp);
	else if (to == IB_QPS_ERR && qp->state != IB_QPS_RESET)
		sroce_qp_error(qp);
	else if (to == IB_QPS_RTR && qp->state != IB_QPS_ERR)
		sroce_qp_set_state(qp, to);
	else
		err = -EINVAL;
	sroce_qp_unlock(qp);
	return err;
}

/**
 * sroce_qp_end - end a queue pair's life
 * @qp: queue pair
 *
 * On return nothing refers to it: no packet, timer, worker or notification.
 * Context: process, sleeps.
 */
void sroce_qp_end(struct sroce_qp *qp)
{
	sroce_qp_unpublish(qp);
	sroce_mcast_detach_all(qp);
	spin_lock_bh(&qp->lock);
	sroce_qp_reset(qp);
	qp->dead = true;
	spin_unlock_bh(&qp->lock);
	sroce_recover_exit(qp);
	sroce_congestion_exit(qp);
	sroce_coalesce_exit(qp);
	if (cancel_delayed_work_sync(&qp->work))
		sroce_qp_put(qp);
	sroce_qp_put(qp);
	wait_for_completion(&qp->gone);
	/* a look-up may still be about to see that there are no references */
	synchronize_rcu_expedited();
	sroce_av_put(qp->av);
	sroce_qp_free_queues(qp);
}

/**
 * sroce_destroy_qp - ib_device_ops.destroy_qp
 * @ibqp: queue pair, to which no flow steering rule leads: the core counts them
 * @udata: nothing in it
 *
 * Context: process, sleeps.  Return: 0.
 */
int sroce_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	sroce_qp_end(to_sqp(ibqp));
	return 0;
}

/* Are the values possible? The mask was checked against the states before. */
static int sroce_qp_check_attr(struct sroce_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct sroce_dev *dev = qp->dev;

	if (mask & IB_QP_PORT && attr->port_num != SROCE_PORT)
		return -EINVAL;
	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index >= SROCE_PKEY_TABLE)
		return -EINVAL;
	if (mask & IB_QP_AV && sroce_ah_attr_check(dev, &attr->ah_attr))
		return -EINVAL;
	if (mask & (IB_QP_ALT_PATH | IB_QP_CAP))
		return -EINVAL;
	if (mask & IB_QP_PATH_MIG_STATE && attr->path_mig_state != IB_MIG_MIGRATED)
		return -EINVAL;
	if (mask & IB_QP_PATH_MTU &&
	    (attr->path_mtu < IB_MTU_256 || attr->path_mtu > sroce_port_mtu(dev)))
		return -EINVAL;
	if (mask & IB_QP_ACCESS_FLAGS &&
	    attr->qp_access_flags & ~SROCE_ACCESS_GRANTED)
		return -EINVAL;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC && attr->max_rd_atomic > SROCE_MAX_RD_ATOMIC)
		return -EINVAL;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic > SROCE_MAX_RD_ATOMIC)
		return -EINVAL;
	if ((mask & IB_QP_TIMEOUT && attr->timeout > 31) ||
	    (mask & IB_QP_RETRY_CNT && attr->retry_cnt > 7) ||
	    (mask & IB_QP_RNR_RETRY && attr->rnr_retry > 7) ||
	    (mask & IB_QP_MIN_RNR_TIMER && attr->min_rnr_timer > 31))
		return -EINVAL;
	return 0;
}

/* What a change needs to be allocated before the lock is taken */
struct sroce_qp_change {
	struct sroce_av		*av;
	struct sroce_resource	*resources;
	u32			num_resources;
};

static int sroce_qp_change_prepare(struct sroce_qp *qp, const struct ib_qp_attr *attr, int mask,
				   struct sroce_qp_change *change)
{
	u32 dest_qpn = mask & IB_QP_DEST_QPN ? attr->dest_qp_num : qp->attr.dest_qp_num;

	if (mask & IB_QP_AV) {
		change->av = sroce_av_create(qp->dev, &attr->ah_attr, qp->ibqp.qp_num, dest_qpn,
					     GFP_KERNEL_ACCOUNT);
		if (!change->av)
			return -ENOMEM;
	}
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC && attr->max_dest_rd_atomic) {
		change->num_resources = roundup_pow_of_two(attr->max_dest_rd_atomic);
		change->resources = kvcalloc(change->num_resources, sizeof(*change->resources),
					     GFP_KERNEL_ACCOUNT);
		if (!change->resources) {
			sroce_av_put(change->av);
			return -ENOMEM;
		}
	}
	return 0;
}

static void sroce_qp_set_psns(struct sroce_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_RQ_PSN) {
		qp->attr.rq_psn = attr->rq_psn & SROCE_PSN_MASK;
		qp->resp.psn = qp->attr.rq_psn;
	}
	if (mask & IB_QP_SQ_PSN) {
		qp->attr.sq_psn = attr->sq_psn & SROCE_PSN_MASK;
		qp->req.psn = qp->attr.sq_psn;
		qp->req.psn_end = qp->attr.sq_psn;
		qp->req.psn_max = qp->attr.sq_psn;
		qp->req.psn_asked = sroce_psn_add(qp->attr.sq_psn, -1);
		qp->req.una = qp->attr.sq_psn;
		qp->req.acked = qp->attr.sq_psn;
		sroce_recover_start(qp);
	}
}

static void sroce_qp_set_retries(struct sroce_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_TIMEOUT)
		qp->attr.timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT) {
		qp->attr.retry_cnt = attr->retry_cnt;
		qp->req.retries = attr->retry_cnt;
	}
	if (mask & IB_QP_RNR_RETRY) {
		qp->attr.rnr_retry = attr->rnr_retry;
		qp->req.rnr_retries = attr->rnr_retry;
	}
	if (mask & IB_QP_MIN_RNR_TIMER)
		qp->attr.min_rnr_timer = attr->min_rnr_timer;
}

static void sroce_qp_set_path(struct sroce_qp *qp, const struct ib_qp_attr *attr, int mask,
			      struct sroce_qp_change *change)
{
	if (mask & IB_QP_AV) {
		swap(qp->av, change->av);
		qp->attr.ah_attr = attr->ah_attr;
	}
	if (mask & IB_QP_PATH_MTU) {
		qp->attr.path_mtu = attr->path_mtu;
		qp->mtu = ib_mtu_enum_to_int(attr->path_mtu);
	}
	if (mask & IB_QP_DEST_QPN)
		qp->attr.dest_qp_num = attr->dest_qp_num & SROCE_QPN_MASK;
	if (mask & IB_QP_PKEY_INDEX)
		qp->attr.pkey_index = attr->pkey_index;
	if (mask & IB_QP_QKEY)
		qp->attr.qkey = attr->qkey;
	if (mask & IB_QP_ACCESS_FLAGS)
		qp->attr.qp_access_flags = attr->qp_access_flags;
	if (mask & IB_QP_PATH_MIG_STATE)
		qp->attr.path_mig_state = attr->path_mig_state;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		qp->attr.max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC) {
		qp->attr.max_dest_rd_atomic = attr->max_dest_rd_atomic;
		swap(qp->resp.resources, change->resources);
		qp->resp.num_resources = change->num_resources;
		qp->resp.resource_end = 0;
		qp->resp.resource_next = 0;
	}
}

static void sroce_qp_enter(struct sroce_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	switch (attr->qp_state) {
	case IB_QPS_RESET:
		sroce_qp_reset(qp);
		break;
	case IB_QPS_ERR:
		sroce_qp_error(qp);
		break;
	case IB_QPS_SQD:
		if (qp->state != IB_QPS_SQD) {
			qp->sq_drained = false;
			qp->attr.sq_draining = 1;
			qp->attr.en_sqd_async_notify = mask & IB_QP_EN_SQD_ASYNC_NOTIFY ?
						       attr->en_sqd_async_notify : 0;
		}
		sroce_qp_set_state(qp, IB_QPS_SQD);
		sroce_complete_done(qp);
		break;
	default:
		sroce_qp_set_state(qp, attr->qp_state);
	}
	if (qp->state == IB_QPS_RTS)
		sroce_send_run(qp);
}

/* The path MTU of datagrams is the port's (9.8.3) */
static void sroce_qp_datagram_mtu(struct sroce_qp *qp)
{
	if (!sroce_qp_is_datagram(qp))
		return;
	qp->attr.path_mtu = sroce_port_mtu(qp->dev) ?: IB_MTU_256;
	qp->mtu = ib_mtu_enum_to_int(qp->attr.path_mtu);
}

/**
 * sroce_modify_qp - ib_device_ops.modify_qp
 * @ibqp: queue pair
 * @attr: new values
 * @mask: which of them, IB_QP_*
 * @udata: nothing in it
 *
 * All of it is done, or nothing.
 * Return: 0, -EINVAL, -ENOMEM, -EOPNOTSUPP for attributes that are not of IBA.
 */
int sroce_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct sroce_qp_change change = {};
	struct sroce_qp *qp = to_sqp(ibqp);
	enum ib_qp_state from, to;
	int err;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	err = sroce_qp_check_attr(qp, attr, mask);
	if (!err)
		err = sroce_qp_change_prepare(qp, attr, mask, &change);
	if (err)
		return err;

	spin_lock_bh(&qp->lock);
	from = qp->state;
	to = mask & IB_QP_STATE ? attr->qp_state : from;
	if ((mask & IB_QP_CUR_STATE && attr->cur_qp_state != from) ||
	    !ib_modify_qp_is_ok(from, to, ibqp->qp_type, mask)) {
		ibdev_dbg(ibqp->device, "QP %u: from state %d to %d with attributes %#x\n",
			  ibqp->qp_num, from, to, mask);
		err = -EINVAL;
	} else {
		sroce_qp_set_psns(qp, attr, mask);
		sroce_qp_set_retries(qp, attr, mask);
		sroce_qp_set_path(qp, attr, mask, &change);
		if (to == IB_QPS_INIT)
			sroce_qp_datagram_mtu(qp);
		if (mask & IB_QP_STATE)
			sroce_qp_enter(qp, attr, mask);
	}
	sroce_qp_unlock(qp);
	sroce_av_put(change.av);
	kvfree(change.resources);
	return err;
}

/**
 * sroce_query_qp - ib_device_ops.query_qp
 * @ibqp: queue pair
 * @attr: where to
 * @mask: ignored, all is said
 * @init: where to, what the queue pair was created with
 *
 * Return: 0.
 */
int sroce_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_qp_init_attr *init)
{
	struct sroce_qp *qp = to_sqp(ibqp);

	spin_lock_bh(&qp->lock);
	*attr = qp->attr;
	attr->ah_attr.grh.sgid_attr = NULL;	/* the reference is the queue pair's */
	attr->cur_qp_state = qp->state;
	attr->rq_psn = qp->resp.psn;
	attr->sq_psn = qp->req.psn_end;
	sroce_qp_unlock(qp);	/* a doorbell may have rung meanwhile */
	init->event_handler = ibqp->event_handler;
	init->qp_context = ibqp->qp_context;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->cap = attr->cap;
	init->sq_sig_type = qp->sig_type;
	init->qp_type = ibqp->qp_type;
	return 0;
}

/**
 * sroce_post_recv - ib_device_ops.post_recv
 * @ibqp: queue pair without an SRQ
 * @wr: a kernel user's chain of work requests; a user has put its into the ring
 * @bad_wr: the first that was not posted
 *
 * Context: any.  Return: 0, -EINVAL, -ENOMEM.
 */
int sroce_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad_wr)
{
	struct sroce_qp *qp = to_sqp(ibqp);
	unsigned long flags;
	int err = 0;

	if (!qp->resp.rq.ring.queue || READ_ONCE(qp->state) == IB_QPS_RESET) {
		*bad_wr = wr;
		return -EINVAL;
	}
	flags = sroce_ring_lock(&qp->resp.rq.ring, &qp->resp.rq.lock);
	for (; wr && !ibqp->uobject; wr = wr->next) {
		err = sroce_rq_post(&qp->resp.rq, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	sroce_ring_unlock(&qp->resp.rq.ring, &qp->resp.rq.lock, flags);
	if (likely(READ_ONCE(qp->state) != IB_QPS_ERR))
		return err;
	if (irqs_disabled()) {	/* nor can softirqs run: the worker flushes */
		sroce_qp_kick(qp);
		return err;
	}
	spin_lock_bh(&qp->lock);
	if (qp->state == IB_QPS_ERR)
		sroce_respond_flush(qp);
	sroce_qp_unlock(qp);
	return err;
}
