/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Every difference between the kernels that sroce builds for, 6.1 to 7.2 */
#ifndef SROCE_COMPAT_H
#define SROCE_COMPAT_H

#include <linux/crc32.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/shrinker.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/timer.h>
#include <linux/version.h>
#include <net/flow.h>
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#include <net/gso.h>
#endif
#include <net/inet_dscp.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

/*
 * crc32_le() is vectorised from 6.15 on; before that only the crypto layer's
 * "crc32" is (crc32.c has the rest of this).
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
static inline int sroce_crc32_init(void)
{
	return 0;
}

static inline void sroce_crc32_exit(void)
{
}

static inline u32 sroce_crc32(u32 crc, const void *data, size_t len)
{
	return crc32_le(crc, data, len);
}
#else
int sroce_crc32_init(void);
void sroce_crc32_exit(void);
u32 sroce_crc32_update(u32 crc, const void *data, size_t len);

static inline u32 sroce_crc32(u32 crc, const void *data, size_t len)
{
	if (len < 128)
		return crc32_le(crc, data, len);
	return sroce_crc32_update(crc, data, len);
}
#endif

/* del_timer_sync() and friends were renamed; the containers' macro in 6.16 */
#ifndef timer_container_of
#define timer_container_of(var, timer, field) from_timer(var, timer, field)
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}
#endif

/* From 6.13 on a timer and its function are set up in one */
static inline void sroce_hrtimer_setup(struct hrtimer *timer,
				       enum hrtimer_restart (*function)(struct hrtimer *timer),
				       enum hrtimer_mode mode)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, function, CLOCK_MONOTONIC, mode);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, mode);
	timer->function = function;
#endif
}

/* From 6.7 on the kernel allocates shrinkers; before that their users do */
typedef unsigned long sroce_shrink(struct shrinker *shrinker, struct shrink_control *sc);

static inline struct shrinker *sroce_shrinker_register(const char *name, sroce_shrink *count,
						       sroce_shrink *scan)
{
	struct shrinker *shrinker;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
	shrinker = shrinker_alloc(0, "%s", name);
#else
	shrinker = kzalloc(sizeof(*shrinker), GFP_KERNEL);
#endif
	if (!shrinker)
		return NULL;
	shrinker->count_objects = count;
	shrinker->scan_objects = scan;
	shrinker->seeks = DEFAULT_SEEKS;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
	shrinker_register(shrinker);
#else
	if (register_shrinker(shrinker, "%s", name)) {
		kfree(shrinker);
		return NULL;
	}
#endif
	return shrinker;
}

static inline void sroce_shrinker_unregister(struct shrinker *shrinker)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
	shrinker_free(shrinker);
#else
	unregister_shrinker(shrinker);
	kfree(shrinker);
#endif
}

/* From 6.10 on a tracepoint remembers from where its strings are */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define sroce_assign_str(to, from)	__assign_str(to)
#else
#define sroce_assign_str(to, from)	__assign_str(to, from)
#endif

/* 6.17 wants to be told that a workqueue is per CPU */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define SROCE_WQ_PERCPU		WQ_PERCPU
#else
#define SROCE_WQ_PERCPU		0
#endif

/* From 6.11 on a frame's time is of one of several clocks */
static inline void sroce_skb_set_departure(struct sk_buff *skb, ktime_t departs)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
	skb_set_delivery_time(skb, departs, SKB_CLOCK_MONOTONIC);
#else
	skb_set_delivery_time(skb, departs, true);
#endif
}

static inline void sroce_flowi4_set_tos(struct flowi4 *fl4, u8 tos)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
	fl4->flowi4_dscp = inet_dsfield_to_dscp(tos);
#else
	fl4->flowi4_tos = tos & INET_DSCP_MASK;
#endif
}

/*
 * Operations whose arguments changed: the driver's own take what all kernels
 * have, and the kernel gets these.
 *
 * create_cq() is given its udata by itself, or from 6.11 on in a bundle.
 */
int sroce_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct ib_udata *udata);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
static inline int sroce_op_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
				     struct uverbs_attr_bundle *attrs)
{
	return sroce_create_cq(ibcq, attr, attrs ? &attrs->driver_udata : NULL);
}
#else
#define sroce_op_create_cq sroce_create_cq
#endif

