// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Congestion (IBA annex A17.9, and DCQCN, Zhu et al., SIGCOMM 2015).
 *
 * Notification point: a packet that a switch marked (ECN CE) is answered with a CNP to
 * the queue pair it came from, one in a while.
 *
 * Reaction point: a CNP lowers the rate of its queue pair, the more the more there were
 * of late.  As time passes and bytes are sent the rate comes back: first half the way to
 * where it was, again and again; then that goes up as well, by small steps and at last
 * by large ones.  Above what any path has there is no limit any more.
 *
 * Hardware's periods are made for paths of some microseconds, and of thousands of packets
 * in each.  A rate that rises several times before what was sent at it can have an effect
 * does not settle, so none of them is taken as shorter than the round trip, nor than some
 * packets take; and on a slow path steps are smaller.  And it rises
 * only as long as it is used: what the window or the consumer leaves of it says nothing of
 * the path.
 *
 * What is due by time is not done by timers but made up for when somebody looks.  The
 * one timer is for the next packet's departure, and with fq as queueing discipline the
 * departure times of frames do most of its work.
 */
#include <linux/math.h>
#include "ah.h"
#include "build.h"
#include "congestion.h"
#include "qp.h"
#include "respond.h"
#include "send.h"
#include "trace.h"

#define SROCE_ALPHA_ONE		1024
#define SROCE_MBIT		125000ull	/* bytes per second */
#define SROCE_RATE_MBIT		100000u		/* what no path has more of, unless it is set */

/* Changes that are made up for at once, after a queue pair was idle */
#define SROCE_CATCH_UP		32

/* How far ahead of its time a packet is sent: so much goes at once, microseconds */
#define SROCE_BURST_US		500
#define SROCE_BURST_FQ_US	1000	/* fq holds it back, and 100 frames of a flow at most */

/* After so long without a packet nothing is known of the path, microseconds */
#define SROCE_IDLE_US		USEC_PER_SEC

/* When it is late, because a timer was, so much is made up for at once, and so many bytes */
#define SROCE_LATE_US		4000
#define SROCE_LATE_BYTES	65536

/*
 * What hardware adds in a period is next to nothing of its rate, but may be more than all of
 * a slow path's.  So in a second no more is added than the root of the rate times this, bytes
 * per second: the slower path has the smaller step, and of two senders on the same path the
 * slower one still the larger step for its size.  Hyper increase is four times that; and at
 * once it is never more than an eighth.
 */
#define SROCE_INCREASE_ROOT	12500000ull
#define SROCE_HYPER		4
#define SROCE_STEP_PART		8

/* A CNP takes an eighth of the rate at least: alpha forgets, but the queue is there */
#define SROCE_ALPHA_MIN		256

/* So many packets are sent between changes: fewer tell nothing of the path */
#define SROCE_PERIOD_PACKETS	4

/* Increases are so much rarer than decreases, so that there are none while CNPs keep coming */
#define SROCE_INCREASE_PERIODS	3

/* What is taken for the round trip while it is not known, microseconds */
#define SROCE_RTT_US		1000

static const struct sroce_congestion_parameters sroce_congestion_defaults = {
	.np_enable = 1,
	.min_time_between_cnps = 50,
	.cnp_dscp = 48,
	.cnp_802p_prio = 6,
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
};

/**
 * sroce_congestion_setup - a new device's parameters
 * @dev: device that is not registered yet
 */
void sroce_congestion_setup(struct sroce_dev *dev)
{
	dev->congestion = sroce_congestion_defaults;
}

/* The shortest time in which a change can show: a round trip, some packets; microseconds */
static u64 sroce_congestion_effect(const struct sroce_qp *qp)
{
	u64 packets = (u64)SROCE_PERIOD_PACKETS * qp->mtu * USEC_PER_SEC;
	const struct sroce_recovery *rec = &qp->req.recovery;
	u32 rtt = rec->srtt ? rec->srtt + 2 * rec->rttvar : SROCE_RTT_US;

	return max_t(u64, rtt, div64_u64(packets, qp->req.congestion.rate));
}

/* A period that was set, but no shorter than a change takes to show, nanoseconds */
static s64 sroce_congestion_period(const struct sroce_qp *qp, u32 us)
{
	return max_t(u64, us, sroce_congestion_effect(qp)) * NSEC_PER_USEC;
}

/* The same for increases */
static s64 sroce_congestion_increase_period(const struct sroce_qp *qp)
{
	u32 us = READ_ONCE(qp->dev->congestion.rpg_time_reset);

	return max_t(u64, us, SROCE_INCREASE_PERIODS * sroce_congestion_effect(qp)) *
	       NSEC_PER_USEC;
}

