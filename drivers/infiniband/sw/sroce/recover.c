// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Loss (IBA volume 1, 9.7.5 and 9.9): what a requester sends again, when, and how much
 * it has under way.
 *
 * The specification's way is to go back to what is missing and send everything from
 * there on.  A peer like this driver keeps what came behind a gap, and then that is a
 * waste.  So what a NAK names is sent again alone, and sending goes on where it was; the
 * next answer tells what is still missing, if anything is.  If that is just what
 * follows, the stretch that is sent again doubles: a peer that keeps nothing gets all of
 * it so, and for one that has proved to be such it is all from the beginning.  On the
 * wire it is what 9.7.5 has in any case: packets sent again, of which some come twice.
 *
 * When nothing is acknowledged for somewhat longer than a round trip takes, the oldest
 * packet is sent again, as a probe.  Whatever was lost, it, a NAK, the ACK or all that
 * followed, its answer says so.  Probes do not count as retries: the transport timer
 * (9.7.6.1.3) goes on as ever, and when it fires, everything is sent again.
 *
 * What is under way is bounded by a window.  It shrinks when something was lost and
 * grows when it was used up.
 */
#include "complete.h"
#include "qp.h"
#include "recover.h"
#include "send.h"

/* Payload that may be under way on a short path, bytes, and packets at least */
#define SROCE_WINDOW_BYTES	(512u << 10)
#define SROCE_WINDOW_PACKETS	128

/* On a long one so many times that, for a round trip of as many milliseconds */
#define SROCE_WINDOW_SCALE	64

/* The window at first is a quarter; loss leaves three quarters of it, but so much */
#define SROCE_WINDOW_MIN	8

/* A probe is sent after this at the earliest, microseconds */
#define SROCE_PROBE_MIN_US	400

/* So many are sent, each after twice the time; then the transport timer has its turn */
#define SROCE_PROBES		8

/* Proofs that a peer keeps nothing, and how often it is put to the proof again */
#define SROCE_FORGETS		3
#define SROCE_FORGETS_TRY	16

/* The window of a short path, packets */
static u32 sroce_recover_base(const struct sroce_qp *qp)
{
	return max(SROCE_WINDOW_BYTES / qp->mtu, (u32)SROCE_WINDOW_PACKETS);
}

/* The largest window: what fits into the path, as far as it is known */
static u32 sroce_recover_most(const struct sroce_qp *qp)
{
	u32 ms = qp->req.recovery.rtt_min / USEC_PER_MSEC;

	return sroce_recover_base(qp) * clamp(ms, 1u, (u32)SROCE_WINDOW_SCALE);
}

/* The transport timer, 9.7.6.1.3: 4.096 us * 2^timeout; 0 is for ever */
static unsigned long sroce_ack_jiffies(const struct sroce_qp *qp)
{
	return nsecs_to_jiffies(4096ull << qp->attr.timeout) + 2;
}

static void sroce_recover_arm(struct sroce_qp *qp, unsigned long delay)
{
	struct sroce_requester *req = &qp->req;

	req->deadline = jiffies + delay;
	req->armed = true;
	/* a timer that fires too early sets itself again */
	if (!timer_pending(&req->timer) || time_before(req->deadline, req->timer.expires))
		mod_timer(&req->timer, req->deadline);
}

/* How long to wait for an answer before a probe is sent */
static ktime_t sroce_recover_patience(const struct sroce_recovery *rec)
{
	u32 us = max(2 * rec->srtt + 4 * rec->rttvar, (u32)SROCE_PROBE_MIN_US);

	return ns_to_ktime((u64)us * NSEC_PER_USEC << rec->probes);
}

static void sroce_recover_watch_probe(struct sroce_qp *qp)
{
	struct sroce_recovery *rec = &qp->req.recovery;

	if (rec->probing || !rec->srtt || rec->probes >= SROCE_PROBES)
		return;
	rec->probing = true;
	rec->seen = qp->req.una;
	hrtimer_start(&rec->probe, sroce_recover_patience(rec), HRTIMER_MODE_REL_SOFT);
}

