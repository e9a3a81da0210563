/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The RDMA device and its one port */
#ifndef SROCE_DEVICE_H
#define SROCE_DEVICE_H

#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/sroce-abi.h>
#include "compat.h"
#include "congestion.h"
#include "stats.h"
#include "wire.h"

#define SROCE_PORT		1
#define SROCE_GID_TABLE		128
#define SROCE_PKEY_TABLE	1
#define SROCE_MAX_QP		1048576
#define SROCE_MAX_CQ		1048576
#define SROCE_MAX_SRQ		262144
#define SROCE_MAX_PD		1048576
#define SROCE_MAX_AH		1048576
#define SROCE_MAX_MR		8388607
#define SROCE_MAX_MW		8388607
#define SROCE_MAX_DM		(16 << 20)
#define SROCE_MAX_CQE		4194303
#define SROCE_MAX_WR		65536
#define SROCE_MAX_SGE		32
#define SROCE_MAX_INLINE	(SROCE_MAX_SGE * 16)
#define SROCE_MAX_RD_ATOMIC	128
#define SROCE_MAX_MCAST_GRP	8192
#define SROCE_MAX_MCAST_ATTACH	256
#define SROCE_MAX_FAST_REG_PAGES	512
#define SROCE_MAX_MESSAGE	0x80000000u

#define SROCE_ACCESS_SUPPORTED \
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | \
	 IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_MW_BIND | IB_ZERO_BASED | IB_ACCESS_HUGETLB | \
	 IB_ACCESS_OPTIONAL)

/* On demand, with the core's help if the kernel has it */
#define SROCE_ACCESS_DEMAND \
	(IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING) ? IB_ACCESS_ON_DEMAND : 0)

/* FLUSH of memory: of a kernel user's, there is no need */
#define SROCE_ACCESS_FLUSH	(SROCE_ACCESS_FLUSH_GLOBAL | SROCE_ACCESS_FLUSH_PERSISTENT)

/* What can be granted to a queue pair's peer, and by a region of user memory */
#define SROCE_ACCESS_GRANTED \
	(SROCE_ACCESS_SUPPORTED | SROCE_ACCESS_DEMAND | SROCE_ACCESS_FLUSH)

struct sroce_qp;

/**
 * struct sroce_dev - an RDMA device over a net device
 * @ibdev: the core's part
 * @netdev: the net device; cleared, under rtnl, when it is unregistered.
 *	Readers are in an RCU section.
 * @netdev_tracker: of the reference that @netdev holds
 * @list: in the list of devices that have a net device
 * @all: in the list of all devices
 * @state: the port's state that was reported last, under rtnl
 * @rescan: lets the core look for addresses, where it does not do so by itself
 * @counters: per CPU
 * @bound_counters: how much of it queue pairs counted that are bound to a counter of
 *	their own
 * @counter_sets: what these counters have, by their number
 * @counter_next: where to look for a free one
 * @mrs: memory regions by index, RCU
 * @mr_next: where to look for a free one
 * @mws: memory windows by index, RCU
 * @mw_next: likewise
 * @ahs: address vectors by number, RCU
 * @ah_next: likewise
 * @gsi: the queue pair of the general services, number 1, RCU
 * @dm_bytes: device memory in use
 * @held: memory that packets before their turn take, bytes
 * @srq_number: number of the last SRQ
 * @congestion: parameters of congestion control
 * @flows: flow steering rules in the order in which they count; changed under rtnl,
 *	readers are in an RCU section
 * @flow_count: how many there are, under rtnl
 * @flow_hook: where frames are taken from the net device while there are any, likewise
 */
struct sroce_dev {
	struct ib_device		ibdev;
	struct net_device __rcu		*netdev;
	netdevice_tracker		netdev_tracker;
	struct list_head		list;
	struct list_head		all;
	enum ib_port_state		state;
	struct work_struct		rescan;
	struct sroce_counters __percpu	*counters;
	struct sroce_counters __percpu	*bound_counters;
	struct xarray			counter_sets;
	u32				counter_next;
	struct xarray			mrs;
	u32				mr_next;
	struct xarray			mws;
	u32				mw_next;
	struct xarray			ahs;
	u32				ah_next;
	struct sroce_qp __rcu		*gsi;
	atomic64_t			dm_bytes;
	atomic_long_t			held;
	atomic_t			srq_number;
	struct sroce_congestion_parameters congestion;
	struct list_head		flows;
	u32				flow_count;
	struct nf_hook_ops		flow_hook;
};

static inline struct sroce_dev *to_sdev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct sroce_dev, ibdev);
}

/*
 * Everything is counted with softirqs disabled, and nothing in hard interrupts:
 * where this_cpu_add() would disable interrupts there is no need to.
 */
static inline void sroce_count_add(struct sroce_dev *dev, enum sroce_counter counter, u64 n)
{
	__this_cpu_add(dev->counters->value[counter], n);
}

static inline void sroce_count(struct sroce_dev *dev, enum sroce_counter counter)
{
	sroce_count_add(dev, counter, 1);
}

/**
 * struct sroce_ucontext - a user's open device
 * @ibuc: the core's part
 * @ext: enum sroce_ext, as granted when it was opened
 */
struct sroce_ucontext {
	struct ib_ucontext	ibuc;
	u32			ext;
};

int sroce_device_create(const char *name, struct net_device *netdev);
void sroce_device_remove_all(void);

#endif /* SROCE_DEVICE_H */
