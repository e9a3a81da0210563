/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * sroce.h - the provider's objects.  Each begins with what libibverbs knows of it.
 *
 * What all files agree on: verbs that return an int return 0 or a positive errno,
 * those that return a pointer set errno.
 */
#ifndef SROCE_H
#define SROCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/driver.h>
#include <ccan/container_of.h>
#include <util/compiler.h>
#include "sroce-abi.h"

/* What the provider asks for when it opens a device */
#define SROCE_EXT_WANTED (SROCE_EXT_DOORBELL | SROCE_EXT_CQE | SROCE_EXT_USER_RINGS)

/**
 * struct sroce_lock - a lock that whoever promised not to need it does not pay for
 * @spin: the lock
 * @off: the object is used by one thread at a time
 */
struct sroce_lock {
	pthread_spinlock_t	spin;
	bool			off;
};

struct sroce_context {
	struct verbs_context	ibv;
	uint32_t		ext;		/* enum sroce_ext, as granted */
};

/**
 * struct sroce_td - a thread domain: its objects are used by one thread at a time
 * @ibv: libibverbs' part
 * @uses: parent domains that name it
 */
struct sroce_td {
	struct ibv_td		ibv;
	atomic_int		uses;
};

/**
 * struct sroce_pd - a protection domain, or a parent domain above one
 * @ibv: libibverbs' part
 * @uses: parent domains that name it; of a parent domain, CQs that do, and queues in
 *	memory from its allocator
 * @base: for a parent domain, the protection domain; else NULL
 * @td: its thread domain, or NULL
 * @alloc: its allocator of memory for queues, or NULL
 * @free: the reverse
 * @pd_context: what both are given
 */
struct sroce_pd {
	struct ibv_pd		ibv;
	atomic_int		uses;
	struct sroce_pd		*base;
	struct sroce_td		*td;
	void			*(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size,
					  size_t alignment, uint64_t resource_type);
	void			(*free)(struct ibv_pd *pd, void *pd_context, void *ptr,
					uint64_t resource_type);
	void			*pd_context;
};

/* What a parent domain's allocator is told that the memory is for */
enum sroce_resource_type {
	SROCE_RESOURCE_SQ = 1,
	SROCE_RESOURCE_RQ,
	SROCE_RESOURCE_SRQ,
	SROCE_RESOURCE_CQ,
};

/**
 * struct sroce_ring - a ring that is shared with the kernel
 * @queue: the shared memory, NULL when there is no ring
 * @size: bytes of it
 * @pd: parent domain whose allocator it is from; NULL: it is the kernel's, mapped
 * @type: what the allocator was told
 * @mask: number of elements less one
 * @index: our side: producer of work requests, consumer of completions
 * @other: the kernel's side, as it was when we looked last
 * @shift: log2 of an element's size
 */
struct sroce_ring {
	struct sroce_queue		*queue;
	size_t				size;
	struct sroce_pd			*pd;
	enum sroce_resource_type	type;
	uint32_t			mask;
	uint32_t			index;
	uint32_t			other;
	uint8_t				shift;
};

/**
 * struct sroce_cq - a completion queue
 * @ibv: libibverbs' part
 * @lock: protects what follows
 * @ring: completions
 * @pd: parent domain that it was created with, or NULL
 * @cqe: between start_poll and end_poll, the current completion
 */
struct sroce_cq {
	struct verbs_cq		ibv;
	struct sroce_lock	lock;
	struct sroce_ring	ring;
	struct sroce_pd		*pd;
	const struct sroce_cqe	*cqe;
};

/**
 * struct sroce_rq - a queue of receive work requests
 * @lock: protects what follows
 * @ring: work requests
 * @max_sge: scatter entries of one
 */
struct sroce_rq {
	struct sroce_lock	lock;
	struct sroce_ring	ring;
	uint32_t		max_sge;
};

struct sroce_srq {
	struct verbs_srq	ibv;
	struct sroce_rq		rq;
	uint32_t		number;
};

/**
 * struct sroce_sq - a send queue
 * @lock: protects what follows
 * @ring: work requests
 * @max_sge: gather entries of one
 * @max_inline: bytes of inline data
 * @next: where the next work request goes; what is from @ring.index up to here is
 *	being built and not yet given to the kernel
 * @wqe: work request that is being built; NULL after an error
 * @err: that error
 */
struct sroce_sq {
	struct sroce_lock	lock;
	struct sroce_ring	ring;
	uint32_t		max_sge;
	uint32_t		max_inline;
	uint32_t		next;
	struct sroce_send_wqe	*wqe;
	int			err;
};

