// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Congestion (IBA annex A17.9, and DCQCN, Zhu et al., SIGCOMM 2015).
 *
 * Notification point: a packet that a switch marked (ECN CE) is answered with a CNP to
 * the queue pair it came from, one in a while.
 *
 * Reaction point: a CNP lowers what its queue pair may send in a round trip, the more the
 * more there were of late, and time without one raises it again (dcqcn.c).  Packets leave at
 * the rate that follows from it, and a requester has no more than that under way.  A limit
 * that is not felt any more is given up.
 *
 * What is due by time is not done by timers but made up for when somebody looks.  The
 * one timer is for the next packet's departure, and with fq as queueing discipline the
 * departure times of frames do most of its work.
 */
#include "ah.h"
#include "answer.h"
#include "build.h"
#include "congestion.h"
#include "qp.h"
#include "send.h"
#include "trace.h"

#define SROCE_RATE_MBIT		100000u		/* what no path has more of, unless it is set */

/* How far ahead of its time a packet is sent: so much goes at once, microseconds */
#define SROCE_BURST_US		500
#define SROCE_BURST_FQ_US	1000	/* fq holds it back, and 100 frames of a flow at most */

/* When the limit was not felt for so long, nothing is known of the path, microseconds */
#define SROCE_IDLE_US		USEC_PER_SEC

/* When it is late, because a timer was, so much is made up for at once, and so many bytes */
#define SROCE_LATE_US		4000
#define SROCE_LATE_BYTES	65536

/*
 * What is taken for the round trip while it is not known, microseconds, as for who sends
 * nothing but answers to READs; and packets that a change takes to show at least then
 */
#define SROCE_RTT_US		1000
#define SROCE_PERIOD_PACKETS	16

/* And what is taken to have been sent in it when the first CNP comes */
#define SROCE_WINDOW_GUESS	(512u << 10)

static const struct sroce_congestion_parameters sroce_congestion_defaults = {
	.np_enable = 1,
	.min_time_between_cnps = 50,
	.cnp_dscp = 48,
	.cnp_802p_prio = 6,
	.rp_enable = 1,
	.rpg_time_reset = 300,
	.rpg_byte_reset = 32767,
	.rpg_threshold = 5,
	.rpg_ai_rate = 5,
	.rpg_hai_rate = 50,
	.rpg_min_rate = 1,
	.rpg_min_dec_fac = 50,
	.rate_reduce_monitor_period = 4,
	.initial_alpha_value = 1023,
	.dce_tcp_g = 960,
	.dce_tcp_rtt = 55,
	.clamp_tgt_rate = 1,
};

/**
 * sroce_congestion_setup - a new device's parameters
 * @dev: device that is not registered yet
 */
void sroce_congestion_setup(struct sroce_dev *dev)
{
	dev->congestion = sroce_congestion_defaults;
}

/* Above it there is no limit, bytes per second */
static u64 sroce_congestion_most(struct sroce_qp *qp)
{
	u32 set = READ_ONCE(qp->dev->congestion.rpg_max_rate);

	return (set ?: SROCE_RATE_MBIT) * SROCE_MBIT;
}

/* A timer that runs goes on: it is what lets those send that wait */
static void sroce_congestion_unlimit(struct sroce_congestion *c)
{
	c->limited = false;
}

/* The path as it is known now */
static void sroce_congestion_path(struct sroce_qp *qp)
{
	struct sroce_congestion *c = &qp->req.congestion;
	u32 rtt = qp->req.recovery.srtt;
	u64 packets;

	c->dcqcn.mtu = qp->mtu;
	if (rtt && c->guessed && c->limited) {	/* the rate stays what it was */
		c->dcqcn.window = div_u64(c->dcqcn.window * rtt, SROCE_RTT_US);
		c->dcqcn.target = div_u64(c->dcqcn.target * rtt, SROCE_RTT_US);
	}
	c->guessed = !rtt;
	c->dcqcn.rtt = rtt ?: SROCE_RTT_US;
	c->dcqcn.period = c->dcqcn.rtt;
	if (!rtt && c->limited) {
		packets = div64_u64((u64)SROCE_PERIOD_PACKETS * qp->mtu * SROCE_RTT_US,
				    max(c->dcqcn.window, 1ull));
		c->dcqcn.period = clamp_t(u64, packets, SROCE_RTT_US, USEC_PER_SEC);
	}
}

/* What was sent in a round trip, while there was no limit */
static u64 sroce_congestion_present(struct sroce_qp *qp)
{
	u32 set = READ_ONCE(qp->dev->congestion.rate_to_set_on_first_cnp);
	const struct sroce_requester *req = &qp->req;
	u32 packets;

	if (set)
		return sroce_dcqcn_bytes(&req->congestion.dcqcn, set * SROCE_MBIT);
	if (req->una == req->psn_max)	/* it responds to READs, say */
		return SROCE_WINDOW_GUESS;
	packets = max_t(u32, sroce_psn_diff(req->psn_max, req->una), req->recovery.window / 2);
	return (u64)packets * qp->mtu;
}

