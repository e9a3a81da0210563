// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Device memory: where a NIC has some of its own, we have pages of the kernel's.
 * They are charged to the user's memory cgroup, and all of a device's are bounded.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>
#include "device.h"
#include "dm.h"

/**
 * struct sroce_dm_pages - the pages of a piece of device memory
 * @mapping: what lets the user map them; they are freed with it
 * @dev: device, which outlives it
 * @num: how many
 * @page: the pages
 */
struct sroce_dm_pages {
	struct sroce_mapping	mapping;
	struct sroce_dev	*dev;
	u32			num;
	struct page		*page[];
};

static void sroce_dm_pages_free(struct sroce_dm_pages *pages)
{
	u32 i;

	for (i = 0; i < pages->num && pages->page[i]; i++)
		__free_page(pages->page[i]);
	kvfree(pages);
}

static struct sroce_dm_pages *sroce_dm_pages_alloc(struct sroce_dev *dev, u32 num)
{
	struct sroce_dm_pages *pages = kvzalloc(struct_size(pages, page, num), GFP_KERNEL_ACCOUNT);
	u32 i;

	if (!pages)
		return NULL;
	pages->dev = dev;
	pages->num = num;
	for (i = 0; i < num; i++) {
		pages->page[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!pages->page[i]) {
			sroce_dm_pages_free(pages);
			return NULL;
		}
	}
	return pages;
}

static int sroce_dm_map(struct sroce_mapping *mapping, struct vm_area_struct *vma)
{
	struct sroce_dm_pages *pages = container_of(mapping, struct sroce_dm_pages, mapping);

	return vm_map_pages_zero(vma, pages->page, pages->num);
}

static void sroce_dm_map_free(struct sroce_mapping *mapping)
{
	struct sroce_dm_pages *pages = container_of(mapping, struct sroce_dm_pages, mapping);

	sroce_dm_pages_free(pages);
}

static const struct sroce_mapping_ops sroce_dm_mapping_ops = {
	.map = sroce_dm_map,
	.free = sroce_dm_map_free,
};

static int sroce_dm_reserve(struct sroce_dev *dev, u64 bytes)
{
	if (atomic64_add_return(bytes, &dev->dm_bytes) <= SROCE_MAX_DM)
		return 0;
	atomic64_sub(bytes, &dev->dm_bytes);
	return -ENOMEM;
}

/**
 * sroce_alloc_dm - ib_device_ops.alloc_dm
 * @ibdev: device
 * @context: the user's open device
 * @attr: length and alignment
 * @attrs: answers with struct sroce_mmap_info
 *
 * Return: the memory, or an ERR_PTR: -EINVAL, -ENOMEM also when the device has not
 * so much.
 */
struct ib_dm *sroce_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *context,
			     struct ib_dm_alloc_attr *attr, struct uverbs_attr_bundle *attrs)
{
	struct sroce_dev *dev = to_sdev(ibdev);
	u64 bytes = PAGE_ALIGN(attr->length);
	struct sroce_dm *dm;
	int err;

	if (!attr->length || attr->alignment > PAGE_SHIFT)
		return ERR_PTR(-EINVAL);
	if (attr->length > SROCE_MAX_DM)
		return ERR_PTR(-ENOMEM);
	dm = kzalloc(sizeof(*dm), GFP_KERNEL);
	if (!dm)
		return ERR_PTR(-ENOMEM);
	err = sroce_dm_reserve(dev, bytes);
	if (err)
		goto err_free;
	dm->pages = sroce_dm_pages_alloc(dev, bytes >> PAGE_SHIFT);
	if (!dm->pages) {
		err = -ENOMEM;
		goto err_reserve;
	}
	err = sroce_mapping_add(&dm->pages->mapping, &sroce_dm_mapping_ops, context, bytes,
				&dm->mi);
	if (err) {
		sroce_dm_pages_free(dm->pages);
		goto err_reserve;
	}
	err = uverbs_copy_to(attrs, SROCE_ATTR_ALLOC_DM_RESP, &dm->mi, sizeof(dm->mi));
	if (err && err != -ENOENT)
		goto err_mapping;
	return &dm->ibdm;

err_mapping:
	sroce_mapping_remove(&dm->pages->mapping);
err_reserve:
	atomic64_sub(bytes, &dev->dm_bytes);
err_free:
	kfree(dm);
	return ERR_PTR(err);
}

/**
 * sroce_dealloc_dm - ib_device_ops.dealloc_dm
 * @ibdm: memory that no region uses: the core counts them
 * @attrs: nothing in it
 *
 * Return: 0.
 */
int sroce_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs)
{
	struct sroce_dm *dm = to_sdm(ibdm);

	atomic64_sub((u64)dm->pages->num << PAGE_SHIFT, &dm->pages->dev->dm_bytes);
	sroce_mapping_remove(&dm->pages->mapping);
	kfree(dm);
	return 0;
}

/**
 * sroce_dm_chunks - where device memory is, for a region of it
 * @dm: memory
 * @offset: first byte
 * @length: bytes, all of which @dm has
 * @chunks: NULL, or where to put the kernel addresses of its pages
 *
 * Return: how many pages that are.
 */
u32 sroce_dm_chunks(const struct sroce_dm *dm, u64 offset, u64 length, void **chunks)
{
	u32 first = offset >> PAGE_SHIFT;
	u32 num = length ? ((offset + length - 1) >> PAGE_SHIFT) - first + 1 : 0;
	u32 i;

	for (i = 0; chunks && i < num; i++)
		chunks[i] = page_address(dm->pages->page[first + i]);
	return num;
}
