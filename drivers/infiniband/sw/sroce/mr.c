// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory regions (IBA volume 1, 10.6).  An access looks its region up by the
 * index in the key, under RCU, and checks key, PD, permission and range before
 * a byte moves.
 */
#include <linux/atomic.h>
#include <linux/ioport.h>
#include <linux/libnvdimm.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/iter.h>
#include "device.h"
#include "dm.h"
#include "dmabuf.h"
#include "mr.h"
#include "mw.h"
#include "odp.h"
#include "qp.h"

/* Shift of a chunk that is as large as the region, whatever that is */
#define SROCE_ONE_CHUNK	63

/* Who may write from afar may write here as well, 11.2.8.2 */
static bool sroce_access_ok(int access)
{
	if (access & ~SROCE_ACCESS_SUPPORTED)
		return false;
	return access & IB_ACCESS_LOCAL_WRITE ||
	       !(access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC));
}

static struct sroce_mr *sroce_mr_new(struct ib_pd *pd, enum sroce_mr_type type, int access)
{
	struct sroce_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);

	if (!mr)
		return NULL;
	mr->ibmr.device = pd->device;
	mr->ibmr.pd = pd;
	mr->type = type;
	mr->access = access;
	spin_lock_init(&mr->lock);
	return mr;
}

static void sroce_mr_set_key(struct sroce_mr *mr, u32 key)
{
	mr->key = key;
	mr->ibmr.lkey = key;
	mr->ibmr.rkey = key;
}

/* Makes a region visible; from here on accesses may come */
static int sroce_mr_publish(struct sroce_dev *dev, struct sroce_mr *mr)
{
	u32 index;
	int err;

	err = xa_alloc_cyclic(&dev->mrs, &index, NULL,
			      XA_LIMIT(1, SROCE_MAX_MR), &dev->mr_next, GFP_KERNEL);
	if (err < 0)
		return err == -EBUSY ? -ENOMEM : err;
	sroce_mr_set_key(mr, index << 8 | get_random_u8());
	xa_store(&dev->mrs, index, mr, GFP_KERNEL);
	return 0;
}

/* From now on no window can be bound to it; false when one is */
static bool sroce_mr_retire(struct sroce_mr *mr)
{
	bool retired;

	spin_lock_bh(&mr->lock);
	retired = !mr->windows;
	if (retired)
		mr->retired = true;
	spin_unlock_bh(&mr->lock);
	return retired;
}

static void sroce_mr_free(struct sroce_mr *mr)
{
	if (mr->odp)
		sroce_odp_destroy(mr);
	if (mr->dmabuf)
		sroce_dmabuf_destroy(mr);
	ib_umem_release(mr->umem);
	kvfree(mr->chunks);
	kfree(mr);
}

/**
 * sroce_get_dma_mr - ib_device_ops.get_dma_mr: a region of all kernel memory
 * @pd: a kernel user's protection domain
 * @access: IB_ACCESS_*
 *
 * Return: the region, or an ERR_PTR.
 */
struct ib_mr *sroce_get_dma_mr(struct ib_pd *pd, int access)
{
	struct sroce_mr *mr = sroce_mr_new(pd, SROCE_MR_DMA, access);
	int err;

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->length = U64_MAX;
	mr->valid = true;
	err = sroce_mr_publish(to_sdev(pd->device), mr);
	if (err) {
		sroce_mr_free(mr);
		return ERR_PTR(err);
	}
	return &mr->ibmr;
}

/* Lists the pinned pages in chunks as large as their layout allows */
static int sroce_mr_fill_user(struct sroce_mr *mr)
{
	/* a zero-based region begins at its address 0, wherever that is in its first page */
	u64 virt = mr->access & IB_ZERO_BASED ? mr->umem->address : mr->iova;
	unsigned long size = ib_umem_find_best_pgsz(mr->umem, ~(PAGE_SIZE - 1) & GENMASK(30, 0),
						    virt);
	struct ib_block_iter iter;

	if (!size)
		return -EINVAL;
	mr->shift = __ffs(size);
	mr->offset = virt & (size - 1);
	mr->max_chunks = ib_umem_num_dma_blocks(mr->umem, size);
	mr->chunks = kvmalloc_array(mr->max_chunks, sizeof(*mr->chunks), GFP_KERNEL_ACCOUNT);
	if (!mr->chunks)
		return -ENOMEM;
	rdma_umem_for_each_dma_block(mr->umem, &iter, size)
		mr->chunks[mr->num_chunks++] =
			(void *)(uintptr_t)rdma_block_iter_dma_address(&iter);
	return 0;
}