/* 7.x: reg_user_mr() has a DMA handle, resize_cq() is resize_user_cq() and unsigned */
struct ib_mr *sroce_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access,
				struct ib_udata *udata);
int sroce_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
static inline struct ib_mr *sroce_op_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova,
						 int access, struct ib_dmah *dmah,
						 struct ib_udata *udata)
{
	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	return sroce_reg_user_mr(pd, start, length, iova, access, udata);
}

static inline int sroce_op_resize_cq(struct ib_cq *ibcq, unsigned int cqe, struct ib_udata *udata)
{
	return cqe > S32_MAX ? -EINVAL : sroce_resize_cq(ibcq, cqe, udata);
}

#define SROCE_OP_RESIZE_CQ	.resize_user_cq
#else
#define sroce_op_reg_user_mr	sroce_reg_user_mr
#define sroce_op_resize_cq	sroce_resize_cq
#define SROCE_OP_RESIZE_CQ	.resize_cq
#endif

/* From 6.17 on the core names the port and allocates counters with the driver's part */
int sroce_counter_bind(struct rdma_counter *counter, struct ib_qp *ibqp);
int sroce_counter_unbind(struct ib_qp *ibqp);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
struct sroce_rdma_counter {
	struct rdma_counter	rdma_counter;
};

static inline int sroce_op_counter_bind(struct rdma_counter *counter, struct ib_qp *ibqp, u32 port)
{
	return sroce_counter_bind(counter, ibqp);
}

static inline int sroce_op_counter_unbind(struct ib_qp *ibqp, u32 port)
{
	return sroce_counter_unbind(ibqp);
}

/* The core calls it without asking whether there is one; all of ours is made at the first bind */
static inline void sroce_op_counter_init(struct rdma_counter *counter)
{
}

#define SROCE_COUNTER_OBJ_SIZE \
	INIT_RDMA_OBJ_SIZE(rdma_counter, sroce_rdma_counter, rdma_counter), \
	.counter_init = sroce_op_counter_init,
#else
#define sroce_op_counter_bind	sroce_counter_bind
#define sroce_op_counter_unbind	sroce_counter_unbind
#define SROCE_COUNTER_OBJ_SIZE
#endif

/* Later kernels show drivers' details of SRQs too */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#define SROCE_OP_FILL_SRQ	.fill_res_srq_entry = sroce_fill_srq,
#else
#define SROCE_OP_FILL_SRQ
#endif

/* The last arguments of reg_user_mr_dmabuf(), of which none is used */
struct ib_mr *sroce_reg_dmabuf_mr(struct ib_pd *pd, u64 offset, u64 length, u64 iova, int fd,
				  int access);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
static inline struct ib_mr *sroce_op_reg_dmabuf_mr(struct ib_pd *pd, u64 offset, u64 length,
						   u64 iova, int fd, int access,
						   struct ib_dmah *dmah,
						   struct uverbs_attr_bundle *attrs)
{
	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	return sroce_reg_dmabuf_mr(pd, offset, length, iova, fd, access);
}
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
static inline struct ib_mr *sroce_op_reg_dmabuf_mr(struct ib_pd *pd, u64 offset, u64 length,
						   u64 iova, int fd, int access,
						   struct uverbs_attr_bundle *attrs)
{
	return sroce_reg_dmabuf_mr(pd, offset, length, iova, fd, access);
}
#else
static inline struct ib_mr *sroce_op_reg_dmabuf_mr(struct ib_pd *pd, u64 offset, u64 length,
						   u64 iova, int fd, int access,
						   struct ib_udata *udata)
{
	return sroce_reg_dmabuf_mr(pd, offset, length, iova, fd, access);
}
#endif

/*
 * dma-buf: from 6.2 on vmap comes without and with the lock held, from 6.13 on the name of
 * a symbols' namespace is a string, and in 7.x what tells of a revocation has another name.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
#define sroce_dma_buf_vmap	dma_buf_vmap_unlocked
#define sroce_dma_buf_vunmap	dma_buf_vunmap_unlocked
#else
#define sroce_dma_buf_vmap	dma_buf_vmap
#define sroce_dma_buf_vunmap	dma_buf_vunmap
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define SROCE_IMPORT_DMA_BUF	MODULE_IMPORT_NS("DMA_BUF")
#else
#define SROCE_IMPORT_DMA_BUF	MODULE_IMPORT_NS(DMA_BUF)
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
#define SROCE_DMABUF_INVALIDATE	.invalidate_mappings
#else
#define SROCE_DMABUF_INVALIDATE	.move_notify
#endif

/* 7.x: memory named by a user address is one kind of several */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
#define sroce_umem_get		ib_umem_get_va
#else
#define sroce_umem_get		ib_umem_get
#endif

