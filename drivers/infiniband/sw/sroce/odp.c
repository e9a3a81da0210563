// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * On-demand paging.  The pages of such a region are the process's own, which may
 * move or go at any time: the kernel tells us before (mmu_interval_notifier), and
 * we know a page's address only until then.
 *
 * An access never waits.  One that finds a page missing has it brought by a worker
 * and fails with -EAGAIN; whoever asked tries again: a responder tells its peer to by
 * an RNR NAK, a requester and the sender of a READ response come back by themselves.
 *
 * An explicit region has one span, an implicit one, which is all of the address
 * space, a span for each stretch that was touched.
 */
#include <linux/hmm.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/xarray.h>
#include <rdma/ib_umem_odp.h>
#include <rdma/uverbs_ioctl.h>
#include "compat.h"
#include "device.h"
#include "mr.h"
#include "odp.h"

/* Addresses that a span of an implicit region has */
#define SROCE_SPAN_SHIFT	21
#define SROCE_SPAN_BYTES	BIT(SROCE_SPAN_SHIFT)

/* Bytes that are brought at once, and ranges that may wait to be */
#define SROCE_FAULT_BYTES	BIT(20)
#define SROCE_WANTED		SROCE_MAX_SGE	/* as many as one request may miss */

/**
 * struct sroce_span - addresses with one notifier
 * @umem: the core's part; its private field leads back here
 * @mr: region
 * @start: first address, on a page
 * @num: pages
 * @page: kernel address of each page that is there, with SROCE_PAGE_WRITABLE, or 0;
 *	protected by the region's lock
 */
struct sroce_span {
	struct ib_umem_odp	*umem;
	struct sroce_mr		*mr;
	u64			start;
	u64			num;
	unsigned long		page[];
};

#define SROCE_PAGE_WRITABLE	1ul

/**
 * struct sroce_wanted - addresses whose pages are wanted
 * @start: the process's address
 * @length: bytes, 0: none
 * @write: to be written to
 */
struct sroce_wanted {
	u64	start;
	u64	length;
	bool	write;
};

/**
 * struct sroce_odp - what a region has for it
 * @mr: region
 * @start: the process's address of the region's first byte
 * @span: of an explicit region
 * @root: of an implicit region, whose spans' notifiers belong to its process
 * @spans: of an implicit region, by address; changed by @fault_lock's holder
 * @fault_lock: one at a time brings pages
 * @work: brings what is in @wanted
 * @wanted: what accesses have missed, under the region's lock
 * @failed: the page that could not be had last; whoever wants it is told so once;
 *	under the region's lock
 * @users: one of the region's own, one for each call at work on it
 * @idle: completed by the last of them
 */
struct sroce_odp {
	struct sroce_mr		*mr;
	u64			start;
	struct sroce_span	*span;
	struct ib_umem_odp	*root;
	struct xarray		spans;
	struct mutex		fault_lock;	/* see above */
	struct work_struct	work;
	struct sroce_wanted	wanted[SROCE_WANTED];
	u64			failed;
	refcount_t		users;
	struct completion	idle;
};

#define SROCE_NO_PAGE	1	/* no page begins there */

/* ------------------------------------------------------------ spans */

/* Pages are about to go: from here on nobody may use them */
static bool sroce_span_invalidate(struct mmu_interval_notifier *mni,
				  const struct mmu_notifier_range *range, unsigned long seq)
{
	struct ib_umem_odp *umem = container_of(mni, struct ib_umem_odp, notifier);
	struct sroce_span *span;
	u64 start, end, i;

	if (!mmu_notifier_range_blockable(range))
		return false;
	mutex_lock(&umem->umem_mutex);
	mmu_interval_set_seq(mni, seq);
	span = umem->private;
	if (span) {
		start = max_t(u64, ib_umem_start(umem), range->start);
		end = min_t(u64, ib_umem_end(umem), range->end);
		spin_lock_bh(&span->mr->lock);
		for (i = (start - span->start) >> PAGE_SHIFT;
		     i < span->num && span->start + (i << PAGE_SHIFT) < end; i++)
			span->page[i] = 0;
		spin_unlock_bh(&span->mr->lock);
		ib_umem_odp_unmap_dma_pages(umem, start, end);
	}
	mutex_unlock(&umem->umem_mutex);
	return true;
}