/* Is all of it persistent memory?  Nothing else can be flushed to persistence. */
static bool sroce_mr_is_persistent(const struct sroce_mr *mr)
{
	u32 i;

	if (!IS_ENABLED(CONFIG_ARCH_HAS_PMEM_API))
		return false;
	for (i = 0; i < mr->num_chunks; i++)
		if (region_intersects(virt_to_phys(mr->chunks[i]), (size_t)1 << mr->shift,
				      IORESOURCE_MEM, IORES_DESC_PERSISTENT_MEMORY) !=
		    REGION_INTERSECTS)
			return false;
	return true;
}

/* An unpublished region of user memory that is not pinned */
static struct sroce_mr *sroce_mr_on_demand(struct ib_pd *pd, u64 start, u64 length, u64 iova,
					   int access)
{
	struct sroce_mr *mr;
	int err;

	if (access & ~SROCE_ACCESS_GRANTED ||
	    access & (IB_ACCESS_MW_BIND | IB_ZERO_BASED | SROCE_ACCESS_FLUSH_PERSISTENT))
		return ERR_PTR(-EOPNOTSUPP);
	mr = sroce_mr_new(pd, SROCE_MR_ODP, access);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->iova = iova;
	mr->length = length;
	mr->valid = true;
	err = sroce_odp_create(mr, start, length);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	return mr;
}

/* Makes an unpublished region of user memory, pinned unless it is to be on demand */
static struct sroce_mr *sroce_mr_user(struct ib_pd *pd, u64 start, u64 length, u64 iova,
				      int access)
{
	struct sroce_mr *mr;
	int err;

	if (access & IB_ACCESS_ON_DEMAND)
		return sroce_mr_on_demand(pd, start, length, iova, access);
	if (access & ~(SROCE_ACCESS_SUPPORTED | SROCE_ACCESS_FLUSH))
		return ERR_PTR(-EOPNOTSUPP);
	mr = sroce_mr_new(pd, SROCE_MR_USER, access);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->iova = access & IB_ZERO_BASED ? 0 : iova;
	mr->length = length;
	mr->valid = true;
	mr->umem = sroce_umem_get(pd->device, start, length, access);
	if (IS_ERR(mr->umem)) {
		err = PTR_ERR(mr->umem);
		mr->umem = NULL;
		goto err_free;
	}
	err = sroce_mr_fill_user(mr);
	if (err)
		goto err_free;
	if (access & SROCE_ACCESS_FLUSH_PERSISTENT && !sroce_mr_is_persistent(mr)) {
		err = -EINVAL;
		goto err_free;
	}
	return mr;

err_free:
	sroce_mr_free(mr);
	return ERR_PTR(err);
}

/**
 * sroce_reg_user_mr - ib_device_ops.reg_user_mr: register user memory
 * @pd: protection domain
 * @start: user address
 * @length: bytes
 * @iova: address to be used for it
 * @access: IB_ACCESS_*
 * @udata: nothing in it
 *
 * Return: the region, or an ERR_PTR: -EOPNOTSUPP for an access flag that the
 * device does not have, -EINVAL for persistence of memory that is not persistent, else
 * what pinning said.
 */
struct ib_mr *sroce_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access,
				struct ib_udata *udata)
{
	struct sroce_mr *mr = sroce_mr_user(pd, start, length, iova, access);
	int err;

	if (IS_ERR(mr))
		return ERR_CAST(mr);
	err = sroce_mr_publish(to_sdev(pd->device), mr);
	if (err) {
		sroce_mr_free(mr);
		return ERR_PTR(err);
	}
	return &mr->ibmr;
}

/**
 * sroce_reg_dm_mr - ib_device_ops.reg_dm_mr: a region of device memory
 * @pd: protection domain
 * @ibdm: memory, which stays: the core counts its regions
 * @attr: range, which @ibdm has, and permissions
 * @attrs: nothing in it
 *
 * Its addresses begin at 0.
 * Return: the region, or an ERR_PTR.
 */
struct ib_mr *sroce_reg_dm_mr(struct ib_pd *pd, struct ib_dm *ibdm, struct ib_dm_mr_attr *attr,
			      struct uverbs_attr_bundle *attrs)
{
	const struct sroce_dm *dm = to_sdm(ibdm);
	struct sroce_mr *mr;
	int err = -ENOMEM;