/* Above it there is no limit, bytes per second */
static u64 sroce_congestion_most(struct sroce_qp *qp)
{
	u32 set = READ_ONCE(qp->dev->congestion.rpg_max_rate);

	return (set ?: SROCE_RATE_MBIT) * SROCE_MBIT;
}

static u64 sroce_congestion_least(const struct sroce_qp *qp)
{
	return max(READ_ONCE(qp->dev->congestion.rpg_min_rate), 1u) * SROCE_MBIT;
}

/* A timer that runs goes on: it is what lets those send that wait */
static void sroce_congestion_unlimit(struct sroce_congestion *c)
{
	c->limited = false;
}

/* What was under way took a round trip: the rate at which it went */
static u64 sroce_congestion_present(struct sroce_qp *qp)
{
	const struct sroce_requester *req = &qp->req;
	u32 packets = max_t(u32, sroce_psn_diff(req->psn_max, req->una),
			    req->recovery.window / 2);
	u64 bytes = (u64)packets * qp->mtu;
	u32 set = READ_ONCE(qp->dev->congestion.rate_to_set_on_first_cnp);

	if (set)
		return set * SROCE_MBIT;
	if (req->una == req->psn_max)	/* it responds to READs, say */
		return sroce_congestion_most(qp);
	return div_u64(bytes * USEC_PER_SEC, req->recovery.srtt ?: SROCE_RTT_US);
}

/* How much of the rate is used: looked at over no less time than a change takes to show */
static void sroce_congestion_measure(struct sroce_qp *qp, ktime_t now)
{
	struct sroce_congestion *c = &qp->req.congestion;
	s64 us = ktime_us_delta(now, c->sent_at);

	if (us < (s64)sroce_congestion_effect(qp))
		return;
	c->used = div64_u64(2 * c->sent * USEC_PER_SEC, us);
	c->sent = 0;
	c->sent_at = now;
}

/* The largest step of additive increase, or so many times that, bytes per second */
static u64 sroce_congestion_step(const struct sroce_qp *qp, u32 times)
{
	u64 target = qp->req.congestion.target;
	u64 us = min_t(u64, div_u64(sroce_congestion_increase_period(qp), NSEC_PER_USEC),
		       USEC_PER_SEC);
	u64 step = div_u64(times * int_sqrt64(target * SROCE_INCREASE_ROOT) * us, USEC_PER_SEC);

	return min(step, target / SROCE_STEP_PART);
}

/* An increase is due: of the kind that the number of those before calls for */
static void sroce_congestion_increase(struct sroce_qp *qp)
{
	const struct sroce_congestion_parameters *p = &qp->dev->congestion;
	struct sroce_congestion *c = &qp->req.congestion;
	u32 threshold = READ_ONCE(p->rpg_threshold);

	sroce_congestion_measure(qp, ktime_get());
	if (c->used < c->rate)
		return;
	if (min(c->times, c->rounds) > threshold)
		c->target += min(READ_ONCE(p->rpg_hai_rate) * SROCE_MBIT,
				 sroce_congestion_step(qp, SROCE_HYPER));
	else if (max(c->times, c->rounds) > threshold)
		c->target += min(READ_ONCE(p->rpg_ai_rate) * SROCE_MBIT,
				 sroce_congestion_step(qp, 1));
	c->rate = (c->rate + c->target + 1) / 2;
	trace_sroce_rate(qp, c);
	if (c->rate >= sroce_congestion_most(qp))
		sroce_congestion_unlimit(c);
}

/* Makes up for what time has brought: a smaller alpha, increases */
static void sroce_congestion_catch_up(struct sroce_qp *qp, ktime_t now)
{
	const struct sroce_congestion_parameters *p = &qp->dev->congestion;
	s64 period = sroce_congestion_period(qp, READ_ONCE(p->dce_tcp_rtt));
	struct sroce_congestion *c = &qp->req.congestion;
	u32 g = READ_ONCE(p->dce_tcp_g);
	int n;

	for (n = 0; n < SROCE_CATCH_UP && ktime_sub(now, c->alpha_at) >= period; n++) {
		c->alpha = c->alpha * g / SROCE_ALPHA_ONE;
		c->alpha_at = ktime_add_ns(c->alpha_at, period);
	}
	if (n == SROCE_CATCH_UP)
		c->alpha_at = now;
	period = sroce_congestion_increase_period(qp);
	for (n = 0; n < SROCE_CATCH_UP && ktime_sub(now, c->increase_at) >= period; n++) {
		c->increase_at = ktime_add_ns(c->increase_at, period);
		c->times++;
		sroce_congestion_increase(qp);
	}
	if (n == SROCE_CATCH_UP)
		c->increase_at = now;
}

