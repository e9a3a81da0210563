// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory of rings: ours, which the user maps, or the user's */
#include <linux/log2.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/ib_umem.h>
#include <rdma/uverbs_ioctl.h>
#include "compat.h"
#include "device.h"
#include "mmap.h"
#include "ring.h"

/*
 * Lives from sroce_ring_create() to the last put of @mapping.  The pages themselves
 * stay as long as any process maps them.
 */
struct sroce_ring_map {
	struct sroce_mapping	mapping;
	struct sroce_queue	*queue;
};

/* remap_vmalloc_range() wants memory of vmalloc_user(), which cannot be charged */
static int sroce_ring_mmap(struct sroce_mapping *mapping, struct vm_area_struct *vma)
{
	const void *at = container_of(mapping, struct sroce_ring_map, mapping)->queue;
	unsigned long address;
	int err;

	/* the area has the size of the mapping */
	for (address = vma->vm_start; address < vma->vm_end; address += PAGE_SIZE) {
		err = vm_insert_page(vma, address, vmalloc_to_page(at));
		if (err)
			return err;
		at += PAGE_SIZE;
	}
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	return 0;
}

static void sroce_ring_map_free(struct sroce_mapping *mapping)
{
	struct sroce_ring_map *map = container_of(mapping, struct sroce_ring_map, mapping);

	vfree(map->queue);
	kfree(map);
}

static const struct sroce_mapping_ops sroce_ring_mapping_ops = {
	.map = sroce_ring_mmap,
	.free = sroce_ring_map_free,
};

static int sroce_ring_expose(struct sroce_ring *ring, struct ib_udata *udata, size_t size,
			     struct sroce_mmap_info *mi)
{
	struct ib_ucontext *context = rdma_udata_to_uverbs_attr_bundle(udata)->context;
	struct sroce_ring_map *map;
	int err;

	map = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);
	if (!map)
		return -ENOMEM;
	map->queue = ring->queue;
	err = sroce_mapping_add(&map->mapping, &sroce_ring_mapping_ops, context, size, mi);
	if (err) {
		kfree(map);
		return err;
	}
	ring->map = map;
	return 0;
}

/* Maps the user's pages, pinned, into one piece of kernel addresses */
static void *sroce_umem_map(struct ib_umem *umem)
{
	size_t n = 0, num = ib_umem_num_pages(umem);
	struct sg_page_iter iter;
	struct page **pages;
	void *addr;

	pages = kvmalloc_array(num, sizeof(*pages), GFP_KERNEL_ACCOUNT);
	if (!pages)
		return NULL;
	for_each_sgtable_page(&umem->sgt_append.sgt, &iter, 0)
		if (n < num)
			pages[n++] = sg_page_iter_page(&iter);
	addr = n == num ? vmap(pages, num, VM_MAP, PAGE_KERNEL) : NULL;
	kvfree(pages);
	return addr;
}

/* Takes a ring's memory from the user, who gave enough of it */
static int sroce_ring_borrow(struct sroce_ring *ring, struct ib_udata *udata,
			     const struct sroce_user_ring *user, size_t size)
{
	struct ib_ucontext *context = rdma_udata_to_uverbs_attr_bundle(udata)->context;
	int err = -ENOMEM;

	if (!(sroce_ring_ext(udata) & SROCE_EXT_USER_RINGS) || !PAGE_ALIGNED(user->addr) ||
	    user->length < size)
		return -EINVAL;
	ring->umem = sroce_umem_get(context->device, user->addr, size, IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(ring->umem)) {
		err = PTR_ERR(ring->umem);
		ring->umem = NULL;
		return err;
	}
	ring->queue = sroce_umem_map(ring->umem);
	if (!ring->queue) {
		ib_umem_release(ring->umem);
		ring->umem = NULL;
		return err;
	}
	memset(ring->queue, 0, size);
	return 0;
}

static int sroce_ring_alloc(struct sroce_ring *ring, struct ib_udata *udata, size_t size,
			    struct sroce_mmap_info *mi)
{
	int err;

	/* charged to whoever asks: rings are the bulk of what users can have */
	ring->queue = __vmalloc(size, GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
	if (!ring->queue)
		return -ENOMEM;
	if (!udata)
		return 0;
	err = sroce_ring_expose(ring, udata, size, mi);
	if (err) {
		vfree(ring->queue);
		ring->queue = NULL;
	}
	return err;
}

/**
 * sroce_ring_ext - the extensions that a user's provider was granted
 * @udata: the user's call, NULL for a kernel user
 *
 * Return: enum sroce_ext, or'ed.
 */
u32 sroce_ring_ext(struct ib_udata *udata)
{
	struct ib_ucontext *context;

	if (!udata)
		return 0;
	context = rdma_udata_to_uverbs_attr_bundle(udata)->context;
	return container_of(context, struct sroce_ucontext, ibuc)->ext;
}

/**
 * sroce_ring_create - allocate a ring
 * @ring: ring to set up
 * @udata: the user's call, NULL for a kernel user
 * @user: the user's memory for it, or NULL, or without a length when there is none
 * @elements: how many elements it must hold at least; on return, how many it can
 * @element_size: bytes of an element, rounded up to a power of two
 * @mi: for a user's ring, where to say how it is mapped
 *
 * Context: process.  Return: 0, -EINVAL for an absurd size or memory of the user's
 * that will not do, -ENOMEM.
 */
int sroce_ring_create(struct sroce_ring *ring, struct ib_udata *udata,
		      const struct sroce_user_ring *user, u32 *elements, u32 element_size,
		      struct sroce_mmap_info *mi)
{
	u64 slots = roundup_pow_of_two((u64)*elements + 1);
	u8 shift = order_base_2(element_size);
	u64 size = PAGE_ALIGN(sizeof(struct sroce_queue) + (slots << shift));
	int err;

	if (size > S32_MAX)
		return -EINVAL;
	memset(ring, 0, sizeof(*ring));
	if (user && user->length)
		err = sroce_ring_borrow(ring, udata, user, size);
	else
		err = sroce_ring_alloc(ring, udata, size, mi);
	if (err)
		return err;
	ring->mask = slots - 1;
	ring->shift = shift;
	ring->queue->log2_elem_size = shift;
	ring->queue->index_mask = ring->mask;
	*elements = ring->mask;
	return 0;
}

/**
 * sroce_ring_destroy - free a ring
 * @ring: ring that nothing uses any more; one never created is left alone
 *
 * Context: process.
 */
void sroce_ring_destroy(struct sroce_ring *ring)
{
	if (ring->umem) {
		vunmap(ring->queue);
		ib_umem_release(ring->umem);
	} else if (ring->map) {
		sroce_mapping_remove(&ring->map->mapping);
	} else {
		vfree(ring->queue);
	}
	ring->queue = NULL;
	ring->map = NULL;
	ring->umem = NULL;
}