	if (attr->access_flags & ~(SROCE_ACCESS_SUPPORTED | SROCE_ACCESS_FLUSH_GLOBAL))
		return ERR_PTR(-EOPNOTSUPP);
	mr = sroce_mr_new(pd, SROCE_MR_DM, attr->access_flags);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->length = attr->length;
	mr->shift = PAGE_SHIFT;
	mr->offset = offset_in_page(attr->offset);
	mr->valid = true;
	mr->max_chunks = sroce_dm_chunks(dm, attr->offset, attr->length, NULL);
	mr->chunks = kvmalloc_array(max(mr->max_chunks, 1u), sizeof(*mr->chunks), GFP_KERNEL);
	if (!mr->chunks)
		goto err_free;
	mr->num_chunks = sroce_dm_chunks(dm, attr->offset, attr->length, mr->chunks);
	err = sroce_mr_publish(to_sdev(pd->device), mr);
	if (err)
		goto err_free;
	return &mr->ibmr;

err_free:
	sroce_mr_free(mr);
	return ERR_PTR(err);
}

/**
 * sroce_reg_dmabuf_mr - ib_device_ops.reg_user_mr_dmabuf: a region of exported memory
 * @pd: protection domain
 * @offset: in the dma-buf
 * @length: bytes
 * @iova: address to be used for it
 * @fd: of the dma-buf
 * @access: IB_ACCESS_*
 *
 * Return: the region, or an ERR_PTR: -EOPNOTSUPP for an access flag that such regions do
 * not have, else as sroce_dmabuf_create().
 */
struct ib_mr *sroce_reg_dmabuf_mr(struct ib_pd *pd, u64 offset, u64 length, u64 iova, int fd,
				  int access)
{
	struct sroce_mr *mr;
	int err = -ENOMEM;

	if (access & ~SROCE_ACCESS_SUPPORTED || access & (IB_ACCESS_MW_BIND | IB_ZERO_BASED))
		return ERR_PTR(-EOPNOTSUPP);
	mr = sroce_mr_new(pd, SROCE_MR_DMABUF, access);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->iova = iova;
	mr->length = length;
	mr->shift = SROCE_ONE_CHUNK;
	mr->max_chunks = 1;
	mr->chunks = kvmalloc_array(mr->max_chunks, sizeof(*mr->chunks), GFP_KERNEL_ACCOUNT);
	if (!mr->chunks)
		goto err_free;
	err = sroce_dmabuf_create(mr, fd, offset);
	if (err)
		goto err_free;
	err = sroce_mr_publish(to_sdev(pd->device), mr);
	if (err)
		goto err_free;
	return &mr->ibmr;

err_free:
	sroce_mr_free(mr);
	return ERR_PTR(err);
}

/* A new region of the same pages, which the old one goes on using until it is freed */
static struct sroce_mr *sroce_mr_same_pages(struct sroce_mr *old, struct ib_pd *pd, int access)
{
	struct sroce_mr *mr = sroce_mr_new(pd, SROCE_MR_USER, access);

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->chunks = kvmalloc_array(old->max_chunks, sizeof(*mr->chunks), GFP_KERNEL);
	if (!mr->chunks) {
		kfree(mr);
		return ERR_PTR(-ENOMEM);
	}
	memcpy(mr->chunks, old->chunks, old->num_chunks * sizeof(*mr->chunks));
	mr->num_chunks = old->num_chunks;
	mr->max_chunks = old->max_chunks;
	mr->shift = old->shift;
	mr->offset = old->offset;
	mr->iova = old->iova;
	mr->length = old->length;
	mr->valid = true;
	return mr;
}

static struct sroce_mr *sroce_mr_changed(struct sroce_mr *old, int flags, u64 start, u64 length,
					 u64 iova, int access, struct ib_pd *pd)
{
	struct ib_umem *umem = old->umem;
	bool write = access & (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
			       IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_MW_BIND);

	if (flags & IB_MR_REREG_TRANS)
		return sroce_mr_user(pd, start, length, iova, access);
	if (old->odp)	/* its pages are where they are */
		return sroce_mr_user(pd, sroce_odp_start(old), old->length, old->iova, access);
	/* pinned for reading only, another kind of address, or to be looked at: pin anew */
	if ((write && !umem->writable) || (access ^ old->access) &
	    (IB_ZERO_BASED | IB_ACCESS_ON_DEMAND | SROCE_ACCESS_FLUSH_PERSISTENT))
		return sroce_mr_user(pd, umem->address, old->length, old->iova, access);
	return sroce_mr_same_pages(old, pd, access);
}

/**
 * sroce_rereg_user_mr - ib_device_ops.rereg_user_mr: change a region
 * @ibmr: region
 * @flags: IB_MR_REREG_*: which of the following is new
 * @start: user address
 * @length: bytes
 * @iova: address to be used for it
 * @access: IB_ACCESS_*
 * @pd: protection domain; the present one if that does not change
 * @udata: nothing in it
 *
 * The key stays.  A packet finds the old region or the new one, nothing between.
 * Return: a new region, in place of which the core deregisters the old one; or an
 * ERR_PTR, and nothing has changed: -EBUSY while a window is bound to the region.
 */