static const struct mmu_interval_notifier_ops sroce_span_ops = {
	.invalidate = sroce_span_invalidate,
};

/* Takes over @umem, which is an ERR_PTR or released if this fails */
static struct sroce_span *sroce_span_new(struct sroce_mr *mr, struct ib_umem_odp *umem)
{
	struct sroce_span *span;
	u64 num;

	if (IS_ERR(umem))
		return ERR_CAST(umem);
	num = (ib_umem_end(umem) - ib_umem_start(umem)) >> PAGE_SHIFT;
	span = kvzalloc(struct_size(span, page, num), GFP_KERNEL_ACCOUNT);
	if (!span) {
		ib_umem_odp_release(umem);
		return ERR_PTR(-ENOMEM);
	}
	span->umem = umem;
	span->mr = mr;
	span->start = ib_umem_start(umem);
	span->num = num;
	mutex_lock(&umem->umem_mutex);
	umem->private = span;
	mutex_unlock(&umem->umem_mutex);
	return span;
}

static void sroce_span_free(struct sroce_span *span)
{
	if (!span)
		return;
	ib_umem_odp_release(span->umem);
	kvfree(span);
}

/* The span that has this address, or NULL; for accesses */
static struct sroce_span *sroce_span_find(struct sroce_odp *odp, u64 user)
{
	return odp->span ?: xa_load(&odp->spans, user >> SROCE_SPAN_SHIFT);
}

/* The same, made if need be, or an ERR_PTR; for who brings pages */
static struct sroce_span *sroce_span_get(struct sroce_odp *odp, u64 user)
{
	struct sroce_span *span = sroce_span_find(odp, user);
	int err;

	if (span)
		return span;
	span = sroce_span_new(odp->mr, ib_umem_odp_alloc_child(odp->root,
							       ALIGN_DOWN(user, SROCE_SPAN_BYTES),
							       SROCE_SPAN_BYTES,
							       &sroce_span_ops));
	if (IS_ERR(span))
		return span;
	err = xa_err(xa_store(&odp->spans, user >> SROCE_SPAN_SHIFT, span, GFP_KERNEL_ACCOUNT));
	if (err) {
		sroce_span_free(span);
		return ERR_PTR(err);
	}
	return span;
}

/* ------------------------------------------------------------ bringing pages */

/* Notes where the pages are; no notifier can come between: the caller has umem_mutex */
static void sroce_span_fill(struct sroce_span *span, u64 user, u64 length)
{
	u64 i = (user - span->start) >> PAGE_SHIFT;
	u64 end = (user + length - 1 - span->start) >> PAGE_SHIFT;
	unsigned long pfn;

	spin_lock_bh(&span->mr->lock);
	for (; i <= end; i++) {
		pfn = sroce_odp_pfns(span->umem)[i];
		if (!(pfn & HMM_PFN_VALID))
			continue;
		span->page[i] = (unsigned long)page_address(hmm_pfn_to_page(pfn));
		if (pfn & HMM_PFN_WRITE)
			span->page[i] |= SROCE_PAGE_WRITABLE;
	}
	spin_unlock_bh(&span->mr->lock);
}

static int sroce_span_fault(struct sroce_span *span, u64 user, u64 length, bool write, bool fault)
{
	int num = ib_umem_odp_map_dma_and_lock(span->umem, user, length,
					       sroce_odp_access(write), fault);

	if (num < 0)
		return num;
	sroce_span_fill(span, user, length);
	mutex_unlock(&span->umem->umem_mutex);
	return 0;
}