/* Makes up for what time has brought */
static void sroce_congestion_catch_up(struct sroce_qp *qp, ktime_t now)
{
	const struct sroce_congestion_parameters *p = &qp->dev->congestion;
	struct sroce_dcqcn *dcqcn = &qp->req.congestion.dcqcn;
	u64 before;

	sroce_congestion_path(qp);
	before = dcqcn->window;
	sroce_dcqcn_advance(dcqcn, p, now);
	if (dcqcn->window == before)
		return;
	trace_sroce_rate(qp);
	if (sroce_dcqcn_rate(dcqcn, p) >= sroce_congestion_most(qp))
		sroce_congestion_unlimit(&qp->req.congestion);
}

/* The first CNP in a while */
static void sroce_congestion_limit(struct sroce_qp *qp, ktime_t now)
{
	struct sroce_congestion *c = &qp->req.congestion;

	sroce_congestion_path(qp);
	sroce_dcqcn_start(&c->dcqcn, &qp->dev->congestion, sroce_congestion_present(qp), now);
	c->limited = true;
	if (ktime_before(c->departs, now))
		c->departs = now;
	trace_sroce_rate(qp);
}

/**
 * sroce_congestion_notified - a CNP came
 * @qp: queue pair of a connected service, locked
 */
void sroce_congestion_notified(struct sroce_qp *qp)
{
	const struct sroce_congestion_parameters *p = &qp->dev->congestion;
	struct sroce_congestion *c = &qp->req.congestion;
	ktime_t now = ktime_get();

	if (!READ_ONCE(p->rp_enable)) {
		sroce_qp_count(qp, SROCE_CNT_CNP_IGNORED);
		return;
	}
	sroce_qp_count(qp, SROCE_CNT_CNP_HANDLED);
	if (!c->limited) {
		sroce_congestion_limit(qp, now);
		return;
	}
	sroce_congestion_path(qp);
	sroce_dcqcn_notified(&c->dcqcn, p, now);
	trace_sroce_rate(qp);
}

static u64 sroce_congestion_rate(const struct sroce_qp *qp)
{
	return sroce_dcqcn_rate(&qp->req.congestion.dcqcn, &qp->dev->congestion);
}

/* What was missed by more than that is lost: it would be a burst */
static ktime_t sroce_congestion_latest(const struct sroce_qp *qp, ktime_t now)
{
	u64 us = div64_u64((u64)SROCE_LATE_BYTES * USEC_PER_SEC, sroce_congestion_rate(qp));

	return ktime_sub_us(now, min_t(u64, us, SROCE_LATE_US));
}

static void sroce_congestion_set_timer(struct sroce_congestion *c)
{
	c->timing = true;
	hrtimer_start(&c->timer, c->departs, HRTIMER_MODE_ABS_PINNED_SOFT);
}

/* Is there no reason for the limit any more? */
static bool sroce_congestion_over(struct sroce_qp *qp, ktime_t now)
{
	const struct sroce_dcqcn *dcqcn = &qp->req.congestion.dcqcn;

	return now - max(dcqcn->full_at, dcqcn->cut_at) > SROCE_IDLE_US * NSEC_PER_USEC ||
	       !READ_ONCE(qp->dev->congestion.rp_enable);
}

/**
 * sroce_congestion_window - how much a requester may have under way
 * @qp: queue pair of a reliable service, locked
 *
 * One packet more than what is sent in a round trip: the answer to the oldest is on its way.
 * Return: packets.
 */
u32 sroce_congestion_window(const struct sroce_qp *qp)
{
	const struct sroce_congestion *c = &qp->req.congestion;

	if (likely(!c->limited))
		return U32_MAX;
	return min_t(u64, div_u64(c->dcqcn.window + qp->mtu - 1, qp->mtu) + 1, SROCE_PSN_WINDOW);
}

/**
 * sroce_congestion_full - so much is under way, and more would be
 * @qp: queue pair, locked, for which sroce_congestion_window() told a limit
 */
void sroce_congestion_full(struct sroce_qp *qp)
{
	qp->req.congestion.dcqcn.full_at = ktime_get();
}

/**
 * sroce_congestion_wait - must the next packet wait?
 * @qp: queue pair of a connected service, locked
 *
 * Return: whether it must; then requester and responder will be run when it need not
 * any more.
 */
bool sroce_congestion_wait(struct sroce_qp *qp)
{
	struct sroce_congestion *c = &qp->req.congestion;
	ktime_t now, latest;
	s64 ahead;

	if (likely(!c->limited))
		return false;
	if (c->timing)
		return true;
	now = ktime_get();
	if (sroce_congestion_over(qp, now))
		sroce_congestion_unlimit(c);
	else
		sroce_congestion_catch_up(qp, now);
	if (!c->limited)
		return false;
	latest = sroce_congestion_latest(qp, now);
	if (ktime_before(c->departs, latest))
		c->departs = latest;
	ahead = READ_ONCE(qp->av->paced) ? SROCE_BURST_FQ_US : SROCE_BURST_US;
	if (ktime_us_delta(c->departs, now) < ahead)
		return false;
	c->dcqcn.full_at = now;
	sroce_congestion_set_timer(c);
	return true;
}

