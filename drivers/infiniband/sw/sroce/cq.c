// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion queues (IBA volume 1, 10.8.4 and 11.4.2) */
#include <rdma/uverbs_ioctl.h>
#include "cq.h"
#include "device.h"

/* See sroce_ring_lock(); also, resizing a user's CQ copies megabytes */
static struct lock_class_key sroce_user_cq_key;

static int sroce_cq_check_size(struct ib_device *ibdev, u32 cqe)
{
	if (cqe && cqe <= SROCE_MAX_CQE)
		return 0;
	ibdev_dbg(ibdev, "CQ of %u entries: 1 to %u are possible\n", cqe, SROCE_MAX_CQE);
	return -EINVAL;
}

static u32 sroce_cqe_size(const struct sroce_cq *cq)
{
	return cq->user ? sizeof(struct sroce_cqe) : sizeof(struct ib_wc);
}

static void sroce_cq_wake(struct sroce_cq *cq)
{
	cq->armed = 0;
	cq->gathered = 0;
	cq->wake = true;
}

/* A completion that the consumer waits for: notify him, now or when more have come */
static void sroce_cq_event(struct sroce_cq *cq, bool at_once)
{
	if (at_once || !cq->moderate_us || cq->gathered + 1 >= cq->moderate_count)
		sroce_cq_wake(cq);
	else if (!cq->gathered++)
		hrtimer_start(&cq->timer, ns_to_ktime(cq->moderate_us * NSEC_PER_USEC),
			      HRTIMER_MODE_REL_SOFT);
}

/* In a softirq.  The CQ is there: its destruction waits for this. */
static enum hrtimer_restart sroce_cq_timer(struct hrtimer *timer)
{
	struct sroce_cq *cq = container_of(timer, struct sroce_cq, timer);
	unsigned long flags;

	flags = sroce_ring_lock(&cq->ring, &cq->lock);
	if (cq->armed && cq->gathered)
		sroce_cq_wake(cq);
	sroce_ring_unlock(&cq->ring, &cq->lock, flags);
	sroce_cq_notify(cq);
	return HRTIMER_NORESTART;
}

/**
 * sroce_modify_cq - ib_device_ops.modify_cq: notify of several completions at once
 * @ibcq: CQ
 * @count: after so many, 0 or 1 for each
 * @period: or so many microseconds after the first of them, 0 for each
 *
 * An error is told at once.
 * Return: 0.
 */
int sroce_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	struct sroce_cq *cq = to_scq(ibcq);
	unsigned long flags;

	flags = sroce_ring_lock(&cq->ring, &cq->lock);
	cq->moderate_count = count;
	cq->moderate_us = period;
	sroce_ring_unlock(&cq->ring, &cq->lock, flags);
	return 0;
}

/**
 * sroce_create_cq - ib_device_ops.create_cq
 * @ibcq: allocated by the core
 * @attr: number of entries wanted
 * @udata: the user's call, NULL for a kernel user; answers with
 *	struct sroce_create_cq_resp
 *
 * Return: 0, -EINVAL, -EOPNOTSUPP for flags, -ENOMEM, -EFAULT.
 */
int sroce_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct ib_udata *udata)
{
	struct sroce_create_cq_resp resp = {};
	struct sroce_create_cq_cmd cmd = {};
	struct sroce_cq *cq = to_scq(ibcq);
	u32 cqe = attr->cqe;
	int err;

	if (attr->flags & ~(u32)IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION ||
	    (attr->flags && !(sroce_ring_ext(udata) & SROCE_EXT_CQE)))
		return -EOPNOTSUPP;
	err = sroce_cq_check_size(ibcq->device, cqe);
	if (err)
		return err;
	if (udata && udata->outlen < sizeof(resp))
		return -EINVAL;
	if (udata && udata->inlen >= sizeof(cmd)) {
		err = ib_copy_from_udata(&cmd, udata, sizeof(cmd));
		if (err)
			return err;
	}
	spin_lock_init(&cq->lock);
	sroce_hrtimer_setup(&cq->timer, sroce_cq_timer, HRTIMER_MODE_REL_SOFT);
	cq->user = udata;
	if (udata)
		lockdep_set_class(&cq->lock, &sroce_user_cq_key);
	cq->timestamps = attr->flags;
	err = sroce_ring_create(&cq->ring, udata, &cmd.ring, &cqe, sroce_cqe_size(cq), &resp.mi);
	if (err)
		return err;
	if (udata) {
		err = ib_copy_to_udata(udata, &resp, sizeof(resp));
		if (err) {
			sroce_ring_destroy(&cq->ring);
			return err;
		}
	}
	ibcq->cqe = cqe;
	return 0;
}