/* Something was acknowledged: it is no longer that late */
static void sroce_recover_unwatch_probe(struct sroce_recovery *rec)
{
	if (rec->probes && rec->probing && hrtimer_try_to_cancel(&rec->probe) >= 0)
		rec->probing = false;
	rec->probes = 0;
}

/**
 * sroce_recover_watch - have the timers run if something is under way
 * @qp: queue pair, locked
 *
 * What is armed already stays.
 */
void sroce_recover_watch(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;

	if (!sroce_qp_is_reliable(qp) || req->rnr_wait)
		return;
	if (req->una == req->psn_max) {
		req->armed = false;
		return;
	}
	sroce_recover_watch_probe(qp);
	if (!qp->attr.timeout)
		req->armed = false;
	else if (!req->armed)
		sroce_recover_arm(qp, sroce_ack_jiffies(qp));
}

/**
 * sroce_recover_sent - a packet was built that is answered at once
 * @qp: RC queue pair, locked
 * @psn: PSN of the packet
 * @repeated: it may have been sent before: its answer tells nothing
 */
void sroce_recover_sent(struct sroce_qp *qp, u32 psn, bool repeated)
{
	struct sroce_recovery *rec = &qp->req.recovery;

	if (rec->timing || repeated ||
	    (rec->srtt && !qp->req.congestion.limited &&
	     !time_after(jiffies, rec->timed_jiffies)))
		return;
	rec->timing = true;
	rec->doubtful = false;
	rec->timed = psn;
	rec->timed_at = ktime_get();
	if (qp->av->paced && ktime_after(qp->req.congestion.departs, rec->timed_at))
		rec->timed_at = qp->req.congestion.departs;
	rec->timed_jiffies = jiffies;
}

/*
 * A round trip was timed: mean and deviation as every transport has them.  With a probe
 * meanwhile it may have been a loss that took the time, but as well a path that has become
 * longer than the probes know: then they must learn it, step by step.
 */
static void sroce_recover_timed(struct sroce_recovery *rec)
{
	s64 took = ktime_us_delta(ktime_get(), rec->timed_at);
	u32 us = clamp_t(s64, took, 1, USEC_PER_SEC);

	rec->timing = false;
	if (!rec->srtt) {
		rec->srtt = us;
		rec->rttvar = us / 2;
		rec->rtt_min = us;
		return;
	}
	if (rec->doubtful)
		us = min(us, 2 * rec->srtt);
	rec->rttvar = (3 * rec->rttvar + abs((s32)(us - rec->srtt))) / 4;
	rec->srtt = max((7 * rec->srtt + us) / 8, 1u);
	rec->rtt_min = min(rec->rtt_min, us);
}

/* @packets were acknowledged of a window that was used up */
static void sroce_recover_grow(struct sroce_qp *qp, u32 packets)
{
	struct sroce_recovery *rec = &qp->req.recovery;
	u32 most = sroce_recover_most(qp);

	if (rec->window < rec->threshold) {
		rec->window = min(rec->window + packets, most);
		return;
	}
	rec->grown += packets;
	if (rec->grown < rec->window)
		return;
	rec->grown = 0;
	rec->window = min(rec->window + max(sroce_recover_base(qp) / 64, 1u), most);
}

/**
 * sroce_recover_progress - something was acknowledged
 * @qp: RC queue pair, locked, its una advanced
 * @from: what that was before
 */
void sroce_recover_progress(struct sroce_qp *qp, u32 from)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_recovery *rec = &req->recovery;

	sroce_recover_unwatch_probe(rec);
	if (rec->timing && sroce_psn_diff(req->una, rec->timed) > 0)
		sroce_recover_timed(rec);
	if (rec->active) {
		/* what was behind the stretch was sent once, before: it was kept */
		if (sroce_psn_diff(rec->until, rec->end) > 0 &&
		    sroce_psn_diff(req->una, rec->end) > 0)
			rec->forgets = 0;
		if (sroce_psn_diff(req->una, rec->until) >= 0)
			rec->active = false;
		else if (rec->window < rec->threshold)	/* after a timeout */
			sroce_recover_grow(qp, sroce_psn_diff(req->una, from));
		return;
	}
	if (sroce_psn_diff(req->psn_max, from) >= (s32)rec->window)
		sroce_recover_grow(qp, sroce_psn_diff(req->una, from));
}