struct ib_mr *sroce_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length, u64 iova,
				  int access, struct ib_pd *pd, struct ib_udata *udata)
{
	struct sroce_mr *old = to_smr(ibmr);
	struct sroce_mr *mr;

	if (old->type != SROCE_MR_USER && old->type != SROCE_MR_ODP)
		return ERR_PTR(-EINVAL);
	if (!(flags & IB_MR_REREG_ACCESS))
		access = old->access;
	if (access & ~SROCE_ACCESS_GRANTED)
		return ERR_PTR(-EOPNOTSUPP);
	mr = sroce_mr_changed(old, flags, start, length, iova, access, pd);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	if (!sroce_mr_retire(old)) {
		sroce_mr_free(mr);
		return ERR_PTR(-EBUSY);
	}
	if (!mr->umem && !mr->odp)
		swap(mr->umem, old->umem);
	sroce_mr_set_key(mr, old->key);
	mr->ibmr.iova = mr->iova;
	mr->ibmr.length = mr->length;
	/* replaces an entry that is there: needs no memory */
	xa_store(&to_sdev(pd->device)->mrs, SROCE_KEY_INDEX(mr->key), mr, GFP_KERNEL);
	return &mr->ibmr;
}

/**
 * sroce_alloc_mr - ib_device_ops.alloc_mr: a fast-registration region
 * @pd: protection domain
 * @type: IB_MR_TYPE_MEM_REG; others are refused
 * @max_num_sg: how many pages it must hold
 *
 * Return: the region, not yet registered, or an ERR_PTR.
 */
struct ib_mr *sroce_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg)
{
	struct sroce_mr *mr;
	int err = -ENOMEM;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EINVAL);
	if (!max_num_sg || max_num_sg > SROCE_MAX_FAST_REG_PAGES)
		return ERR_PTR(-EINVAL);
	mr = sroce_mr_new(pd, SROCE_MR_FAST, 0);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->max_chunks = max_num_sg;
	mr->chunks = kvmalloc_array(max_num_sg, sizeof(*mr->chunks), GFP_KERNEL_ACCOUNT);
	if (!mr->chunks)
		goto err_free;
	err = sroce_mr_publish(to_sdev(pd->device), mr);
	if (err)
		goto err_free;
	return &mr->ibmr;

err_free:
	sroce_mr_free(mr);
	return ERR_PTR(err);
}

static int sroce_mr_add_chunk(struct ib_mr *ibmr, u64 addr)
{
	struct sroce_mr *mr = to_smr(ibmr);

	if (mr->num_chunks == mr->max_chunks)
		return -ENOMEM;
	mr->chunks[mr->num_chunks++] = (void *)(uintptr_t)addr;
	return 0;
}

/**
 * sroce_map_mr_sg - ib_device_ops.map_mr_sg: set a region's page list
 * @ibmr: fast-registration region, not registered now
 * @sg: DMA-mapped scatterlist; with this device DMA addresses are kernel addresses
 * @sg_nents: its entries
 * @sg_offset: where in the first entry to begin; on return, where it stopped
 *
 * Context: any but hard interrupts; those may be disabled.
 * Return: how many entries fit, or an errno.
 */
int sroce_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		    unsigned int *sg_offset)
{
	struct sroce_mr *mr = to_smr(ibmr);
	unsigned long flags;
	int n;

	spin_lock_irqsave(&mr->lock, flags);
	mr->num_chunks = 0;
	n = ib_sg_to_pages(ibmr, sg, sg_nents, sg_offset, sroce_mr_add_chunk);
	mr->shift = ilog2(ibmr->page_size);
	mr->iova = ibmr->iova;
	mr->length = ibmr->length;
	mr->offset = ibmr->iova & (ibmr->page_size - 1);
	spin_unlock_irqrestore(&mr->lock, flags);
	return n;
}

/**
 * sroce_dereg_mr - ib_device_ops.dereg_mr
 * @ibmr: region
 * @udata: nothing in it
 *
 * On return no packet touches its memory any more.
 * Context: process, sleeps.  Return: 0, or -EBUSY while a window is bound to it.
 */
