/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Memory regions, and every access to registered memory */
#ifndef SROCE_MR_H
#define SROCE_MR_H

#include <rdma/ib_verbs.h>
#include <rdma/sroce-abi.h>
#include "compat.h"

struct sroce_dev;
struct sroce_dmabuf;
struct sroce_odp;
struct sroce_qp;

/* The upper bits of a key are an index; the lower ones change with each registration */
#define SROCE_KEY_INDEX(key)	((key) >> 8)

/* Indices from here on are memory windows' */
#define SROCE_MW_INDEX		0x800000u

enum sroce_mr_type {
	SROCE_MR_DMA,	/* all of the kernel's memory, for kernel users */
	SROCE_MR_USER,	/* pinned user pages */
	SROCE_MR_ODP,	/* user pages on demand */
	SROCE_MR_DM,	/* device memory */
	SROCE_MR_DMABUF, /* what another driver exports */
	SROCE_MR_FAST,	/* a page list that a kernel user sets by a work request */
};

/**
 * struct sroce_mr - a memory region
 * @ibmr: the core's part; its PD and type do not change while it is visible
 * @type: what kind it is
 * @key: current L_Key and R_Key; the low byte of a fast-registration region's
 *	changes with each registration
 * @access: IB_ACCESS_* granted now
 * @valid: false for a fast-registration region not registered now, and for one of a
 *	dma-buf that is revoked
 * @iova: first address
 * @length: bytes
 * @chunks: kernel addresses of the memory, each 1 << @shift bytes
 * @max_chunks: how many @chunks can hold
 * @num_chunks: how many it does
 * @offset: of @iova in the first chunk
 * @umem: the pinned user pages
 * @odp: the pages on demand
 * @dmabuf: what is exported
 * @windows: memory windows bound to it, under @lock: while there are any, it stays
 * @retired: it is about to go, and no window can be bound any more; under @lock
 * @lock: for SROCE_MR_FAST, protects what a work request changes, and is held
 *	while the memory is accessed so that an invalidation waits for it; for
 *	SROCE_MR_ODP, where pages come and go, and SROCE_MR_DMABUF likewise.  The
 *	other types do not change while they are visible; taking them back
 *	waits for an RCU grace period, and every access is an RCU section.
 */
struct sroce_mr {
	struct ib_mr		ibmr;
	enum sroce_mr_type	type;
	u32			key;
	int			access;
	bool			valid;
	u8			shift;
	u64			iova;
	u64			length;
	u64			offset;
	u32			num_chunks;
	u32			max_chunks;
	void			**chunks;
	struct ib_umem		*umem;
	struct sroce_odp	*odp;
	struct sroce_dmabuf	*dmabuf;
	u32			windows;
	bool			retired;
	spinlock_t		lock;	/* see above */
};

/**
 * struct sroce_access - an access to registered memory
 * @pd: the queue pair's protection domain
 * @qpn: its number
 * @key: key
 * @va: address
 * @length: bytes
 * @ahead: bytes from @va on that are about to be accessed, if that is more
 * @whole: all of the region is accessed, whatever @va and @length say
 * @access: permission needed
 * @buf: what is moved
 * @compare: for an atomic, compare and swap
 * @compare_with: its operand
 * @swap_add: its other operand
 */
struct sroce_access {
	struct ib_pd	*pd;
	u32		qpn;
	u32		key;
	u64		va;
	u64		length;
	u64		ahead;
	bool		whole;
	int		access;
	void		*buf;
	bool		compare;
	u64		compare_with;
	u64		swap_add;
};

/* What is done with memory that may be accessed: 0 or an errno */
typedef int sroce_act(const struct sroce_mr *mr, const struct sroce_access *a);

/**
 * struct sroce_sgl - a scatter/gather list, copied from a work request
 * @total: sum of the lengths
 * @num: entries
 * @cur: entry that was used last
 * @cur_start: offset in the message at which
 *	it begins; both only save time
 * @sge: the entries
 *
 * Belongs to a queue pair and is protected by its lock.
 */
struct sroce_sgl {
	u32			total;
	u16			num;
	u16			cur;
	u32			cur_start;
	struct sroce_sge	sge[];
};

static inline struct sroce_mr *to_smr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct sroce_mr, ibmr);
}

struct ib_mr *sroce_get_dma_mr(struct ib_pd *pd, int access);
struct ib_mr *sroce_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg);
int sroce_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		    unsigned int *sg_offset);
struct ib_mr *sroce_reg_dm_mr(struct ib_pd *pd, struct ib_dm *ibdm, struct ib_dm_mr_attr *attr,
			      struct uverbs_attr_bundle *attrs);
int sroce_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

int sroce_mr_register(struct ib_mr *ibmr, struct ib_pd *pd, u32 key, int access);
struct ib_mr *sroce_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start, u64 length, u64 iova,
				  int access, struct ib_pd *pd, struct ib_udata *udata);
int sroce_mr_invalidate(const struct sroce_qp *qp, u32 key);
int sroce_mr_check(const struct sroce_qp *qp, u32 rkey, u64 va, u64 length, int access);
int sroce_mr_copy(const struct sroce_qp *qp, u32 rkey, u64 va, void *buf, u32 length, u32 ahead,
		  int access);
int sroce_mr_atomic(const struct sroce_qp *qp, u32 rkey, u64 va, bool compare,
		    u64 compare_with, u64 swap_add, u64 *original);
int sroce_mr_atomic_write(const struct sroce_qp *qp, u32 rkey, u64 va, u64 value);
int sroce_mr_flush(const struct sroce_qp *qp, u32 rkey, u64 va, u64 length, bool whole,
		   int access);
int sroce_sgl_copy(struct sroce_dev *dev, struct ib_pd *pd, struct sroce_sgl *sgl,
		   u32 offset, void *buf, u32 length, int access);
int sroce_sgl_load(struct sroce_sgl *sgl, u32 max, const struct sroce_sge *from, u32 num);

#endif /* SROCE_MR_H */