/* Something was lost, it seems: recovery begins */
static void sroce_recover_begin(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_recovery *rec = &req->recovery;

	rec->stretch = 1;
	if (rec->active)
		return;
	rec->active = true;
	rec->cut = false;
	rec->until = req->psn_max;
	rec->end = req->una;
}

/* Something was lost, for certain: the window gets smaller, once for all that was under way */
static void sroce_recover_cut(struct sroce_qp *qp)
{
	struct sroce_recovery *rec = &qp->req.recovery;

	rec->timing = false;
	if (rec->cut)
		return;
	rec->cut = true;
	rec->window = max(rec->window * 3 / 4, (u32)SROCE_WINDOW_MIN);
	rec->threshold = rec->window;
	rec->grown = 0;
}

/*
 * Where sending again ends.  A READ is requested whole, as long as nothing shows that
 * the peer has got the request: a part would be a request of its own.
 */
static u32 sroce_recover_end(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_recovery *rec = &req->recovery;
	const struct sroce_swqe *wqe = &req->wqes[req->next];
	u32 end, held;

	if (req->next == req->fresh)
		return req->psn_max;
	if (!sroce_wqe_is_rd_atomic(wqe)) {
		end = sroce_psn_add(req->una, rec->stretch);
	} else {
		end = sroce_psn_add(wqe->first_psn, wqe->packets);
		if (sroce_hold_next(&req->hold, req->una, &held) &&
		    sroce_psn_diff(held, end) < 0)
			end = held;
	}
	return sroce_psn_diff(end, req->psn_max) < 0 ? end : req->psn_max;
}

/* Sends a stretch again, from the oldest packet that is not acknowledged */
static void sroce_recover_stretch(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_recovery *rec = &req->recovery;

	sroce_complete_seek(qp, req->una);
	rec->first = req->una;
	rec->at = ktime_get();
	rec->end = sroce_recover_end(qp);
	rec->doubtful |= sroce_psn_diff(rec->end, rec->timed) > 0;
	req->armed = false;
}

/* Everything from the oldest packet on that is not acknowledged, 9.9.2.4 */
static void sroce_recover_all(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;

	req->psn_asked = sroce_psn_add(req->una, -1);
	req->recovery.timing = false;
	req->recovery.first = req->una;
	req->recovery.end = req->psn_max;
	sroce_complete_seek(qp, req->una);
	req->armed = false;
}

/* Takes one of the retries; false when there was none left, and the request failed */
static bool sroce_recover_retry(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;

	if (req->retries) {
		req->retries--;
		return true;
	}
	sroce_qp_count(qp, SROCE_CNT_RETRY_EXCEEDED);
	ibdev_dbg(&qp->dev->ibdev, "QP %u: no answer from QP %u at PSN %u\n",
		  qp->ibqp.qp_num, qp->attr.dest_qp_num, req->una);
	sroce_complete_fail(qp, IB_WC_RETRY_EXC_ERR);
	return false;
}

/* Is this what was sent again a moment ago? Then the answer to that is still to come */
static bool sroce_recover_repeated(const struct sroce_qp *qp)
{
	const struct sroce_recovery *rec = &qp->req.recovery;

	return rec->active && rec->first == qp->req.una &&
	       ktime_us_delta(ktime_get(), rec->at) < rec->srtt;
}

/* Has the peer proved to keep nothing? It is put to the proof again now and then */
static bool sroce_recover_forgets(struct sroce_recovery *rec)
{
	if (rec->forgets < SROCE_FORGETS)
		return false;
	if (++rec->forgets % SROCE_FORGETS_TRY)
		return true;
	rec->forgets = SROCE_FORGETS - 1;
	return false;
}

