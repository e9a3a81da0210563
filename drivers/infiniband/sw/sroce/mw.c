// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows (IBA volume 1, 10.6.6): type 1, which belong to a protection
 * domain, and type 2B, which belong to a queue pair as well while they are bound.
 */
#include <linux/random.h>
#include "device.h"
#include "mw.h"
#include "qp.h"

#define SROCE_BIND_ACCESS \
	(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC | \
	 IB_ACCESS_LOCAL_WRITE | IB_ZERO_BASED)

static struct sroce_mw *to_smw(struct ib_mw *ibmw)
{
	return container_of(ibmw, struct sroce_mw, ibmw);
}

/**
 * sroce_alloc_mw - ib_device_ops.alloc_mw
 * @ibmw: allocated by the core
 * @udata: nothing in it
 *
 * Return: 0, -EINVAL for an unknown type, -ENOMEM.
 */
int sroce_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct sroce_dev *dev = to_sdev(ibmw->device);
	struct sroce_mw *mw = to_smw(ibmw);
	u32 index;
	int err;

	if (ibmw->type != IB_MW_TYPE_1 && ibmw->type != IB_MW_TYPE_2)
		return -EINVAL;
	spin_lock_init(&mw->lock);
	err = xa_alloc_cyclic(&dev->mws, &index, NULL,
			      XA_LIMIT(SROCE_MW_INDEX, SROCE_MW_INDEX + SROCE_MAX_MW - 1),
			      &dev->mw_next, GFP_KERNEL);
	if (err < 0)
		return err == -EBUSY ? -ENOMEM : err;
	mw->key = index << 8 | get_random_u8();
	ibmw->rkey = mw->key;
	xa_store(&dev->mws, index, mw, GFP_KERNEL);
	return 0;
}

/* The caller holds the window's lock */
static void sroce_mw_unbind(struct sroce_mw *mw)
{
	struct sroce_mr *mr = mw->mr;

	if (!mr)
		return;
	mw->mr = NULL;
	spin_lock(&mr->lock);
	mr->windows--;
	spin_unlock(&mr->lock);
}

/**
 * sroce_dealloc_mw - ib_device_ops.dealloc_mw
 * @ibmw: window
 *
 * On return no packet touches memory through it any more.
 * Context: process, sleeps.  Return: 0.
 */
int sroce_dealloc_mw(struct ib_mw *ibmw)
{
	struct sroce_mw *mw = to_smw(ibmw);

	xa_erase(&to_sdev(ibmw->device)->mws, SROCE_KEY_INDEX(mw->key));
	spin_lock_bh(&mw->lock);
	sroce_mw_unbind(mw);
	spin_unlock_bh(&mw->lock);
	/* who has found it before holds the RCU read lock */
	synchronize_rcu_expedited();
	return 0;
}

/* May the window be bound so? The caller holds its lock (10.6.6.2.6, 10.6.6.2.7) */
static bool sroce_mw_may_bind(const struct sroce_mw *mw, const struct sroce_qp *qp,
			      const struct sroce_bind *bind)
{
	if (mw->ibmw.pd != qp->ibqp.pd ||
	    SROCE_KEY_INDEX(bind->rkey) != SROCE_KEY_INDEX(mw->key) ||
	    bind->access & ~SROCE_BIND_ACCESS)
		return false;
	if (mw->ibmw.type == IB_MW_TYPE_1)
		return mw->key == bind->mw_rkey;
	/* the user keeps count of a type 2 window's key, libibverbs need not */
	return !mw->mr && bind->length && bind->rkey != mw->key;
}

/* May a window of the region be made so? The caller holds the region's lock */
static bool sroce_mr_may_bind(const struct sroce_mr *mr, const struct sroce_qp *qp,
			      const struct sroce_bind *bind)
{
	bool write = bind->access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC);

	return mr->type == SROCE_MR_USER && !mr->retired && mr->key == bind->mr_lkey &&
	       mr->ibmr.pd == qp->ibqp.pd && mr->access & IB_ACCESS_MW_BIND &&
	       !(mr->access & IB_ZERO_BASED) &&
	       (!write || mr->access & IB_ACCESS_LOCAL_WRITE) &&
	       bind->addr >= mr->iova && bind->addr - mr->iova <= mr->length &&
	       bind->length <= mr->length - (bind->addr - mr->iova);
}