int sroce_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct sroce_mr *mr = to_smr(ibmr);

	if (!sroce_mr_retire(mr))
		return -EBUSY;
	/* one that was registered again has its key from this one */
	xa_cmpxchg(&to_sdev(ibmr->device)->mrs, SROCE_KEY_INDEX(mr->key), mr, NULL, GFP_KERNEL);
	/* accesses under way hold the RCU read lock */
	synchronize_rcu_expedited();
	if (mr->odp)
		sroce_odp_stop(mr);
	sroce_mr_free(mr);
	return 0;
}

/**
 * sroce_mr_register - carry out a fast registration (IB_WR_REG_MR)
 * @ibmr: fast-registration region, as the work request names it
 * @pd: the queue pair's protection domain
 * @key: its new key; the index in it must be the region's own
 * @access: IB_ACCESS_* to grant
 *
 * Context: softirqs or none.  Return: 0, or -EINVAL (LOC_QP_OP_ERR for the work
 * request) when the region is in use or is not the queue pair's, or the
 * permissions are none that can be granted.
 */
int sroce_mr_register(struct ib_mr *ibmr, struct ib_pd *pd, u32 key, int access)
{
	struct sroce_mr *mr = to_smr(ibmr);
	int err = -EINVAL;

	if (!sroce_access_ok(access))
		return -EINVAL;
	spin_lock_bh(&mr->lock);
	if (mr->type == SROCE_MR_FAST && !mr->valid && ibmr->pd == pd &&
	    SROCE_KEY_INDEX(key) == SROCE_KEY_INDEX(mr->key)) {
		mr->key = key;
		ibmr->lkey = key;
		ibmr->rkey = key;
		mr->access = access;
		mr->iova = ibmr->iova;	/* the consumer may have changed its upper bits */
		mr->valid = true;
		err = 0;
	}
	spin_unlock_bh(&mr->lock);
	return err;
}

static int sroce_mr_invalidate_fast(struct sroce_mr *mr, u32 key)
{
	int err = -EINVAL;

	spin_lock_bh(&mr->lock);
	if (mr->valid && mr->key == key) {
		mr->valid = false;
		err = 0;
	}
	spin_unlock_bh(&mr->lock);
	return err;
}

/**
 * sroce_mr_invalidate - carry out a local or remote invalidation, 10.6.5
 * @qp: queue pair
 * @key: key of a fast-registration region or a type 2 memory window
 *
 * On return no packet touches the memory by that key any more.
 * Context: any.  Return: 0, or -EINVAL when the key is not valid or not one
 * that can be invalidated.
 */
int sroce_mr_invalidate(const struct sroce_qp *qp, u32 key)
{
	struct sroce_mr *mr;
	int err = -EINVAL;

	if (SROCE_KEY_INDEX(key) >= SROCE_MW_INDEX)
		return sroce_mw_invalidate(qp, key);
	rcu_read_lock();
	mr = xa_load(&qp->dev->mrs, SROCE_KEY_INDEX(key));
	if (mr && mr->type == SROCE_MR_FAST && mr->ibmr.pd == sroce_qp_memory_pd(qp))
		err = sroce_mr_invalidate_fast(mr, key);
	rcu_read_unlock();
	return err;
}

/* May @pd access @length bytes at @va through @mr by @key? */
static bool sroce_mr_allows(const struct sroce_mr *mr, struct ib_pd *pd, u32 key, u64 va,
			    u64 length, int access)
{
	return mr->key == key && mr->valid && mr->ibmr.pd == pd &&
	       (mr->access & access) == access &&
	       va >= mr->iova && va - mr->iova <= mr->length &&
	       length <= mr->length - (va - mr->iova);
}

static __always_inline int sroce_mr_act_checked(const struct sroce_mr *mr,
						const struct sroce_access *a, sroce_act *act)
{
	u64 va = unlikely(a->whole) ? mr->iova : a->va;

	if (!sroce_mr_allows(mr, a->pd, a->key, va, a->whole ? 0 : a->length, a->access))
		return -EACCES;
	return act(mr, a);
}

/* Whose memory may come or go while it is visible */
static bool sroce_mr_changes(const struct sroce_mr *mr)
{
	return mr->type == SROCE_MR_FAST || mr->type == SROCE_MR_ODP ||
	       mr->type == SROCE_MR_DMABUF;
}

/* Finds the region of a key and acts on it if that is allowed; -EACCES else */
static __always_inline int sroce_mr_act(struct sroce_dev *dev, const struct sroce_access *a,
					sroce_act *act)
{
	struct sroce_mr *mr;
	int err = -EACCES;

	if (unlikely(SROCE_KEY_INDEX(a->key) >= SROCE_MW_INDEX))
		return sroce_mw_act(dev, a, act);
	rcu_read_lock();
	mr = xa_load(&dev->mrs, SROCE_KEY_INDEX(a->key));
	if (mr && sroce_mr_changes(mr)) {
		spin_lock_bh(&mr->lock);
		err = sroce_mr_act_checked(mr, a, act);
		spin_unlock_bh(&mr->lock);
	} else if (mr) {
		err = sroce_mr_act_checked(mr, a, act);
	}
	rcu_read_unlock();
	return err;
}

