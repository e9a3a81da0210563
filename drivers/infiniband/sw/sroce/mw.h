/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Memory windows */
#ifndef SROCE_MW_H
#define SROCE_MW_H

#include "mr.h"

/**
 * struct sroce_mw - a memory window
 * @ibmw: the core's part; its PD and type do not change while it is visible
 * @lock: protects all below, and is held while memory is accessed through the
 *	window, so that taking it back waits for that.  Taken inside a queue pair's
 *	lock, outside a region's.
 * @mr: region that it is bound to, which stays for that; NULL: not bound
 * @key: its R_Key, if it is bound the one that was given with that
 * @access: IB_ACCESS_* granted
 * @qpn: for a type 2 window, queue pair that bound it
 * @addr: first address, in the region
 * @length: bytes
 */
struct sroce_mw {
	struct ib_mw		ibmw;
	spinlock_t		lock;	/* see above */
	struct sroce_mr		*mr;
	u32			key;
	int			access;
	u32			qpn;
	u64			addr;
	u64			length;
};

/**
 * struct sroce_bind - a bind work request (10.6.6.2)
 * @mw_rkey: the window's key until now
 * @rkey: from now on
 * @mr_lkey: key of the region
 * @access: IB_ACCESS_* to grant
 * @addr: first address, in the region
 * @length: bytes; for a type 1 window 0 takes it back
 */
struct sroce_bind {
	u32			mw_rkey;
	u32			rkey;
	u32			mr_lkey;
	int			access;
	u64			addr;
	u64			length;
};

int sroce_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int sroce_dealloc_mw(struct ib_mw *ibmw);

int sroce_mw_bind(const struct sroce_qp *qp, const struct sroce_bind *bind);
int sroce_mw_invalidate(const struct sroce_qp *qp, u32 key);
int sroce_mw_act(struct sroce_dev *dev, const struct sroce_access *a, sroce_act *act);

#endif /* SROCE_MW_H */