/**
 * sroce_destroy_cq - ib_device_ops.destroy_cq
 * @ibcq: CQ that no queue pair uses: the core counts them
 * @udata: nothing in it
 *
 * Return: 0.
 */
int sroce_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct sroce_cq *cq = to_scq(ibcq);
	unsigned long flags;

	hrtimer_cancel(&cq->timer);
	flags = sroce_ring_lock(&cq->ring, &cq->lock);
	cq->dead = true;
	sroce_ring_unlock(&cq->ring, &cq->lock, flags);
	sroce_ring_destroy(&cq->ring);
	return 0;
}

/* Moves what is not polled yet to a new ring; the caller holds the lock */
static int sroce_cq_move(struct sroce_cq *cq, struct sroce_ring *to)
{
	u32 from = sroce_ring_consumer(&cq->ring);

	if (sroce_ring_distance(&cq->ring, from, cq->ring.index) > to->mask)
		return -EINVAL;
	for (; from != cq->ring.index; from = sroce_ring_next(&cq->ring, from)) {
		memcpy(sroce_ring_element(to, to->index), sroce_ring_element(&cq->ring, from),
		       1u << to->shift);
		to->index = sroce_ring_next(to, to->index);
	}
	sroce_ring_set_producer(to, to->index);
	return 0;
}

/**
 * sroce_resize_cq - ib_device_ops.resize_cq: a ring of another size
 * @ibcq: CQ
 * @cqe: number of entries wanted
 * @udata: answers with struct sroce_resize_cq_resp
 *
 * Return: 0, -EINVAL when there are more completions in it than would fit,
 * -ENOMEM, -EFAULT.
 */
int sroce_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	struct sroce_resize_cq_resp resp = {};
	struct sroce_resize_cq_cmd cmd = {};
	struct sroce_cq *cq = to_scq(ibcq);
	struct sroce_ring ring;
	u32 size = cqe;
	int err;

	err = sroce_cq_check_size(ibcq->device, size);
	if (err)
		return err;
	if (!udata || udata->outlen < sizeof(resp))
		return -EINVAL;
	if (udata->inlen >= sizeof(cmd)) {
		err = ib_copy_from_udata(&cmd, udata, sizeof(cmd));
		if (err)
			return err;
	}
	err = sroce_ring_create(&ring, udata, &cmd.ring, &size, sroce_cqe_size(cq), &resp.mi);
	if (err)
		return err;
	err = ib_copy_to_udata(udata, &resp, sizeof(resp));
	if (err)
		goto err_ring;

	spin_lock_bh(&cq->lock);
	err = sroce_cq_move(cq, &ring);
	if (!err) {
		swap(cq->ring, ring);
		ibcq->cqe = size;
	}
	spin_unlock_bh(&cq->lock);
err_ring:
	sroce_ring_destroy(&ring);	/* the old one, or on failure the new one */
	return err;
}

static u32 sroce_user_wc_flags(int wc_flags)
{
	return (wc_flags & IB_WC_GRH ? SROCE_WC_GRH : 0) |
	       (wc_flags & IB_WC_WITH_IMM ? SROCE_WC_WITH_IMM : 0) |
	       (wc_flags & IB_WC_IP_CSUM_OK ? SROCE_WC_IP_CSUM_OK : 0) |
	       (wc_flags & IB_WC_WITH_INVALIDATE ? SROCE_WC_WITH_INV : 0);
}