struct sroce_qp {
	struct verbs_qp		ibv;
	struct sroce_sq		sq;
	struct sroce_rq		rq;
	bool			sig_all;
};

/**
 * struct sroce_dm - device memory
 * @ibv: libibverbs' part
 * @memory: where it is mapped
 * @size: bytes that are mapped
 * @length: bytes that were asked for
 */
struct sroce_dm {
	struct verbs_dm		ibv;
	void			*memory;
	size_t			size;
	uint64_t		length;
};

struct sroce_ah {
	struct ibv_ah		ibv;
	uint32_t		number;
};

#define SROCE_TO(type, member)							\
	static inline struct sroce_##type *to_s##type(struct ibv_##type *ibv)	\
	{									\
		return container_of(ibv, struct sroce_##type, member);		\
	}

SROCE_TO(context, ibv.context)
SROCE_TO(td, ibv)
SROCE_TO(pd, ibv)
SROCE_TO(cq, ibv.cq)
SROCE_TO(srq, ibv.srq)
SROCE_TO(qp, ibv.qp)
SROCE_TO(dm, ibv.dm)
SROCE_TO(ah, ibv)

static inline struct sroce_cq *cq_ex_to_scq(struct ibv_cq_ex *ibv)
{
	return container_of(ibv, struct sroce_cq, ibv.cq_ex);
}

static inline struct sroce_qp *qp_ex_to_sqp(struct ibv_qp_ex *ibv)
{
	return container_of(ibv, struct sroce_qp, ibv.qp_ex);
}

static inline void sroce_lock_init(struct sroce_lock *lock, const struct sroce_pd *pd)
{
	pthread_spin_init(&lock->spin, PTHREAD_PROCESS_PRIVATE);
	lock->off = pd && pd->td;
}

static inline void sroce_lock_take(struct sroce_lock *lock)
{
	if (likely(!lock->off))
		pthread_spin_lock(&lock->spin);
}

static inline void sroce_lock_drop(struct sroce_lock *lock)
{
	if (likely(!lock->off))
		pthread_spin_unlock(&lock->spin);
}

/* ring.c */
int sroce_ring_reserve(struct sroce_ring *ring, struct sroce_pd *pd,
		       enum sroce_resource_type type, uint32_t elements, size_t element_size,
		       struct sroce_user_ring *user);
int sroce_ring_attach(struct sroce_ring *ring, struct ibv_context *context,
		      const struct sroce_mmap_info *mi);
void sroce_ring_release(struct sroce_ring *ring);

static inline void *sroce_ring_element(const struct sroce_ring *ring, uint32_t index)
{
	return ring->queue->data + ((size_t)(index & ring->mask) << ring->shift);
}

static inline uint32_t sroce_ring_next(const struct sroce_ring *ring, uint32_t index)
{
	return (index + 1) & ring->mask;
}

static inline uint32_t sroce_load_acquire(const __u32 *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static inline void sroce_store_release(__u32 *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* Is there no room for an element at @index? */
static inline bool sroce_ring_full(struct sroce_ring *ring, uint32_t index)
{
	uint32_t next = sroce_ring_next(ring, index);

	if (likely(next != ring->other))
		return false;
	ring->other = sroce_load_acquire(&ring->queue->consumer_index) & ring->mask;
	return next == ring->other;
}

/* Gives the kernel all elements before @end; true when it has to be called */
static inline bool sroce_ring_produce(struct sroce_ring *ring, uint32_t end, bool doorbell)
{
	uint32_t first = ring->index;
	uint32_t bell;

	ring->index = end;
	sroce_store_release(&ring->queue->producer_index, end);
	if (!doorbell)
		return true;
	/* pairs with the kernel's: it sees the index, or we see the doorbell */
	atomic_thread_fence(memory_order_seq_cst);
	bell = __atomic_load_n(&ring->queue->doorbell, __ATOMIC_RELAXED);
	return bell != SROCE_DOORBELL_NEVER &&
	       ((bell - first) & ring->mask) < ((end - first) & ring->mask);
}

/* pd.c */
struct ibv_pd *sroce_alloc_pd(struct ibv_context *context);
int sroce_dealloc_pd(struct ibv_pd *ibv);
struct ibv_td *sroce_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int sroce_dealloc_td(struct ibv_td *ibv);
struct ibv_pd *sroce_alloc_parent_domain(struct ibv_context *context,
					 struct ibv_parent_domain_init_attr *attr);
struct ibv_pd *sroce_import_pd(struct ibv_context *context, uint32_t handle);
void sroce_unimport_pd(struct ibv_pd *ibv);

/* mr.c */
struct ibv_mr *sroce_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			    int access);
struct ibv_mr *sroce_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
				   uint64_t iova, int fd, int access);
int sroce_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd, void *addr,
		   size_t length, int access);
