/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* On-demand paging: regions whose pages are not pinned */
#ifndef SROCE_ODP_H
#define SROCE_ODP_H

#include <rdma/ib_verbs.h>

struct sroce_mr;
struct uverbs_attr_bundle;

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING
void sroce_odp_query(struct ib_device_attr *attr);
int sroce_odp_create(struct sroce_mr *mr, u64 start, u64 length);
u64 sroce_odp_start(const struct sroce_mr *mr);
void sroce_odp_stop(struct sroce_mr *mr);
void sroce_odp_destroy(struct sroce_mr *mr);
void *sroce_odp_address(const struct sroce_mr *mr, u64 va, u64 ahead, bool write, u64 *run);
void sroce_odp_want(const struct sroce_mr *mr, u64 va, u64 length, bool write);
int sroce_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice, u32 flags,
		    struct ib_sge *sges, u32 num_sge, struct uverbs_attr_bundle *attrs);
#else
/* In a kernel without it there are no such regions */
static inline void sroce_odp_query(struct ib_device_attr *attr) {}

static inline int sroce_odp_create(struct sroce_mr *mr, u64 start, u64 length)
{
	return -EOPNOTSUPP;
}

static inline u64 sroce_odp_start(const struct sroce_mr *mr)
{
	return 0;
}

static inline void sroce_odp_stop(struct sroce_mr *mr) {}
static inline void sroce_odp_destroy(struct sroce_mr *mr) {}

static inline void *sroce_odp_address(const struct sroce_mr *mr, u64 va, u64 ahead, bool write,
				      u64 *run)
{
	return ERR_PTR(-EFAULT);
}

static inline void sroce_odp_want(const struct sroce_mr *mr, u64 va, u64 length, bool write) {}

#define sroce_advise_mr		NULL
#endif

#endif /* SROCE_ODP_H */