/* Counts a window of the region of this key; NULL when there may be none */
static struct sroce_mr *sroce_mw_find_mr(const struct sroce_qp *qp, const struct sroce_bind *bind)
{
	struct sroce_mr *mr = xa_load(&qp->dev->mrs, SROCE_KEY_INDEX(bind->mr_lkey));

	if (!mr)
		return NULL;
	spin_lock(&mr->lock);
	if (sroce_mr_may_bind(mr, qp, bind)) {
		mr->windows++;
		spin_unlock(&mr->lock);
		return mr;
	}
	spin_unlock(&mr->lock);
	return NULL;
}

static int sroce_mw_bind_locked(struct sroce_mw *mw, const struct sroce_qp *qp,
				const struct sroce_bind *bind)
{
	struct sroce_mr *mr = NULL;

	if (!sroce_mw_may_bind(mw, qp, bind))
		return -EINVAL;
	if (bind->length) {
		mr = sroce_mw_find_mr(qp, bind);
		if (!mr)
			return -EINVAL;
	}
	sroce_mw_unbind(mw);
	mw->mr = mr;
	mw->key = bind->rkey;
	mw->ibmw.rkey = bind->rkey;
	mw->access = bind->access;
	mw->addr = bind->addr;
	mw->length = bind->length;
	mw->qpn = qp->ibqp.qp_num;
	return 0;
}

/**
 * sroce_mw_bind - carry out a bind work request, 10.6.6.2
 * @qp: queue pair, locked
 * @bind: request
 *
 * Context: any.  Return: 0, or -EINVAL (MW_BIND_ERR) and nothing has changed.
 */
int sroce_mw_bind(const struct sroce_qp *qp, const struct sroce_bind *bind)
{
	struct sroce_mw *mw;
	int err = -EINVAL;

	rcu_read_lock();
	mw = xa_load(&qp->dev->mws, SROCE_KEY_INDEX(bind->mw_rkey));
	if (mw) {
		spin_lock_bh(&mw->lock);
		err = sroce_mw_bind_locked(mw, qp, bind);
		spin_unlock_bh(&mw->lock);
	}
	rcu_read_unlock();
	return err;
}

/**
 * sroce_mw_invalidate - carry out an invalidation, 10.6.6.3
 * @qp: queue pair
 * @key: key of a window
 *
 * On return no packet touches memory through it any more.
 * Context: any.  Return: 0, or -EINVAL when it is not a type 2 window that this
 * queue pair bound.
 */
int sroce_mw_invalidate(const struct sroce_qp *qp, u32 key)
{
	struct sroce_mw *mw;
	int err = -EINVAL;

	rcu_read_lock();
	mw = xa_load(&qp->dev->mws, SROCE_KEY_INDEX(key));
	if (mw && mw->ibmw.type == IB_MW_TYPE_2) {
		spin_lock_bh(&mw->lock);
		if (mw->mr && mw->key == key && mw->qpn == qp->ibqp.qp_num) {
			sroce_mw_unbind(mw);
			err = 0;
		}
		spin_unlock_bh(&mw->lock);
	}
	rcu_read_unlock();
	return err;
}

/* May this be done through the window? The caller holds its lock, 9.4.1.1.3 */
static bool sroce_mw_allows(const struct sroce_mw *mw, const struct sroce_access *a)
{
	u64 first = mw->access & IB_ZERO_BASED ? 0 : mw->addr;

	return mw->mr && mw->key == a->key && mw->ibmw.pd == a->pd &&
	       (mw->ibmw.type == IB_MW_TYPE_1 || mw->qpn == a->qpn) &&
	       (mw->access & a->access) == a->access &&
	       a->va >= first && a->va - first <= mw->length &&
	       a->length <= mw->length - (a->va - first);
}

/**
 * sroce_mw_act - do something with memory through a window, if that is allowed
 * @dev: device
 * @a: access
 * @act: what to do
 *
 * Context: any.  Return: what @act said, or -EACCES.
 */
int sroce_mw_act(struct sroce_dev *dev, const struct sroce_access *a, sroce_act *act)
{
	struct sroce_access in_mr = *a;
	struct sroce_mw *mw;
	int err = -EACCES;

	rcu_read_lock();
	mw = xa_load(&dev->mws, SROCE_KEY_INDEX(a->key));
	if (mw) {
		spin_lock_bh(&mw->lock);
		if (sroce_mw_allows(mw, a)) {
			if (mw->access & IB_ZERO_BASED)
				in_mr.va += mw->addr;
			err = act(mw->mr, &in_mr);
		}
		spin_unlock_bh(&mw->lock);
	}
	rcu_read_unlock();
	return err;
}