/* A kernel address that someone gave us: is all of it memory?  There may be holes. */
static bool sroce_kernel_range_ok(u64 addr, u64 length)
{
	u64 page;

	if (!length)
		return true;
	if (addr + length < addr || addr + length - 1 > ULONG_MAX)
		return false;
	for (page = addr & PAGE_MASK; page < addr + length; page += PAGE_SIZE)
		if (!virt_addr_valid((void *)(uintptr_t)page))
			return false;
	return true;
}

static void sroce_move(void *mem, void *buf, u32 length, int access)
{
	if (access & (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE))
		memcpy(mem, buf, length);
	else
		memcpy(buf, mem, length);
}

static int sroce_move_kernel(u64 va, void *buf, u32 length, int access)
{
	if (!sroce_kernel_range_ok(va, length))
		return -EFAULT;
	sroce_move((void *)(uintptr_t)va, buf, length, access);
	return 0;
}

/* To where power can fail; the fence is on this CPU, the FLUSH may come on another */
static void sroce_write_back(void *mem, u32 length)
{
	arch_wb_cache_pmem(mem, length);
	pmem_wmb();
}

static bool sroce_access_writes(int access)
{
	return access & (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC);
}

/* Kernel address of the memory at @va, and how much follows it in one piece, or an ERR_PTR */
static void *sroce_mr_address(const struct sroce_mr *mr, const struct sroce_access *a, u64 va,
			      u64 *run)
{
	u64 at = va - mr->iova + mr->offset;
	u64 in_chunk = at & ((1ull << mr->shift) - 1);

	if (mr->type == SROCE_MR_ODP)
		return sroce_odp_address(mr, va, max(a->length, a->ahead) - (va - a->va),
					 sroce_access_writes(a->access), run);
	*run = (1ull << mr->shift) - in_chunk;
	return mr->chunks[at >> mr->shift] + in_chunk;
}

static int sroce_mr_move(const struct sroce_mr *mr, const struct sroce_access *a)
{
	u32 length = a->length;
	void *buf = a->buf;
	u64 va = a->va;
	u64 run;

	if (mr->type == SROCE_MR_DMA)
		return sroce_move_kernel(va, buf, length, a->access);
	while (length) {
		void *mem = sroce_mr_address(mr, a, va, &run);
		u32 n;

		if (IS_ERR(mem))
			return PTR_ERR(mem);
		n = min_t(u64, length, run);
		sroce_move(mem, buf, n, a->access);
		if (unlikely(mr->access & SROCE_ACCESS_FLUSH_PERSISTENT) &&
		    sroce_access_writes(a->access))
			sroce_write_back(mem, n);
		va += n;
		buf += n;
		length -= n;
	}
	return 0;
}

static int sroce_mr_nothing(const struct sroce_mr *mr, const struct sroce_access *a)
{
	if (mr->type == SROCE_MR_ODP)
		sroce_odp_want(mr, a->va, a->length, sroce_access_writes(a->access));
	return 0;
}

/**
 * sroce_mr_check - may a remote peer access this memory? (9.7.5.2.4)
 * @qp: queue pair
 * @rkey: key
 * @va: address
 * @length: bytes; a length of 0 is always granted
 * @access: IB_ACCESS_REMOTE_*
 *
 * Context: any.  Return: 0 or -EACCES.
 */
int sroce_mr_check(const struct sroce_qp *qp, u32 rkey, u64 va, u64 length, int access)
{
	const struct sroce_access a = {
		.pd = sroce_qp_memory_pd(qp), .qpn = qp->ibqp.qp_num,
		.key = rkey, .va = va, .length = length, .access = access,
	};

	return length ? sroce_mr_act(qp->dev, &a, sroce_mr_nothing) : 0;
}

/**
 * sroce_mr_copy - move bytes between memory that a remote peer names and a buffer
 * @qp: queue pair
 * @rkey: key
 * @va: address
 * @buf: kernel buffer
 * @length: bytes; 0 is always granted
 * @ahead: bytes from @va on that the message is about to access, of which the peer has
 *	been granted all
 * @access: the one permission needed; a write permission moves from @buf
 *
 * Context: any.  Return: 0; -EACCES, nothing moved; -EFAULT for an address
 * that is no memory; -EAGAIN when it is being brought, after moving some of it.
 */
