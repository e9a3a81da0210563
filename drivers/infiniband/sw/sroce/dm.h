/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Device memory */
#ifndef SROCE_DM_H
#define SROCE_DM_H

#include <rdma/ib_verbs.h>
#include "mmap.h"

struct sroce_dev;

/**
 * struct sroce_dm - a piece of device memory
 * @ibdm: the core's part
 * @pages: what it is; they stay as long as any process maps them
 * @mi: how a user maps it
 */
struct sroce_dm {
	struct ib_dm			ibdm;
	struct sroce_dm_pages		*pages;
	struct sroce_mmap_info		mi;
};

static inline struct sroce_dm *to_sdm(struct ib_dm *ibdm)
{
	return container_of(ibdm, struct sroce_dm, ibdm);
}

struct ib_dm *sroce_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *context,
			     struct ib_dm_alloc_attr *attr, struct uverbs_attr_bundle *attrs);
int sroce_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs);
u32 sroce_dm_chunks(const struct sroce_dm *dm, u64 offset, u64 length, void **chunks);

#endif /* SROCE_DM_H */