/* Brings pages; those that are there are found quickly */
static int sroce_odp_fault(struct sroce_odp *odp, const struct sroce_wanted *w, bool fault)
{
	u64 at = w->start, end = w->start + w->length, n;
	struct sroce_span *span;
	int err = 0;

	mutex_lock(&odp->fault_lock);
	for (; !err && at < end; at += n) {
		span = sroce_span_get(odp, at);
		if (IS_ERR(span)) {
			err = PTR_ERR(span);
			break;
		}
		n = min3(end - at, span->start + (span->num << PAGE_SHIFT) - at,
			 (u64)SROCE_FAULT_BYTES);
		err = sroce_span_fault(span, at, n, w->write, fault);
		cond_resched();
	}
	mutex_unlock(&odp->fault_lock);
	return err;
}

/* The first page of a range could not be had: is it so by itself? */
static void sroce_odp_fail(struct sroce_odp *odp, const struct sroce_wanted *w)
{
	const struct sroce_wanted first = {
		.start = w->start, .length = 1, .write = w->write,
	};

	if (!sroce_odp_fault(odp, &first, true))
		return;
	spin_lock_bh(&odp->mr->lock);
	odp->failed = ALIGN_DOWN(w->start, PAGE_SIZE);
	spin_unlock_bh(&odp->mr->lock);
}

static bool sroce_odp_next(struct sroce_odp *odp, struct sroce_wanted *w)
{
	int i;

	w->length = 0;
	spin_lock_bh(&odp->mr->lock);
	for (i = 0; i < SROCE_WANTED && !w->length; i++) {
		*w = odp->wanted[i];
		odp->wanted[i].length = 0;
	}
	spin_unlock_bh(&odp->mr->lock);
	return w->length;
}

static void sroce_odp_work(struct work_struct *work)
{
	struct sroce_odp *odp = container_of(work, struct sroce_odp, work);
	struct sroce_wanted w;

	while (sroce_odp_next(odp, &w))
		if (sroce_odp_fault(odp, &w, true))
			sroce_odp_fail(odp, &w);
}

/* The caller holds the region's lock; when too many wait, it is asked for again */
static void sroce_odp_queue(struct sroce_odp *odp, const struct sroce_wanted *w)
{
	int i;

	for (i = 0; i < SROCE_WANTED; i++) {
		struct sroce_wanted *old = &odp->wanted[i];

		if (old->length && old->start <= w->start && old->write >= w->write &&
		    old->start + old->length >= w->start + w->length)
			break;
		if (!old->length) {
			*old = *w;
			break;
		}
	}
	queue_work(SROCE_UNBOUND_WQ, &odp->work);
}

/* ------------------------------------------------------------ accesses */

static u64 sroce_odp_user(const struct sroce_mr *mr, u64 va)
{
	return va - mr->iova + mr->odp->start;
}

/**
 * sroce_odp_address - where memory of a region is now
 * @mr: region, locked: the answer is good as long as it is
 * @va: address in it
 * @ahead: bytes that are going to be accessed from there on, inside the region
 * @write: they are to be written
 * @run: where to say how many bytes follow in one piece
 *
 * Context: any.  Return: kernel address, or an ERR_PTR: -EAGAIN when it is not there, and
 * is being brought; -EFAULT when it cannot be.
 */
void *sroce_odp_address(const struct sroce_mr *mr, u64 va, u64 ahead, bool write, u64 *run)
{
	struct sroce_odp *odp = mr->odp;
	const struct sroce_wanted w = {
		.start = sroce_odp_user(mr, va), .length = ahead, .write = write,
	};
	struct sroce_span *span = sroce_span_find(odp, w.start);
	unsigned long page = span ? span->page[(w.start - span->start) >> PAGE_SHIFT] : 0;

	if (page && (!write || page & SROCE_PAGE_WRITABLE)) {
		*run = PAGE_SIZE - offset_in_page(w.start);
		return (void *)(page & PAGE_MASK) + offset_in_page(w.start);
	}
	if (odp->failed == ALIGN_DOWN(w.start, PAGE_SIZE)) {
		odp->failed = SROCE_NO_PAGE;
		return ERR_PTR(-EFAULT);
	}
	sroce_odp_queue(odp, &w);
	return ERR_PTR(-EAGAIN);
}

