// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Shared receive queues (IBA volume 1, 10.2.9) */
#include <rdma/uverbs_ioctl.h>
#include "device.h"
#include "srq.h"
#include "xrc.h"

static int sroce_srq_check(struct ib_device *ibdev, const struct ib_srq_attr *attr)
{
	if (!attr->max_wr || attr->max_wr > SROCE_MAX_WR ||
	    attr->max_sge > SROCE_MAX_SGE || attr->srq_limit > attr->max_wr) {
		ibdev_dbg(ibdev, "SRQ of %u requests of %u entries, limit %u: out of range\n",
			  attr->max_wr, attr->max_sge, attr->srq_limit);
		return -EINVAL;
	}
	return 0;
}

/**
 * sroce_create_srq - ib_device_ops.create_srq
 * @ibsrq: allocated by the core
 * @init: what is wanted; on return, what there is
 * @udata: answers with struct sroce_create_srq_resp
 *
 * Return: 0, -EINVAL, -EOPNOTSUPP for a type the device does not have,
 * -ENOMEM, -EFAULT.
 */
int sroce_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	struct sroce_dev *dev = to_sdev(ibsrq->device);
	struct sroce_create_srq_resp resp = {};
	struct sroce_srq *srq = to_ssrq(ibsrq);
	struct sroce_create_srq_cmd cmd = {};
	u32 max_wr = init->attr.max_wr;
	u32 max_sge = max(init->attr.max_sge, 1u);
	int err;

	if (init->srq_type != IB_SRQT_BASIC && (init->srq_type != IB_SRQT_XRC || !udata))
		return -EOPNOTSUPP;
	err = sroce_srq_check(ibsrq->device, &init->attr);
	if (err)
		return err;
	if (udata && udata->outlen < sizeof(resp))
		return -EINVAL;
	if (udata && udata->inlen >= sizeof(cmd)) {
		err = ib_copy_from_udata(&cmd, udata, sizeof(cmd));
		if (err)
			return err;
	}
	err = sroce_rq_create(&srq->rq, udata, &cmd.ring, &max_wr, max_sge, &resp.mi);
	if (err)
		return err;
	srq->limit = init->attr.srq_limit;
	srq->max_wr = max_wr;
	if (init->srq_type == IB_SRQT_XRC) {
		err = sroce_xrc_publish(srq);
		if (err)
			goto err_rq;
	} else {
		srq->number = atomic_inc_return(&dev->srq_number);
	}
	if (udata) {
		resp.srq_num = srq->number;
		err = ib_copy_to_udata(udata, &resp, sizeof(resp));
		if (err)
			goto err_unpublish;
	}
	init->attr.max_wr = max_wr;
	init->attr.max_sge = max_sge;
	return 0;

err_unpublish:
	if (init->srq_type == IB_SRQT_XRC)
		sroce_xrc_unpublish(srq);
err_rq:
	sroce_rq_destroy(&srq->rq);
	return err;
}

/* Moves what is in the queue to a new ring; the caller holds the lock */
static int sroce_srq_move(struct sroce_rq *rq, struct sroce_ring *to)
{
	struct sroce_ring *from = &rq->ring;
	u32 producer = sroce_ring_producer(from);
	u32 at, n = 0;

	if (sroce_ring_distance(from, from->index, producer) > to->mask)
		return -EINVAL;
	for (at = from->index; at != producer; at = sroce_ring_next(from, at))
		memcpy(sroce_ring_element(to, n++), sroce_ring_element(from, at), 1u << to->shift);
	sroce_ring_set_producer(to, n);
	return 0;
}

static int sroce_srq_resize(struct sroce_srq *srq, u32 max_wr, struct ib_udata *udata)
{
	u32 size = sizeof(struct sroce_recv_wqe) + srq->rq.max_sge * sizeof(struct sroce_sge);
	struct sroce_modify_srq_cmd cmd;
	struct sroce_mmap_info mi = {};
	struct sroce_ring ring;
	unsigned long flags;
	int err;

	if (udata) {
		if (udata->inlen < sizeof(cmd))
			return -EINVAL;
		err = ib_copy_from_udata(&cmd, udata, sizeof(cmd));
		if (err)
			return err;
	}
	err = sroce_ring_create(&ring, udata, NULL, &max_wr, size, &mi);
	if (err)
		return err;
	sroce_ring_quiet(&ring);
	if (udata && copy_to_user(u64_to_user_ptr(cmd.mmap_info_addr), &mi, sizeof(mi))) {
		err = -EFAULT;
		goto out;
	}
	flags = sroce_ring_lock(&srq->rq.ring, &srq->rq.lock);
	err = srq->limit > max_wr ? -EINVAL : sroce_srq_move(&srq->rq, &ring);
	if (!err) {
		swap(srq->rq.ring, ring);
		srq->max_wr = max_wr;
	}
	sroce_ring_unlock(&srq->rq.ring, &srq->rq.lock, flags);
out:
	sroce_ring_destroy(&ring);	/* the old one, or on failure the new one */
	return err;
}

