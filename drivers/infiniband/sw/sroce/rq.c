// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Receive queues: filled by the consumer, emptied by the responder */
#include <linux/slab.h>
#include "device.h"
#include "rq.h"

/**
 * sroce_sgl_alloc - room for a scatter/gather list
 * @max_sge: entries
 *
 * Context: process.  Return: the list, empty, or NULL; free it by kfree().
 */
struct sroce_sgl *sroce_sgl_alloc(u32 max_sge)
{
	return kzalloc(struct_size((struct sroce_sgl *)NULL, sge, max_sge), GFP_KERNEL_ACCOUNT);
}

static struct lock_class_key sroce_user_rq_key;	/* see sroce_ring_lock() */

/**
 * sroce_rq_create - set a receive queue up
 * @rq: queue
 * @udata: the user's call, NULL for a kernel user
 * @user: the user's memory for it, if any
 * @max_wr: work requests that it must hold at least; on return, how many it can
 * @max_sge: scatter entries of each
 * @mi: for a user's queue, where to say how it is mapped
 *
 * Context: process.  Return: 0 or an errno of sroce_ring_create().
 */
int sroce_rq_create(struct sroce_rq *rq, struct ib_udata *udata,
		    const struct sroce_user_ring *user, u32 *max_wr, u32 max_sge,
		    struct sroce_mmap_info *mi)
{
	u32 size = sizeof(struct sroce_recv_wqe) + max_sge * sizeof(struct sroce_sge);
	int err;

	spin_lock_init(&rq->lock);
	if (udata)
		lockdep_set_class(&rq->lock, &sroce_user_rq_key);
	rq->max_sge = max_sge;
	err = sroce_ring_create(&rq->ring, udata, user, max_wr, size, mi);
	if (!err)	/* what is posted waits for a message */
		sroce_ring_quiet(&rq->ring);
	return err;
}

/**
 * sroce_rq_destroy - the reverse of sroce_rq_create()
 * @rq: queue; one never created is left alone
 */
void sroce_rq_destroy(struct sroce_rq *rq)
{
	sroce_ring_destroy(&rq->ring);
}

/**
 * sroce_rq_available - how many work requests wait in a queue
 * @rq: queue
 *
 * Return: that number, already old when no lock is held.
 */
u32 sroce_rq_available(struct sroce_rq *rq)
{
	return sroce_ring_distance(&rq->ring, READ_ONCE(rq->ring.index),
				   sroce_ring_producer(&rq->ring));
}

/**
 * sroce_rq_take - take the oldest work request out of a queue
 * @rq: queue; the caller holds its lock
 * @recv: where to; its list must have room for @rq->max_sge entries
 *
 * Return: 0; -EAGAIN when there is none; -EINVAL for one that makes no sense:
 * it is taken all the same, with an empty list, to be completed in error.
 */
int sroce_rq_take(struct sroce_rq *rq, struct sroce_recv *recv)
{
	struct sroce_ring *ring = &rq->ring;
	const struct sroce_recv_wqe *wqe;
	int err;

	lockdep_assert_held(&rq->lock);
	if (ring->index == sroce_ring_producer(ring))
		return -EAGAIN;
	wqe = sroce_ring_element(ring, ring->index);
	recv->wr_id = READ_ONCE(wqe->wr_id);
	err = sroce_sgl_load(recv->sgl, rq->max_sge, wqe->sge, READ_ONCE(wqe->data.num_sge));
	if (err) {
		recv->sgl->num = 0;
		recv->sgl->total = 0;
	}
	recv->valid = true;
	ring->index = sroce_ring_next(ring, ring->index);
	sroce_ring_set_consumer(ring, ring->index);
	return err;
}

/**
 * sroce_rq_post - add a kernel user's work request
 * @rq: queue of a kernel user; the caller holds its lock
 * @wr: work request
 *
 * Return: 0, -EINVAL for too many entries, -ENOMEM when the queue is full.
 */
int sroce_rq_post(struct sroce_rq *rq, const struct ib_recv_wr *wr)
{
	struct sroce_ring *ring = &rq->ring;
	u32 producer = sroce_ring_producer(ring);
	struct sroce_recv_wqe *wqe;
	int i;

	lockdep_assert_held(&rq->lock);
	if (wr->num_sge < 0 || wr->num_sge > rq->max_sge)
		return -EINVAL;
	if (sroce_ring_next(ring, producer) == ring->index)
		return -ENOMEM;
	wqe = sroce_ring_element(ring, producer);
	wqe->wr_id = wr->wr_id;
	wqe->data.num_sge = wr->num_sge;
	for (i = 0; i < wr->num_sge; i++) {
		wqe->sge[i].addr = wr->sg_list[i].addr;
		wqe->sge[i].length = wr->sg_list[i].length;
		wqe->sge[i].lkey = wr->sg_list[i].lkey;
	}
	sroce_ring_set_producer(ring, producer + 1);
	return 0;
}