/**
 * sroce_odp_want - a message is going to use this memory
 * @mr: region, locked
 * @va: address in it
 * @length: bytes in it
 * @write: they are to be written
 *
 * Context: any.
 */
void sroce_odp_want(const struct sroce_mr *mr, u64 va, u64 length, bool write)
{
	u64 run;

	sroce_odp_address(mr, va, length, write, &run);
}

/* ------------------------------------------------------------ verbs */

/**
 * sroce_odp_query - tell what can be done on demand
 * @attr: to be filled in
 */
void sroce_odp_query(struct ib_device_attr *attr)
{
	const u32 connected = IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV | IB_ODP_SUPPORT_WRITE |
			      IB_ODP_SUPPORT_READ | IB_ODP_SUPPORT_ATOMIC |
			      IB_ODP_SUPPORT_SRQ_RECV | SROCE_ODP_SUPPORT_ATOMIC_WRITE |
			      (SROCE_DEVICE_FLUSH ? SROCE_ODP_SUPPORT_FLUSH : 0);

	attr->kernel_cap_flags |= IBK_ON_DEMAND_PAGING;
	attr->odp_caps.general_caps = IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT;
	attr->odp_caps.per_transport_caps.rc_odp_caps = connected;
	attr->odp_caps.per_transport_caps.uc_odp_caps = IB_ODP_SUPPORT_SEND;
	attr->odp_caps.per_transport_caps.ud_odp_caps = IB_ODP_SUPPORT_SEND;
	attr->odp_caps.per_transport_caps.xrc_odp_caps = connected;
}

static int sroce_odp_attach(struct sroce_odp *odp, u64 start, u64 length)
{
	struct sroce_mr *mr = odp->mr;

	if (!start && length == U64_MAX) {
		odp->root = ib_umem_odp_alloc_implicit(mr->ibmr.device, mr->access);
		return PTR_ERR_OR_ZERO(odp->root);
	}
	odp->span = sroce_span_new(mr, ib_umem_odp_get(mr->ibmr.device, start, length,
						       mr->access, &sroce_span_ops));
	return PTR_ERR_OR_ZERO(odp->span);
}

/**
 * sroce_odp_create - make a region one without pinned pages
 * @mr: region, unpublished, its permissions set
 * @start: the process's address
 * @length: bytes; from 0 on U64_MAX: all that the process has and will have
 *
 * Context: the process.  Return: 0 or an errno.
 */
int sroce_odp_create(struct sroce_mr *mr, u64 start, u64 length)
{
	struct sroce_odp *odp = kzalloc(sizeof(*odp), GFP_KERNEL_ACCOUNT);
	int err;

	if (!odp)
		return -ENOMEM;
	odp->mr = mr;
	odp->start = start;
	odp->failed = SROCE_NO_PAGE;
	xa_init(&odp->spans);
	mutex_init(&odp->fault_lock);
	INIT_WORK(&odp->work, sroce_odp_work);
	refcount_set(&odp->users, 1);
	init_completion(&odp->idle);
	err = sroce_odp_attach(odp, start, length);
	if (err) {
		kfree(odp);
		return err;
	}
	mr->odp = odp;
	return 0;
}

/**
 * sroce_odp_start - where a region begins
 * @mr: region
 *
 * Return: the process's address.
 */
u64 sroce_odp_start(const struct sroce_mr *mr)
{
	return mr->odp->start;
}

static void sroce_odp_put(struct sroce_odp *odp)
{
	if (refcount_dec_and_test(&odp->users))
		complete(&odp->idle);
}

/**
 * sroce_odp_stop - nobody finds the region any more
 * @mr: region, taken back, no access to it under way
 *
 * On return nobody brings pages for it.
 * Context: process, sleeps.
 */
