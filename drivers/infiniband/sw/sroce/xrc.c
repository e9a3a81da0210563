// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Extended reliable connections (IBA volume 1, annex A14).  An initiator queue pair
 * names an SRQ in each request.  A target queue pair belongs to a domain, has no
 * queues and no protection domain of its own, and uses those of the SRQ.
 *
 * A target holds an SRQ only as long as it is locked: what it has taken from it is
 * copied, and before it goes on with that it looks the SRQ up again.
 */
#include <linux/xarray.h>
#include "cq.h"
#include "qp.h"
#include "srq.h"
#include "xrc.h"

#define SROCE_LAST_XRC_SRQ	0xffffff

/* All XRC SRQs of all devices by number.  Look-ups are RCU sections. */
static DEFINE_XARRAY_ALLOC(sroce_xrc_srqs);
static u32 sroce_next_xrc_srq = 1;

/**
 * sroce_alloc_xrcd - ib_device_ops.alloc_xrcd
 * @xrcd: allocated by the core
 * @udata: nothing in it
 *
 * Return: 0.
 */
int sroce_alloc_xrcd(struct ib_xrcd *xrcd, struct ib_udata *udata)
{
	return 0;
}

/**
 * sroce_dealloc_xrcd - ib_device_ops.dealloc_xrcd
 * @xrcd: domain that nothing uses: the core counts it
 * @udata: nothing in it
 *
 * Return: 0.
 */
int sroce_dealloc_xrcd(struct ib_xrcd *xrcd, struct ib_udata *udata)
{
	return 0;
}

/**
 * sroce_xrc_publish - give an XRC SRQ its number; from here on it may be found
 * @srq: SRQ, complete
 *
 * Context: process.  Return: 0 or -ENOMEM.
 */
int sroce_xrc_publish(struct sroce_srq *srq)
{
	int err;

	kref_init(&srq->ref);
	init_completion(&srq->gone);
	err = xa_alloc_cyclic(&sroce_xrc_srqs, &srq->number, srq,
			      XA_LIMIT(1, SROCE_LAST_XRC_SRQ), &sroce_next_xrc_srq, GFP_KERNEL);
	if (err < 0)
		return -ENOMEM;
	srq->ibsrq.ext.xrc.srq_num = srq->number;
	return 0;
}

static void sroce_xrc_gone(struct kref *ref)
{
	complete(&container_of(ref, struct sroce_srq, ref)->gone);
}

/**
 * sroce_xrc_unpublish - the reverse of sroce_xrc_publish()
 * @srq: SRQ
 *
 * On return no queue pair uses it.
 * Context: process, sleeps.
 */
void sroce_xrc_unpublish(struct sroce_srq *srq)
{
	xa_erase(&sroce_xrc_srqs, srq->number);
	kref_put(&srq->ref, sroce_xrc_gone);
	wait_for_completion(&srq->gone);
	/* a look-up may still be about to see that there are no references */
	synchronize_rcu_expedited();
}

static struct sroce_srq *sroce_xrc_find(const struct sroce_qp *qp, u32 number)
{
	struct sroce_srq *srq;

	rcu_read_lock();
	srq = xa_load(&sroce_xrc_srqs, number);
	if (srq && (srq->ibsrq.ext.xrc.xrcd != qp->xrcd || !kref_get_unless_zero(&srq->ref)))
		srq = NULL;
	rcu_read_unlock();
	return srq;
}

/**
 * sroce_xrc_leave - tell what is to be told of an SRQ, and let go of it
 * @srq: SRQ that sroce_xrc_enter() took, or NULL
 */
void sroce_xrc_leave(struct sroce_srq *srq)
{
	if (!srq)
		return;
	sroce_cq_notify(to_scq(srq->ibsrq.ext.cq));
	sroce_srq_notify(srq);
	kref_put(&srq->ref, sroce_xrc_gone);
}

/**
 * sroce_xrc_enter - have a target queue pair work for an SRQ
 * @qp: target queue pair, locked: when that is over it leaves the SRQ
 * @number: of the SRQ
 *
 * Return: whether there is such an SRQ in the queue pair's domain.
 */
bool sroce_xrc_enter(struct sroce_qp *qp, u32 number)
{
	struct sroce_srq *srq = qp->resp.xrc_srq;

	if (srq && srq->number == number)
		return true;
	/*
	 * Under the lock, unlike other notifications: XRC is for user space only,
	 * whose handlers do nothing but wake.
	 */
	sroce_xrc_leave(srq);
	qp->resp.xrc_srq = sroce_xrc_find(qp, number);
	return qp->resp.xrc_srq;
}