/* What the answer to a stretch says of the next one, and of the peer */
static void sroce_recover_learn(struct sroce_qp *qp)
{
	struct sroce_recovery *rec = &qp->req.recovery;
	s32 beyond = sroce_psn_diff(qp->req.una, rec->end);

	if (beyond) {
		rec->stretch = 1;
		if (beyond > 0)
			rec->forgets = 0;
		return;
	}
	rec->stretch = min(2 * rec->stretch, sroce_recover_base(qp));
	if (rec->stretch == 8)	/* so much is hardly ever lost in a row */
		rec->forgets++;
}

/**
 * sroce_recover_nak - the peer misses the oldest packet that is not acknowledged
 * @qp: RC queue pair, locked, with something under way
 */
void sroce_recover_nak(struct sroce_qp *qp)
{
	struct sroce_recovery *rec = &qp->req.recovery;
	bool active = rec->active;

	if (sroce_recover_repeated(qp) || !sroce_recover_retry(qp))
		return;
	if (active)
		sroce_recover_learn(qp);
	else
		sroce_recover_begin(qp);
	sroce_recover_cut(qp);
	if (sroce_recover_forgets(rec))
		sroce_recover_all(qp);
	else
		sroce_recover_stretch(qp);
}

/**
 * sroce_recover_gap - a response to the oldest request is missing
 * @qp: RC queue pair, locked; later responses are held
 */
void sroce_recover_gap(struct sroce_qp *qp)
{
	if (!sroce_recover_retry(qp))
		return;
	sroce_recover_begin(qp);
	sroce_recover_cut(qp);
	sroce_recover_stretch(qp);
}

/* Is a response of its own to come, rather than an ACK, for what is missing? */
static bool sroce_recover_responds(const struct sroce_requester *req)
{
	return req->ring.index != req->fresh &&
	       sroce_wqe_is_rd_atomic(&req->wqes[req->ring.index]);
}

/**
 * sroce_recover_more - an ACK came; is anything of what was lost still missing?
 * @qp: RC queue pair, locked
 * @from: what was acknowledged before
 *
 * All that was under way when the loss was noticed has been answered by now, unless it
 * is a READ's turn: its responses take their time.
 */
void sroce_recover_more(struct sroce_qp *qp, u32 from)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_recovery *rec = &req->recovery;

	if (!rec->active || req->una == from || req->rnr_wait ||
	    sroce_psn_diff(req->una, rec->end) < 0 || sroce_recover_responds(req))
		return;
	sroce_recover_learn(qp);
	sroce_recover_stretch(qp);
}

/**
 * sroce_recover_wait - send nothing for a while
 * @qp: RC queue pair, locked
 * @us: at least so many microseconds, unless an answer comes before; meanwhile no
 *	answer is missed, and none counts as late
 */
void sroce_recover_wait(struct sroce_qp *qp, u32 us)
{
	struct sroce_requester *req = &qp->req;

	req->rnr_wait = true;
	req->rnr_until = ktime_add_us(ktime_get(), us);
	sroce_recover_arm(qp, usecs_to_jiffies(us) + 1);
}

/**
 * sroce_recover_later - send everything again after a while
 * @qp: RC queue pair, locked
 * @us: as for sroce_recover_wait()
 */
void sroce_recover_later(struct sroce_qp *qp, u32 us)
{
	sroce_recover_all(qp);
	sroce_recover_wait(qp, us);
}

/* Nobody knows what the path is like now: as at first, or slower */
static void sroce_recover_restart(struct sroce_qp *qp)
{
	qp->req.recovery.window = SROCE_WINDOW_MIN;
	sroce_qp_count(qp, SROCE_CNT_SLOW_RESTART);
}

/* Does something that is to be sent again wait for its turn, at the rate that is allowed? */
static bool sroce_recover_paced(const struct sroce_requester *req)
{
	return req->congestion.timing && req->psn != req->psn_max;
}