void sroce_odp_stop(struct sroce_mr *mr)
{
	sroce_odp_put(mr->odp);
	wait_for_completion(&mr->odp->idle);
	cancel_work_sync(&mr->odp->work);
}

/**
 * sroce_odp_destroy - the reverse of sroce_odp_create()
 * @mr: region that is idle
 *
 * Context: process, sleeps.
 */
void sroce_odp_destroy(struct sroce_mr *mr)
{
	struct sroce_odp *odp = mr->odp;
	struct sroce_span *span;
	unsigned long index;

	sroce_span_free(odp->span);
	xa_for_each(&odp->spans, index, span)
		sroce_span_free(span);
	xa_destroy(&odp->spans);
	if (odp->root)
		ib_umem_odp_release(odp->root);
	kfree(odp);
	mr->odp = NULL;
}

/* The region of a key, kept until sroce_odp_put(), and what is wanted of it */
static int sroce_advise_find(struct ib_pd *pd, const struct ib_sge *sge, struct sroce_wanted *w,
			     struct sroce_odp **odp)
{
	struct sroce_mr *mr;
	int err = -ENOENT;

	rcu_read_lock();
	mr = xa_load(&to_sdev(pd->device)->mrs, SROCE_KEY_INDEX(sge->lkey));
	if (!mr || mr->type != SROCE_MR_ODP || mr->key != sge->lkey)
		goto out;
	err = -EPERM;
	if (mr->ibmr.pd != pd || (w->write && !(mr->access & IB_ACCESS_LOCAL_WRITE)))
		goto out;
	err = -EFAULT;
	if (sge->addr < mr->iova || sge->addr - mr->iova > mr->length ||
	    sge->length > mr->length - (sge->addr - mr->iova))
		goto out;
	*odp = mr->odp;
	w->start = sroce_odp_user(mr, sge->addr);
	w->length = sge->length;
	err = refcount_inc_not_zero(&mr->odp->users) ? 0 : -ENOENT;
out:
	rcu_read_unlock();
	return err;
}

static int sroce_advise_one(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice, bool wait,
			    const struct ib_sge *sge)
{
	bool fault = advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	struct sroce_wanted w = {
		.write = advice == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE,
	};
	struct sroce_odp *odp;
	int err;

	err = sroce_advise_find(pd, sge, &w, &odp);
	if (err)
		return err;
	if (!w.length) {
		err = 0;
	} else if (wait || !fault) {	/* looking does not take long */
		err = sroce_odp_fault(odp, &w, fault);
	} else {
		spin_lock_bh(&odp->mr->lock);
		sroce_odp_queue(odp, &w);
		spin_unlock_bh(&odp->mr->lock);
	}
	sroce_odp_put(odp);
	return err;
}

/**
 * sroce_advise_mr - ib_device_ops.advise_mr: pages are going to be used
 * @pd: protection domain
 * @advice: how
 * @flags: IB_UVERBS_ADVISE_MR_FLAG_FLUSH: return when they are there
 * @sges: which
 * @num_sge: entries
 * @attrs: nothing in it
 *
 * Return: 0; -EOPNOTSUPP for an unknown advice, -ENOENT for a key of no such region,
 * -EPERM for a region of another domain, -EFAULT for addresses that are not its.
 */
int sroce_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice, u32 flags,
		    struct ib_sge *sges, u32 num_sge, struct uverbs_attr_bundle *attrs)
{
	bool wait = flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH;
	u32 i;
	int err;

	if (advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH &&
	    advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE &&
	    advice != IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return -EOPNOTSUPP;
	if (flags & ~(u32)IB_UVERBS_ADVISE_MR_FLAG_FLUSH)
		return -EOPNOTSUPP;
	for (i = 0; i < num_sge; i++) {
		err = sroce_advise_one(pd, advice, wait, &sges[i]);
		if (err)
			return err;
	}
	return 0;
}