static void sroce_cq_write_user(const struct sroce_cq *cq, struct sroce_cqe *to,
				const struct ib_wc *wc)
{
	*(struct ib_uverbs_wc *)to->wc = (struct ib_uverbs_wc) {
		.wr_id = wc->wr_id,
		.status = wc->status,
		.opcode = wc->opcode,
		.vendor_err = wc->vendor_err,
		.byte_len = wc->byte_len,
		.ex.imm_data = wc->ex.imm_data,
		.qp_num = wc->qp->qp_num,
		.src_qp = wc->src_qp,
		.wc_flags = sroce_user_wc_flags(wc->wc_flags),
		.pkey_index = wc->pkey_index,
		.slid = wc->slid,
		.sl = wc->sl,
		.dlid_path_bits = wc->dlid_path_bits,
		.port_num = wc->port_num,
	};
	if (cq->timestamps) {
		to->monotonic_ns = ktime_get_ns();
		to->realtime_ns = ktime_get_real_ns();
	}
}

/**
 * sroce_cq_add - add a completion
 * @cq: CQ
 * @wc: completion
 * @solicited: it counts for a consumer that asked for solicited events only; an
 *	error does in any case
 *
 * Does not call the consumer: after the queue pair's lock is dropped
 * sroce_cq_notify() does.
 * Context: any, under the lock of the queue pair.  Return: 0, or -ENOSPC when
 * the CQ is or was overrun: the completion is lost, and the queue pair has to
 * go to the error state.
 */
int sroce_cq_add(struct sroce_cq *cq, const struct ib_wc *wc, bool solicited)
{
	struct sroce_ring *ring = &cq->ring;
	unsigned long flags;
	void *to;
	int err = 0;

	flags = sroce_ring_lock(&cq->ring, &cq->lock);
	if (cq->overrun ||
	    sroce_ring_next(ring, ring->index) == sroce_ring_consumer(ring)) {
		cq->report |= !cq->overrun;
		cq->overrun = true;
		err = -ENOSPC;
		goto out;
	}
	to = sroce_ring_element(ring, ring->index);
	if (cq->user)
		sroce_cq_write_user(cq, to, wc);
	else
		*(struct ib_wc *)to = *wc;
	ring->index = sroce_ring_next(ring, ring->index);
	sroce_ring_set_producer(ring, ring->index);
	if (cq->armed == IB_CQ_NEXT_COMP ||
	    (cq->armed == IB_CQ_SOLICITED && (solicited || wc->status != IB_WC_SUCCESS)))
		sroce_cq_event(cq, wc->status != IB_WC_SUCCESS);
out:
	sroce_ring_unlock(&cq->ring, &cq->lock, flags);
	return err;
}

/**
 * sroce_cq_notify - call the consumer if there is something to tell
 * @cq: CQ that the caller keeps alive, with no lock held
 *
 * The consumer may post and poll from its handler.
 */