/**
 * sroce_congestion_sent - a packet was built that sroce_congestion_wait() was asked about
 * @qp: queue pair of a connected service, locked
 * @bytes: its length
 */
void sroce_congestion_sent(struct sroce_qp *qp, u32 bytes)
{
	struct sroce_congestion *c = &qp->req.congestion;
	u64 took;

	if (likely(!c->limited))
		return;
	took = div64_u64((u64)bytes * NSEC_PER_SEC, sroce_congestion_rate(qp));
	c->departs = ktime_add_ns(c->departs, took);
	sroce_dcqcn_sent(&c->dcqcn, &qp->dev->congestion, bytes);
}

/**
 * sroce_congestion_departure - when a frame is to leave that is begun now
 * @qp: queue pair of a connected service, locked
 *
 * Also of what is not limited itself, or not any more: it must not overtake what was built
 * before, which may be held back.
 * Return: the time, or 0 for at once.
 */
ktime_t sroce_congestion_departure(struct sroce_qp *qp)
{
	struct sroce_congestion *c = &qp->req.congestion;

	if (likely(!c->departs))
		return 0;
	if (!c->limited && ktime_before(c->departs, ktime_get()))
		c->departs = 0;
	return c->departs;
}

static enum hrtimer_restart sroce_congestion_timer(struct hrtimer *timer)
{
	struct sroce_qp *qp = container_of(timer, struct sroce_qp, req.congestion.timer);

	spin_lock_bh(&qp->lock);
	qp->req.congestion.timing = false;
	qp->req.congestion.dcqcn.full_at = ktime_get();
	if (!qp->dead) {
		sroce_answer_run(qp);
		sroce_send_run(qp);
	}
	sroce_qp_unlock(qp);
	return HRTIMER_NORESTART;
}

/**
 * sroce_congestion_seen - a packet came that a switch marked
 * @qp: queue pair that it is for, locked
 *
 * sroce_congestion_notify() tells the sender.
 */
void sroce_congestion_seen(struct sroce_qp *qp)
{
	sroce_qp_count(qp, SROCE_CNT_ECN_MARKED);
	if (!sroce_qp_is_datagram(qp) && READ_ONCE(qp->dev->congestion.np_enable))
		qp->req.congestion.notify = true;
}

/**
 * sroce_congestion_notify - send the CNP that is due, unless one was sent a moment ago
 * @qp: queue pair of a connected service, locked, for which sroce_congestion_seen() was called
 */
void sroce_congestion_notify(struct sroce_qp *qp)
{
	const struct sroce_congestion_parameters *p = &qp->dev->congestion;
	struct sroce_congestion *c = &qp->req.congestion;
	struct sroce_burst burst = {};
	struct sroce_build b = {
		.av = qp->av,
		.opcode = SROCE_CNP,
		.qpn = qp->attr.dest_qp_num | SROCE_QPN_BECN,
		.pkey_index = qp->attr.pkey_index,
	};
	ktime_t now;

	c->notify = false;
	now = ktime_get();
	if (ktime_us_delta(now, c->notified_at) < READ_ONCE(p->min_time_between_cnps))
		return;
	if (sroce_build_begin(qp, &burst, &b)) {
		sroce_build_flush(qp, &burst);
		return;		/* the next marked packet will do */
	}
	memset(b.eth, 0, SROCE_CNP_BYTES);
	sroce_build_end(qp, &burst, &b);
	burst.cnp = true;
	sroce_build_flush(qp, &burst);
	c->notified_at = now;
	sroce_qp_count(qp, SROCE_CNT_CNP_SENT);
}

/**
 * sroce_congestion_reset - the path is new: nothing is known of it
 * @qp: queue pair, locked
 */
void sroce_congestion_reset(struct sroce_qp *qp)
{
	struct sroce_congestion *c = &qp->req.congestion;

	sroce_congestion_unlimit(c);
	if (c->timing && hrtimer_try_to_cancel(&c->timer) >= 0)
		c->timing = false;
	c->departs = 0;
	c->notify = false;
	c->notified_at = 0;
}

/**
 * sroce_congestion_init - set up a queue pair's pacing
 * @qp: queue pair that is being created
 */
void sroce_congestion_init(struct sroce_qp *qp)
{
	sroce_hrtimer_setup(&qp->req.congestion.timer, sroce_congestion_timer,
			    HRTIMER_MODE_ABS_PINNED_SOFT);
}

/**
 * sroce_congestion_exit - the timer will not fire any more
 * @qp: queue pair that is being destroyed, not locked, marked dead
 *
 * Context: process, sleeps.
 */
void sroce_congestion_exit(struct sroce_qp *qp)
{
	hrtimer_cancel(&qp->req.congestion.timer);
}
