// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Coalescing of doorbells.  A frame costs the same for one small message as for
 * thirty, but a program posts them one by one and rings each time; and since over
 * veth or lo a message is delivered and acknowledged before the doorbell returns,
 * nothing is ever under way that later ones could wait for.
 *
 * So when a user posts small requests without waiting for any, as a stream does,
 * they are left in the ring until there is a batch of them, or until a timer fires.
 * A user who waits is served at once: one who has taken every completion, or has
 * received a message, since he rang last.  A user who waits unseen, with unsignalled
 * requests, shows in the timer: the batch becomes what he posts in one go, and when
 * that is hardly anything there are no batches, for longer each time.
 *
 * A user's provider that knows the doorbell word does not even call for a batch
 * that is not full.
 */
#include <linux/math64.h>
#include "coalesce.h"
#include "qp.h"
#include "send.h"

/* Requests that go together, at most and at least */
#define SROCE_BATCH_MAX		32
#define SROCE_BATCH_MIN		4

/* How long a batch may take to fill, nanoseconds, and so many doorbells at most */
#define SROCE_BATCH_NS_MIN	(50 * NSEC_PER_USEC)
#define SROCE_BATCH_NS_MAX	(400 * NSEC_PER_USEC)
#define SROCE_BATCH_DOORBELLS	8

/* Messages longer than this, bytes, are worth a frame of their own */
#define SROCE_BATCH_LENGTH	1024

/* Doorbells of a stream before there are batches, at first and at last */
#define SROCE_PATIENCE_MIN	16
#define SROCE_PATIENCE_MAX	4096

/* Full batches after which a larger one is tried */
#define SROCE_BATCH_GROW	64

static u32 sroce_coalesce_pending(const struct sroce_qp *qp)
{
	const struct sroce_requester *req = &qp->req;

	return sroce_ring_distance(&req->ring, req->next, sroce_ring_producer(&req->ring));
}

/* None without a timer that is finer than a jiffy */
static u32 sroce_coalesce_max(const struct sroce_qp *qp)
{
	if (hrtimer_resolution > SROCE_BATCH_NS_MIN)
		return 0;
	return min_t(u32, (qp->req.ring.mask + 1) / 4, SROCE_BATCH_MAX);
}

static void sroce_coalesce_start_timer(struct sroce_coalesce *c)
{
	if (c->timing)
		return;
	c->timing = true;
	hrtimer_start(&c->timer, ns_to_ktime(c->wait), HRTIMER_MODE_REL_SOFT);
}

/* Has a message been received since the user rang last? */
static bool sroce_coalesce_received(struct sroce_qp *qp)
{
	bool received = qp->resp.msn != qp->coalesce.msn;

	qp->coalesce.msn = qp->resp.msn;
	return received;
}

/* Is the last request that was posted a small one? */
static bool sroce_coalesce_small(const struct sroce_qp *qp)
{
	const struct sroce_ring *ring = &qp->req.ring;
	const struct sroce_send_wqe *wqe = sroce_ring_element(ring, sroce_ring_producer(ring) - 1);

	return READ_ONCE(wqe->data.length) <= SROCE_BATCH_LENGTH;
}

/* Does this doorbell's caller go on without waiting? */
static bool sroce_coalesce_streaming(struct sroce_qp *qp)
{
	bool waits = sroce_cq_caught_up(to_scq(qp->ibqp.send_cq), &qp->coalesce.completed);

	waits |= sroce_coalesce_received(qp);
	return !waits && sroce_coalesce_small(qp);
}

/* One more doorbell of what may be a stream; enough of them, and batches begin */
static void sroce_coalesce_count(struct sroce_qp *qp)
{
	struct sroce_coalesce *c = &qp->coalesce;
	u32 batch = sroce_coalesce_max(qp);
	s64 apart;

	if (!c->streak++)
		c->ran = ktime_get();
	if (c->streak < c->patience || batch < SROCE_BATCH_MIN)
		return;
	apart = div_u64(ktime_to_ns(ktime_sub(ktime_get(), c->ran)), c->streak);
	c->wait = clamp_t(s64, SROCE_BATCH_DOORBELLS * apart, SROCE_BATCH_NS_MIN,
			  SROCE_BATCH_NS_MAX);
	c->batch = batch;
	c->full = 0;
}