int sroce_dereg_mr(struct verbs_mr *vmr);
int sroce_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		    struct ibv_sge *sg_list, uint32_t num_sge);
struct ibv_mr *sroce_import_mr(struct ibv_pd *pd, uint32_t handle);
void sroce_unimport_mr(struct ibv_mr *ibv);
struct ibv_mw *sroce_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int sroce_dealloc_mw(struct ibv_mw *mw);

/* dm.c */
struct ibv_dm *sroce_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int sroce_free_dm(struct ibv_dm *ibv);
struct ibv_dm *sroce_import_dm(struct ibv_context *context, uint32_t handle);
void sroce_unimport_dm(struct ibv_dm *ibv);
struct ibv_mr *sroce_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibv, uint64_t offset,
			       size_t length, unsigned int access);

/* cq.c */
struct ibv_cq *sroce_create_cq(struct ibv_context *context, int cqe,
			       struct ibv_comp_channel *channel, int comp_vector);
struct ibv_cq_ex *sroce_create_cq_ex(struct ibv_context *context,
				     struct ibv_cq_init_attr_ex *attr);
int sroce_modify_cq(struct ibv_cq *ibv, struct ibv_modify_cq_attr *attr);
int sroce_resize_cq(struct ibv_cq *ibv, int cqe);
int sroce_destroy_cq(struct ibv_cq *ibv);
void sroce_cq_forget(struct sroce_cq *cq, uint32_t qpn);
int sroce_poll_cq(struct ibv_cq *ibv, int num, struct ibv_wc *wc);

/* srq.c */
struct ibv_srq *sroce_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
struct ibv_srq *sroce_create_srq_ex(struct ibv_context *context,
				    struct ibv_srq_init_attr_ex *attr);
int sroce_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask);
int sroce_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr);
int sroce_destroy_srq(struct ibv_srq *ibv);
int sroce_get_srq_num(struct ibv_srq *ibv, uint32_t *number);
int sroce_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
size_t sroce_recv_wqe_size(uint32_t max_sge);
int sroce_rq_post(struct sroce_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad,
		  bool doorbell, bool *ring);

/* qp.c */
struct ibv_qp *sroce_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *sroce_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *sroce_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
int sroce_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask,
		   struct ibv_qp_init_attr *init);
int sroce_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask);
int sroce_destroy_qp(struct ibv_qp *ibv);
struct ibv_xrcd *sroce_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int sroce_close_xrcd(struct ibv_xrcd *xrcd);

/* post.c */
int sroce_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int sroce_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int sroce_bind_mw(struct ibv_qp *ibv, struct ibv_mw *mw, struct ibv_mw_bind *bind);
struct sroce_send_wqe *sroce_wqe_begin(struct sroce_qp *qp, uint64_t wr_id, uint32_t opcode,
				       uint32_t flags);
void sroce_wqe_set_mw(struct sroce_send_wqe *wqe, const struct ibv_mw *mw, uint32_t rkey,
		      const struct ibv_mw_bind_info *info);
void sroce_wqe_set_sges(struct sroce_sq *sq, const struct ibv_sge *sge, size_t num);
void sroce_wqe_set_inline(struct sroce_sq *sq, const struct ibv_data_buf *buf, size_t num);
int sroce_sq_finish(struct sroce_qp *qp);

/* qp_ex.c */
bool sroce_qp_ex_supports(enum ibv_qp_type type, uint64_t send_ops);
void sroce_qp_ex_prepare(struct sroce_qp *qp);
int sroce_qp_ex_finish(struct sroce_qp *qp, enum ibv_qp_type type, uint64_t ops, bool wanted);

/* flow.c */
struct ibv_flow *sroce_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr);
int sroce_destroy_flow(struct ibv_flow *flow);

/* wq.c */
struct ibv_wq *sroce_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr);
int sroce_modify_wq(struct ibv_wq *ibv, struct ibv_wq_attr *attr);
int sroce_destroy_wq(struct ibv_wq *ibv);
struct ibv_rwq_ind_table *sroce_create_rwq_table(struct ibv_context *context,
						 struct ibv_rwq_ind_table_init_attr *attr);
int sroce_destroy_rwq_table(struct ibv_rwq_ind_table *table);

/* ah.c */
struct ibv_ah *sroce_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int sroce_destroy_ah(struct ibv_ah *ibv);

#endif