/* 7.x: the speed of a port in units of 100 Mb/s, which libibverbs asks for by itself */
int sroce_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0)
static inline int sroce_op_query_port_speed(struct ib_device *ibdev, u32 port, u64 *speed)
{
	struct ib_port_speed_info info = {};
	struct ib_port_attr attr = {};
	int err;

	err = sroce_query_port(ibdev, port, &attr);
	if (!err && attr.state != IB_PORT_DOWN)
		err = ib_port_attr_to_speed_info(&attr, &info);
	*speed = info.rate;
	return err;
}

#define SROCE_OP_QUERY_PORT_SPEED	.query_port_speed = sroce_op_query_port_speed,
#else
#define SROCE_OP_QUERY_PORT_SPEED
#endif

/* A work queue for what may take long, not bound to a CPU */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define SROCE_UNBOUND_WQ	system_dfl_wq
#else
#define SROCE_UNBOUND_WQ	system_unbound_wq
#endif

/* From 6.16 on HMM's flags say how a page on demand may be accessed */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#define sroce_odp_pfns(umem)	((umem)->map.pfn_list)
#define sroce_odp_access(write)	((write) ? HMM_PFN_WRITE : 0)
#else
#define sroce_odp_pfns(umem)	((umem)->pfn_list)
#define sroce_odp_access(write)	\
	(ODP_READ_ALLOWED_BIT | ((write) ? ODP_WRITE_ALLOWED_BIT : 0))
#endif

/*
 * Atomic write and FLUSH are known to the kernel from 6.2 on, to user space by these
 * numbers.  An older one does not let regions grant FLUSH.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
#define SROCE_KERNEL_HAS_FLUSH
#define SROCE_DEVICE_FLUSH	(IB_DEVICE_FLUSH_GLOBAL | IB_DEVICE_FLUSH_PERSISTENT)
#else
#define SROCE_DEVICE_FLUSH	0
#endif
#define SROCE_ODP_SUPPORT_FLUSH		BIT(6)
#define SROCE_ODP_SUPPORT_ATOMIC_WRITE	BIT(7)
#define SROCE_WR_FLUSH			14
#define SROCE_WC_FLUSH			((enum ib_wc_opcode)8)
#define SROCE_ACCESS_FLUSH_GLOBAL	BIT(8)
#define SROCE_ACCESS_FLUSH_PERSISTENT	BIT(9)
#define SROCE_WR_ATOMIC_WRITE		15
#define SROCE_WC_ATOMIC_WRITE		((enum ib_wc_opcode)9)
#define SROCE_DEVICE_ATOMIC_WRITE	BIT_ULL(40)

/*
 * From 6.16 on a device is born in a net namespace, where the RDMA subsystem is
 * not in shared mode; before that always in the first one, and is moved
 * before anybody can see it.  Only in shared mode is a device of the first
 * namespace accessible from another one.
 */
#ifdef ib_alloc_device_with_net
#define sroce_ib_alloc_device(type, member, net)	ib_alloc_device_with_net(type, member, net)

static inline void sroce_ib_device_set_net(struct ib_device *ibdev, struct net *net)
{
}
#else
#define sroce_ib_alloc_device(type, member, net)	ib_alloc_device(type, member)

static inline void sroce_ib_device_set_net(struct ib_device *ibdev, struct net *net)
{
	if (!rdma_dev_access_netns(ibdev, net))
		write_pnet(&ibdev->coredev.rdma_net, net);
}
#endif

/* Before 6.12 the addresses of a net device can only be added to */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
#define sroce_del_netdev_gids	roce_del_all_netdev_gids
#else
static inline void sroce_del_netdev_gids(struct ib_device *ibdev, u32 port,
					 struct net_device *netdev)
{
}
#endif

#endif /* SROCE_COMPAT_H */