/* The first CNP in a while */
static void sroce_congestion_limit(struct sroce_qp *qp, ktime_t now)
{
	u32 alpha = READ_ONCE(qp->dev->congestion.initial_alpha_value);
	struct sroce_congestion *c = &qp->req.congestion;

	c->limited = true;
	c->rate = clamp(sroce_congestion_present(qp), sroce_congestion_least(qp),
			sroce_congestion_most(qp));
	c->target = c->rate;
	c->alpha = min_t(u32, alpha, SROCE_ALPHA_ONE);
	if (ktime_before(c->departs, now))
		c->departs = now;
	c->cut_at = now;
	c->sent = 0;
	c->sent_at = now;
	c->used = c->rate;
}

static void sroce_congestion_cut(struct sroce_qp *qp, ktime_t now)
{
	const struct sroce_congestion_parameters *p = &qp->dev->congestion;
	u32 least = min(READ_ONCE(p->rpg_min_dec_fac), 100u);
	struct sroce_congestion *c = &qp->req.congestion;
	u32 g = READ_ONCE(p->dce_tcp_g);
	u64 rate;

	/* what is not used says nothing of the path, and would take many CNPs to be lowered */
	sroce_congestion_measure(qp, now);
	c->rate = min(c->rate, max(c->used, c->rate / 2));
	if (READ_ONCE(p->clamp_tgt_rate) || c->times || c->rounds || c->target > 2 * c->rate)
		c->target = c->rate;
	rate = c->rate - div_u64(c->rate * max_t(u32, c->alpha, SROCE_ALPHA_MIN),
				 2 * SROCE_ALPHA_ONE);
	rate = max(rate, div_u64(c->rate * least, 100));
	c->rate = max(rate, sroce_congestion_least(qp));
	c->alpha = min_t(u32, c->alpha * g / SROCE_ALPHA_ONE + SROCE_ALPHA_ONE - g,
			 SROCE_ALPHA_ONE);
	c->times = 0;
	c->rounds = 0;
	c->bytes = 0;
	c->cut_at = now;
	c->alpha_at = now;
	c->increase_at = now;
	trace_sroce_rate(qp, c);
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
	s64 period;

	if (!READ_ONCE(p->rp_enable)) {
		sroce_qp_count(qp, SROCE_CNT_CNP_IGNORED);
		return;
	}
	sroce_qp_count(qp, SROCE_CNT_CNP_HANDLED);
	if (!c->limited) {
		sroce_congestion_limit(qp, now);
		sroce_congestion_cut(qp, now);
		return;
	}
	sroce_congestion_catch_up(qp, now);
	period = sroce_congestion_period(qp, READ_ONCE(p->rate_reduce_monitor_period));
	if (c->limited && ktime_sub(now, c->cut_at) >= period)
		sroce_congestion_cut(qp, now);
}

/* What was missed by more than that is lost: it would be a burst */
static ktime_t sroce_congestion_latest(const struct sroce_congestion *c, ktime_t now)
{
	u64 us = div64_u64((u64)SROCE_LATE_BYTES * USEC_PER_SEC, c->rate);

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
	const struct sroce_congestion *c = &qp->req.congestion;
	ktime_t last = ktime_after(c->departs, c->cut_at) ? c->departs : c->cut_at;

	return ktime_us_delta(now, last) > SROCE_IDLE_US ||
	       !READ_ONCE(qp->dev->congestion.rp_enable);
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
	latest = sroce_congestion_latest(c, now);
	if (ktime_before(c->departs, latest))
		c->departs = latest;
	ahead = READ_ONCE(qp->av->paced) ? SROCE_BURST_FQ_US : SROCE_BURST_US;
	if (ktime_us_delta(c->departs, now) < ahead)
		return false;
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
	u64 round;

	if (likely(!c->limited))
		return;
	c->departs = ktime_add_ns(c->departs, div64_u64((u64)bytes * NSEC_PER_SEC, c->rate));
	c->bytes += bytes;
	c->sent += bytes;
	round = div_u64(c->rate * SROCE_INCREASE_PERIODS * sroce_congestion_effect(qp),
			USEC_PER_SEC);
	if (c->bytes < max_t(u64, READ_ONCE(qp->dev->congestion.rpg_byte_reset), round))
		return;
	c->bytes = 0;
	c->rounds++;
	sroce_congestion_increase(qp);
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
	if (!qp->dead) {
		sroce_respond_run(qp);
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