/* Time is up: for an unready receiver to be tried again, or for an answer */
static void sroce_recover_time_up(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;

	/* jiffies may have been late when the timer was set: the receiver's time is real */
	if (req->rnr_wait && ktime_before(ktime_get(), req->rnr_until)) {
		sroce_recover_arm(qp, 1);
		return;
	}
	if (!req->rnr_wait && sroce_recover_paced(req)) {
		sroce_recover_arm(qp, sroce_ack_jiffies(qp));
		return;
	}
	req->armed = false;
	if (req->rnr_wait) {
		req->rnr_wait = false;
	} else if (req->una != req->psn_max) {
		sroce_qp_count(qp, SROCE_CNT_ACK_TIMEOUT);
		if (sroce_recover_retry(qp)) {
			sroce_recover_begin(qp);
			sroce_recover_cut(qp);
			sroce_recover_restart(qp);
			sroce_recover_all(qp);
		}
	}
	sroce_send_run(qp);
}

static void sroce_recover_timer(struct timer_list *timer)
{
	struct sroce_qp *qp = timer_container_of(qp, timer, req.timer);
	struct sroce_requester *req = &qp->req;

	spin_lock_bh(&qp->lock);
	if (req->armed && !qp->dead) {
		if (time_before(jiffies, req->deadline))
			mod_timer(&req->timer, req->deadline);
		else
			sroce_recover_time_up(qp);
	}
	sroce_qp_unlock(qp);
}

/* Is something still being sent again, and not because its answers are late? */
static bool sroce_recover_repeats(const struct sroce_requester *req)
{
	return req->psn != req->psn_max &&
	       sroce_psn_diff(req->psn, req->una) < (s32)req->recovery.window;
}

/* Nothing was acknowledged since the timer fired last: send the oldest packet again */
static void sroce_recover_probe(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	bool armed = req->armed;

	if (req->una != req->recovery.seen || req->rnr_wait || sroce_recover_repeats(req))
		return;
	req->recovery.probes++;
	sroce_recover_begin(qp);
	sroce_recover_stretch(qp);
	req->armed = armed;	/* the transport timer goes on */
}

static enum hrtimer_restart sroce_recover_probe_timer(struct hrtimer *timer)
{
	struct sroce_qp *qp = container_of(timer, struct sroce_qp, req.recovery.probe);
	struct sroce_recovery *rec = &qp->req.recovery;

	spin_lock_bh(&qp->lock);
	rec->probing = false;
	if (!qp->dead && qp->req.una != qp->req.psn_max && sroce_qp_can_send(qp)) {
		sroce_recover_probe(qp);
		sroce_send_run(qp);	/* which starts the timer again */
	}
	sroce_qp_unlock(qp);
	return HRTIMER_NORESTART;
}

/**
 * sroce_recover_start - the path is new
 * @qp: queue pair, locked, that is about to send for the first time
 */
void sroce_recover_start(struct sroce_qp *qp)
{
	struct sroce_recovery *rec = &qp->req.recovery;

	rec->window = sroce_recover_base(qp) / 4;
	rec->threshold = U32_MAX;
	rec->grown = 0;
	rec->srtt = 0;
	rec->rtt_min = 0;
	rec->forgets = 0;
}

/**
 * sroce_recover_reset - nothing is under way, and nothing is waited for
 * @qp: queue pair, locked
 */
void sroce_recover_reset(struct sroce_qp *qp)
{
	qp->req.recovery.active = false;
	qp->req.recovery.timing = false;
	sroce_recover_unwatch_probe(&qp->req.recovery);
	qp->req.armed = false;
	qp->req.rnr_wait = false;
	qp->req.gap = false;
}

/**
 * sroce_recover_init - set up a requester's timers
 * @qp: queue pair that is being created
 */
void sroce_recover_init(struct sroce_qp *qp)
{
	timer_setup(&qp->req.timer, sroce_recover_timer, 0);
	sroce_hrtimer_setup(&qp->req.recovery.probe, sroce_recover_probe_timer,
			    HRTIMER_MODE_REL_SOFT);
}

/**
 * sroce_recover_exit - no timer will fire any more
 * @qp: queue pair that is being destroyed, not locked, marked dead
 *
 * Context: process, sleeps.
 */
void sroce_recover_exit(struct sroce_qp *qp)
{
	timer_shutdown_sync(&qp->req.timer);
	hrtimer_cancel(&qp->req.recovery.probe);
}