/**
 * sroce_modify_srq - ib_device_ops.modify_srq
 * @ibsrq: SRQ
 * @attr: new values
 * @mask: which of them: size, or limit (which arms the event once)
 * @udata: for a size, struct sroce_modify_srq_cmd
 *
 * Return: 0, -EINVAL, -ENOMEM, -EFAULT.
 */
int sroce_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		     struct ib_udata *udata)
{
	struct sroce_srq *srq = to_ssrq(ibsrq);
	unsigned long flags;
	int err = 0;

	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EINVAL;
	if (mask & IB_SRQ_MAX_WR && mask & IB_SRQ_LIMIT && attr->srq_limit > attr->max_wr)
		return -EINVAL;
	if (mask & IB_SRQ_MAX_WR) {
		if (!attr->max_wr || attr->max_wr > SROCE_MAX_WR)
			return -EINVAL;
		err = sroce_srq_resize(srq, attr->max_wr, udata);
		if (err)
			return err;
	}
	if (mask & IB_SRQ_LIMIT) {
		flags = sroce_ring_lock(&srq->rq.ring, &srq->rq.lock);
		if (attr->srq_limit > srq->max_wr)
			err = -EINVAL;
		else
			srq->limit = attr->srq_limit;
		sroce_ring_unlock(&srq->rq.ring, &srq->rq.lock, flags);
	}
	return err;
}

/**
 * sroce_query_srq - ib_device_ops.query_srq
 * @ibsrq: SRQ
 * @attr: where to
 *
 * Return: 0.
 */
int sroce_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct sroce_srq *srq = to_ssrq(ibsrq);

	attr->max_wr = srq->max_wr;
	attr->max_sge = srq->rq.max_sge;
	attr->srq_limit = READ_ONCE(srq->limit);
	return 0;
}

/**
 * sroce_destroy_srq - ib_device_ops.destroy_srq
 * @ibsrq: SRQ that no queue pair uses: the core counts them
 * @udata: nothing in it
 *
 * Return: 0.
 */
int sroce_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct sroce_srq *srq = to_ssrq(ibsrq);
	unsigned long flags;

	if (ibsrq->srq_type == IB_SRQT_XRC)
		sroce_xrc_unpublish(srq);
	flags = sroce_ring_lock(&srq->rq.ring, &srq->rq.lock);
	srq->dead = true;
	sroce_ring_unlock(&srq->rq.ring, &srq->rq.lock, flags);
	sroce_rq_destroy(&srq->rq);
	return 0;
}

/**
 * sroce_post_srq_recv - ib_device_ops.post_srq_recv, for kernel users
 * @ibsrq: SRQ
 * @wr: chain of work requests
 * @bad_wr: the first that was not posted
 *
 * A user writes to the ring by itself.
 * Context: any.  Return: 0, -EINVAL, -ENOMEM.
 */
int sroce_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad_wr)
{
	struct sroce_srq *srq = to_ssrq(ibsrq);
	unsigned long flags;
	int err = 0;

	flags = sroce_ring_lock(&srq->rq.ring, &srq->rq.lock);
	for (; wr; wr = wr->next) {
		err = sroce_rq_post(&srq->rq, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	sroce_ring_unlock(&srq->rq.ring, &srq->rq.lock, flags);
	return err;
}

/**
 * sroce_srq_take - take the oldest work request
 * @srq: SRQ
 * @recv: where to
 *
 * Context: under a queue pair's lock; call sroce_srq_notify() after it.
 * Return: as sroce_rq_take().
 */
int sroce_srq_take(struct sroce_srq *srq, struct sroce_recv *recv)
{
	unsigned long flags;
	int err;

	flags = sroce_ring_lock(&srq->rq.ring, &srq->rq.lock);
	err = sroce_rq_take(&srq->rq, recv);
	if (srq->limit && err != -EAGAIN && sroce_rq_available(&srq->rq) < srq->limit) {
		srq->limit = 0;
		srq->limit_reached = true;
	}
	sroce_ring_unlock(&srq->rq.ring, &srq->rq.lock, flags);
	return err;
}

/**
 * sroce_srq_notify - send the limit event if it is due
 * @srq: SRQ that the caller keeps alive, with no lock held
 */
void sroce_srq_notify(struct sroce_srq *srq)
{
	struct ib_event event = {
		.device = srq->ibsrq.device,
		.element.srq = &srq->ibsrq,
		.event = IB_EVENT_SRQ_LIMIT_REACHED,
	};
	unsigned long flags;
	bool report;

	if (!READ_ONCE(srq->limit_reached))
		return;
	flags = sroce_ring_lock(&srq->rq.ring, &srq->rq.lock);
	report = srq->limit_reached;
	srq->limit_reached = false;
	sroce_ring_unlock(&srq->rq.ring, &srq->rq.lock, flags);
	if (report && srq->ibsrq.event_handler)
		srq->ibsrq.event_handler(&event, srq->ibsrq.srq_context);
}
