// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory of ours that a user maps: rings and device memory */
#include "mmap.h"

static struct sroce_mapping *to_mapping(struct rdma_user_mmap_entry *entry)
{
	return container_of(entry, struct sroce_mapping, entry);
}

/**
 * sroce_mapping_add - let a user map something
 * @mapping: zeroed
 * @ops: what it is
 * @context: the user's open device
 * @size: bytes, to whole pages
 * @mi: where to say how it is mapped
 *
 * Context: process.  Return: 0 or -ENOMEM.
 */
int sroce_mapping_add(struct sroce_mapping *mapping, const struct sroce_mapping_ops *ops,
		      struct ib_ucontext *context, size_t size, struct sroce_mmap_info *mi)
{
	int err;

	mapping->ops = ops;
	err = rdma_user_mmap_entry_insert(context, &mapping->entry, size);
	if (err)
		return err;
	mi->offset = rdma_user_mmap_get_offset(&mapping->entry);
	mi->size = size;
	mi->pad = 0;
	return 0;
}

/**
 * sroce_mapping_remove - let nobody map it any more
 * @mapping: mapping; freed when no mmap() call is under way
 */
void sroce_mapping_remove(struct sroce_mapping *mapping)
{
	rdma_user_mmap_entry_remove(&mapping->entry);
}

/**
 * sroce_mmap_free - ib_device_ops.mmap_free: the last reference is gone
 * @entry: entry
 */
void sroce_mmap_free(struct rdma_user_mmap_entry *entry)
{
	struct sroce_mapping *mapping = to_mapping(entry);

	mapping->ops->free(mapping);
}

/**
 * sroce_mmap - ib_device_ops.mmap
 * @context: the user's context
 * @vma: offset and size as struct sroce_mmap_info said
 *
 * Return: 0, or -EINVAL when there is nothing of that offset and size.
 */
int sroce_mmap(struct ib_ucontext *context, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry = rdma_user_mmap_entry_get(context, vma);
	int err;

	if (!entry)
		return -EINVAL;
	err = to_mapping(entry)->ops->map(to_mapping(entry), vma);
	rdma_user_mmap_entry_put(entry);
	return err;
}