int sroce_mr_copy(const struct sroce_qp *qp, u32 rkey, u64 va, void *buf, u32 length, u32 ahead,
		  int access)
{
	const struct sroce_access a = {
		.pd = sroce_qp_memory_pd(qp), .qpn = qp->ibqp.qp_num,
		.key = rkey, .va = va, .length = length, .ahead = ahead, .access = access,
		.buf = buf,
	};

	return length ? sroce_mr_act(qp->dev, &a, sroce_mr_move) : 0;
}

static int sroce_mr_flush_act(const struct sroce_mr *mr, const struct sroce_access *a)
{
	if (mr->access & SROCE_ACCESS_FLUSH_PERSISTENT)
		pmem_wmb();	/* each write was written back, see sroce_write_back() */
	smp_mb();	/* what was written is seen before the answer that says so */
	return 0;
}

/**
 * sroce_mr_flush - have what peers wrote visible to all, or persistent
 * @qp: queue pair
 * @rkey: key
 * @va: address
 * @length: bytes
 * @whole: all of the region, whatever @va and @length say
 * @access: SROCE_ACCESS_FLUSH_*
 *
 * Context: any.  Return: 0 or -EACCES.
 */
int sroce_mr_flush(const struct sroce_qp *qp, u32 rkey, u64 va, u64 length, bool whole,
		   int access)
{
	const struct sroce_access a = {
		.pd = sroce_qp_memory_pd(qp), .qpn = qp->ibqp.qp_num,
		.key = rkey, .va = va, .length = length, .whole = whole, .access = access,
	};

	return sroce_mr_act(qp->dev, &a, sroce_mr_flush_act);
}

static u64 sroce_atomic_word(atomic64_t *word, bool compare, u64 compare_with, u64 swap_add)
{
	if (compare)
		return atomic64_cmpxchg(word, compare_with, swap_add);
	return atomic64_fetch_add(swap_add, word);
}

static int sroce_mr_atomic_act(const struct sroce_mr *mr, const struct sroce_access *a)
{
	void *mem;
	u64 run;

	if (mr->type != SROCE_MR_DMA)
		mem = sroce_mr_address(mr, a, a->va, &run);
	else if (sroce_kernel_range_ok(a->va, a->length))
		mem = (void *)(uintptr_t)a->va;
	else
		return -EACCES;
	if (IS_ERR(mem))
		return PTR_ERR(mem);
	if (!IS_ALIGNED(a->va, sizeof(u64)) || !IS_ALIGNED((uintptr_t)mem, sizeof(u64)))
		return -EINVAL;
	*(u64 *)a->buf = sroce_atomic_word(mem, a->compare, a->compare_with, a->swap_add);
	if (mr->access & SROCE_ACCESS_FLUSH_PERSISTENT)
		sroce_write_back(mem, sizeof(u64));
	return 0;
}

/**
 * sroce_mr_atomic - carry out an atomic operation on registered memory, 9.4.5
 * @qp: queue pair
 * @rkey: key
 * @va: address
 * @compare: compare and swap, else fetch and add
 * @compare_with: what to compare with
 * @swap_add: what to store or to add
 * @original: where to put what was there
 *
 * The operation is atomic with respect to the CPUs as well.
 * Context: any.  Return: 0, -EACCES, -EINVAL when @va is not aligned, or -EAGAIN when the
 * memory is being brought.
 */
int sroce_mr_atomic(const struct sroce_qp *qp, u32 rkey, u64 va, bool compare,
		    u64 compare_with, u64 swap_add, u64 *original)
{
	const struct sroce_access a = {
		.pd = sroce_qp_memory_pd(qp), .qpn = qp->ibqp.qp_num,
		.key = rkey, .va = va, .length = sizeof(u64),
		.access = IB_ACCESS_REMOTE_ATOMIC, .buf = original,
		.compare = compare, .compare_with = compare_with, .swap_add = swap_add,
	};

	return sroce_mr_act(qp->dev, &a, sroce_mr_atomic_act);
}

static int sroce_mr_atomic_write_act(const struct sroce_mr *mr, const struct sroce_access *a)
{
	void *mem;
	u64 run;

	if (mr->type != SROCE_MR_DMA)
		mem = sroce_mr_address(mr, a, a->va, &run);
	else if (sroce_kernel_range_ok(a->va, a->length))
		mem = (void *)(uintptr_t)a->va;
	else
		return -EACCES;
	if (IS_ERR(mem))
		return PTR_ERR(mem);
	if (!IS_ALIGNED(a->va, sizeof(u64)) || !IS_ALIGNED((uintptr_t)mem, sizeof(u64)))
		return -EINVAL;
	/* whoever sees it sees what was written before */
	atomic64_set_release((atomic64_t *)mem, a->swap_add);
	if (mr->access & SROCE_ACCESS_FLUSH_PERSISTENT)
		sroce_write_back(mem, sizeof(u64));
	return 0;
}

