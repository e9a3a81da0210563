/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Memory of ours that a user maps */
#ifndef SROCE_MMAP_H
#define SROCE_MMAP_H

#include <rdma/ib_verbs.h>
#include <rdma/sroce-abi.h>

struct sroce_mapping;

/**
 * struct sroce_mapping_ops - what a mapping is of
 * @map: map it into an area that has its size
 * @free: the last reference is gone: free the mapping, and what it is of
 */
struct sroce_mapping_ops {
	int	(*map)(struct sroce_mapping *mapping, struct vm_area_struct *vma);
	void	(*free)(struct sroce_mapping *mapping);
};

/**
 * struct sroce_mapping - something that can be mapped
 * @entry: the core's part; it holds a reference while an mmap() call is under way
 * @ops: what it is
 */
struct sroce_mapping {
	struct rdma_user_mmap_entry	entry;
	const struct sroce_mapping_ops	*ops;
};

int sroce_mapping_add(struct sroce_mapping *mapping, const struct sroce_mapping_ops *ops,
		      struct ib_ucontext *context, size_t size, struct sroce_mmap_info *mi);
void sroce_mapping_remove(struct sroce_mapping *mapping);
int sroce_mmap(struct ib_ucontext *context, struct vm_area_struct *vma);
void sroce_mmap_free(struct rdma_user_mmap_entry *entry);

#endif /* SROCE_MMAP_H */