void sroce_cq_notify(struct sroce_cq *cq)
{
	struct ib_event event = {
		.device = cq->ibcq.device,
		.element.cq = &cq->ibcq,
		.event = IB_EVENT_CQ_ERR,
	};
	unsigned long flags;
	bool wake, report;

	if (!READ_ONCE(cq->wake) && !READ_ONCE(cq->report))
		return;
	flags = sroce_ring_lock(&cq->ring, &cq->lock);
	wake = cq->wake;
	report = cq->report;
	cq->wake = false;
	cq->report = false;
	sroce_ring_unlock(&cq->ring, &cq->lock, flags);
	if (report) {
		ibdev_warn_ratelimited(cq->ibcq.device,
				       "CQ overrun: %d entries and none polled in time\n",
				       cq->ibcq.cqe);
		if (cq->ibcq.event_handler)
			cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
	}
	if (wake && cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

/**
 * sroce_poll_cq - ib_device_ops.poll_cq, for kernel users
 * @ibcq: CQ
 * @num: how many at the most
 * @wc: where to
 *
 * Context: any.  Return: how many there were, or -EINVAL for a user's CQ.
 */
int sroce_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct sroce_cq *cq = to_scq(ibcq);
	struct sroce_ring *ring = &cq->ring;
	unsigned long irq_flags;
	u32 index;
	int n;

	if (cq->user)
		return -EINVAL;
	irq_flags = sroce_ring_lock(&cq->ring, &cq->lock);
	index = sroce_ring_consumer(ring);
	for (n = 0; n < num && index != ring->index; n++) {
		wc[n] = *(struct ib_wc *)sroce_ring_element(ring, index);
		index = sroce_ring_next(ring, index);
	}
	sroce_ring_set_consumer(ring, index);
	sroce_ring_unlock(&cq->ring, &cq->lock, irq_flags);
	return n;
}

/**
 * sroce_cq_caught_up - has the consumer taken everything, and more than before?
 * @cq: CQ of a user, who may lie about what he has taken
 * @seen: the kernel's end of the ring at the last call, brought up to date
 *
 * The lock keeps the ring from being exchanged by a resize.
 * Context: any; may hold a queue pair's lock.
 * Return: whether a completion was added since, and none is left.
 */
bool sroce_cq_caught_up(struct sroce_cq *cq, u32 *seen)
{
	unsigned long flags;
	bool caught_up;

	flags = sroce_ring_lock(&cq->ring, &cq->lock);
	caught_up = cq->ring.index != *seen && sroce_ring_consumer(&cq->ring) == cq->ring.index;
	*seen = cq->ring.index;
	sroce_ring_unlock(&cq->ring, &cq->lock, flags);
	return caught_up;
}

/**
 * sroce_cq_forget - drop a kernel user's completions of a queue pair that was reset
 * @cq: its send or receive CQ, or NULL; from a user's his provider drops them
 * @qp: queue pair, that adds none meanwhile
 *
 * What is left moves up, so that the consumer's end of the ring moves forward.
 */
void sroce_cq_forget(struct sroce_cq *cq, const struct ib_qp *qp)
{
	struct sroce_ring *ring;
	unsigned long flags;
	u32 from, to, first;
	struct ib_wc *wc;

	if (!cq || cq->user)
		return;
	ring = &cq->ring;
	flags = sroce_ring_lock(ring, &cq->lock);
	first = sroce_ring_consumer(ring);
	for (from = to = ring->index; from != first;) {
		from = (from - 1) & ring->mask;
		wc = sroce_ring_element(ring, from);
		if (wc->qp == qp)
			continue;
		to = (to - 1) & ring->mask;
		if (to != from)
			*(struct ib_wc *)sroce_ring_element(ring, to) = *wc;
	}
	sroce_ring_set_consumer(ring, to);
	sroce_ring_unlock(ring, &cq->lock, flags);
}

/**
 * sroce_req_notify_cq - ib_device_ops.req_notify_cq
 * @ibcq: CQ
 * @flags: for which completions, and whether to say what was missed
 *
 * Context: any.  Return: 0, or 1 when IB_CQ_REPORT_MISSED_EVENTS is asked and there are
 * completions that were not polled.
 */
int sroce_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct sroce_cq *cq = to_scq(ibcq);
	/* who asks for both asks for all */
	enum ib_cq_notify_flags what = flags & IB_CQ_NEXT_COMP ?: flags & IB_CQ_SOLICITED;
	unsigned long irq_flags;
	int missed = 0;

	irq_flags = sroce_ring_lock(&cq->ring, &cq->lock);
	if (!cq->armed)
		cq->gathered = 0;
	if (cq->armed != IB_CQ_NEXT_COMP)	/* the wider request stays */
		cq->armed = what;
	if (flags & IB_CQ_REPORT_MISSED_EVENTS)
		missed = cq->ring.index != sroce_ring_consumer(&cq->ring);
	sroce_ring_unlock(&cq->ring, &cq->lock, irq_flags);
	return missed;
}