/**
 * sroce_mr_atomic_write - carry out an atomic write
 * @qp: queue pair
 * @rkey: key
 * @va: address
 * @value: eight bytes, as they are in memory
 *
 * Context: any.  Return: as sroce_mr_atomic().
 */
int sroce_mr_atomic_write(const struct sroce_qp *qp, u32 rkey, u64 va, u64 value)
{
	const struct sroce_access a = {
		.pd = sroce_qp_memory_pd(qp), .qpn = qp->ibqp.qp_num,
		.key = rkey, .va = va, .length = sizeof(u64),
		.access = IB_ACCESS_REMOTE_WRITE, .swap_add = value,
	};

	return sroce_mr_act(qp->dev, &a, sroce_mr_atomic_write_act);
}

/* One entry of a list: the reserved key 0 is all memory, for kernel users only */
static int sroce_sge_copy(struct sroce_dev *dev, struct ib_pd *pd, const struct sroce_sge *sge,
			  u32 offset, void *buf, u32 length, int access)
{
	const struct sroce_access a = {
		.pd = pd, .key = sge->lkey, .va = sge->addr + offset, .length = length,
		.ahead = sge->length - offset,
		.access = access, .buf = buf,
	};

	if (!sge->lkey && !pd->uobject)
		return sroce_move_kernel(sge->addr + offset, buf, length, access);
	if (unlikely(SROCE_KEY_INDEX(sge->lkey) >= SROCE_MW_INDEX))
		return -EACCES;	/* a window has no L_Key */
	return sroce_mr_act(dev, &a, sroce_mr_move);
}

/**
 * sroce_sgl_copy - move bytes between a scatter/gather list and a buffer
 * @dev: device
 * @pd: the queue pair's protection domain
 * @sgl: list, under the lock of its queue pair
 * @offset: where in the message to begin, bytes
 * @buf: kernel buffer
 * @length: bytes; @offset + @length must not exceed the list's total
 * @access: IB_ACCESS_LOCAL_WRITE moves from @buf, 0 into it
 *
 * Return: 0, -EACCES or -EFAULT (LOC_PROT_ERR), or -EAGAIN when memory is being brought,
 * each after moving some of it.
 */
int sroce_sgl_copy(struct sroce_dev *dev, struct ib_pd *pd, struct sroce_sgl *sgl,
		   u32 offset, void *buf, u32 length, int access)
{
	bool missing = false;
	int err;

	if (WARN_ON_ONCE((u64)offset + length > sgl->total))
		return -EFAULT;
	if (offset < sgl->cur_start) {
		sgl->cur = 0;
		sgl->cur_start = 0;
	}
	while (length) {
		const struct sroce_sge *sge = &sgl->sge[sgl->cur];
		u32 at = offset - sgl->cur_start;
		u32 n;

		if (at >= sge->length) {
			sgl->cur_start += sge->length;
			sgl->cur++;
			continue;
		}
		n = min(length, sge->length - at);
		err = sroce_sge_copy(dev, pd, sge, at, buf, n, access);
		if (err && err != -EAGAIN)
			return err;
		missing |= err;		/* go on: what else is missing is to be brought as well */
		buf += n;
		offset += n;
		length -= n;
	}
	return missing ? -EAGAIN : 0;
}

/**
 * sroce_sgl_load - copy a scatter/gather list out of a work request
 * @sgl: list to fill, under the lock of its queue pair
 * @max: how many entries it can hold
 * @from: entries, which the user may change at any time: read once
 * @num: how many
 *
 * Return: 0, or -EINVAL when there are too many or more than 2 GiB in all.
 */
int sroce_sgl_load(struct sroce_sgl *sgl, u32 max, const struct sroce_sge *from, u32 num)
{
	u64 total = 0;
	u32 i;

	if (num > max)
		return -EINVAL;
	for (i = 0; i < num; i++) {
		struct sroce_sge *sge = &sgl->sge[i];

		sge->addr = READ_ONCE(from[i].addr);
		sge->length = READ_ONCE(from[i].length);
		sge->lkey = READ_ONCE(from[i].lkey);
		total += sge->length;
	}
	if (total > SROCE_MAX_MESSAGE)
		return -EINVAL;
	sgl->total = total;
	sgl->num = num;
	sgl->cur = 0;
	sgl->cur_start = 0;
	return 0;
}