/**
 * sroce_coalesce_doorbell - may what was posted wait for more?
 * @qp: queue pair, locked, whose user rang
 *
 * Return: true when the requester need not run now: a full batch, or the timer, will
 * make it.
 */
bool sroce_coalesce_doorbell(struct sroce_qp *qp)
{
	struct sroce_coalesce *c = &qp->coalesce;

	if (!qp->ibqp.uobject || qp->state != IB_QPS_RTS)
		return false;
	if (!sroce_coalesce_streaming(qp)) {
		sroce_coalesce_stop(c);
		return false;
	}
	if (!c->batch) {
		sroce_coalesce_count(qp);
		return false;
	}
	if (sroce_coalesce_pending(qp) < c->batch) {
		sroce_coalesce_start_timer(c);
		return true;
	}
	if (++c->full >= SROCE_BATCH_GROW) {
		c->batch = min(2 * c->batch, sroce_coalesce_max(qp));
		c->full = 0;
	}
	return false;
}

/**
 * sroce_coalesce_settle - say from where on a user's provider has to ring
 * @qp: queue pair of a user, locked, whose requester has read all of the ring
 *
 * Return: true when there is more to be read at once.
 */
bool sroce_coalesce_settle(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_coalesce *c = &qp->coalesce;

	if (!c->batch)
		return sroce_ring_ask(&req->ring, req->next);
	c->ran = ktime_get();
	sroce_coalesce_start_timer(c);
	sroce_ring_ask(&req->ring, (req->next + c->batch - 1) & req->ring.mask);
	return sroce_coalesce_pending(qp) >= c->batch;
}

/* The batch did not fill in time: it was too large, or there is no stream */
static void sroce_coalesce_late(struct sroce_qp *qp, u32 pending)
{
	struct sroce_coalesce *c = &qp->coalesce;

	if (pending >= SROCE_BATCH_MIN) {
		c->batch = min(pending, c->batch);
		c->full = 0;
		c->patience = SROCE_PATIENCE_MIN;
		return;
	}
	if (c->full)
		c->patience = SROCE_PATIENCE_MIN;
	else
		c->patience = min(2 * c->patience, (u32)SROCE_PATIENCE_MAX);
	sroce_coalesce_stop(c);
}

/* Returns when to look again, nanoseconds from now, or 0 */
static s64 sroce_coalesce_time_up(struct sroce_qp *qp)
{
	struct sroce_coalesce *c = &qp->coalesce;
	s64 left = c->wait - ktime_to_ns(ktime_sub(ktime_get(), c->ran));

	if (!c->batch || qp->dead || qp->state != IB_QPS_RTS)
		return 0;
	if (left > 0)
		return left;
	sroce_coalesce_late(qp, sroce_coalesce_pending(qp));
	sroce_send_run(qp);
	return c->batch ? c->wait : 0;
}

static enum hrtimer_restart sroce_coalesce_timer(struct hrtimer *timer)
{
	struct sroce_qp *qp = container_of(timer, struct sroce_qp, coalesce.timer);
	s64 again;

	spin_lock_bh(&qp->lock);
	again = sroce_coalesce_time_up(qp);
	qp->coalesce.timing = again;
	if (again)
		hrtimer_forward_now(timer, ns_to_ktime(again));
	sroce_qp_unlock(qp);
	return again ? HRTIMER_RESTART : HRTIMER_NORESTART;
}

/**
 * sroce_coalesce_init - prepare for coalescing
 * @qp: queue pair that is being created
 */
void sroce_coalesce_init(struct sroce_qp *qp)
{
	sroce_hrtimer_setup(&qp->coalesce.timer, sroce_coalesce_timer, HRTIMER_MODE_REL_SOFT);
	qp->coalesce.patience = SROCE_PATIENCE_MIN;
}

/**
 * sroce_coalesce_exit - the timer will not fire any more
 * @qp: queue pair that is being destroyed, not locked, marked dead
 *
 * Context: process, sleeps.
 */
void sroce_coalesce_exit(struct sroce_qp *qp)
{
	hrtimer_cancel(&qp->coalesce.timer);
}
