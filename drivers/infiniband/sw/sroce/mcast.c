// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Multicast groups of datagram queue pairs (IBA volume 1, 10.5).  Groups are
 * named by MGID.  While a queue pair is attached, the net device is a member of
 * the IP group, so that the stack delivers its datagrams.
 */
#include <linux/hashtable.h>
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/jhash.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include "device.h"
#include "mcast.h"
#include "qp.h"

/**
 * struct sroce_member - a queue pair's membership of a group
 * @node: in the table of all; readers are in an RCU section
 * @rcu: frees it
 * @addr: group, an IPv4 one mapped
 * @qp: queue pair; it is detached before it is destroyed
 * @number: order in which they were attached, from 1
 */
struct sroce_member {
	struct hlist_node	node;
	struct rcu_head		rcu;
	struct in6_addr		addr;
	struct sroce_qp		*qp;
	u32			number;
};

static DEFINE_HASHTABLE(sroce_members, 8);
static u32 sroce_member_number;	/* both changed under rtnl */

static u32 sroce_group_hash(const struct in6_addr *addr)
{
	return jhash2((const u32 *)addr->s6_addr32, 4, 0);
}

static struct sroce_member *sroce_member_find(const struct sroce_qp *qp,
					      const struct in6_addr *addr)
{
	struct sroce_member *m;

	hash_for_each_possible(sroce_members, m, node, sroce_group_hash(addr))
		if (m->qp == qp && ipv6_addr_equal(&m->addr, addr))
			return m;
	return NULL;
}

static u32 sroce_group_size(const struct sroce_dev *dev, const struct in6_addr *addr)
{
	struct sroce_member *m;
	u32 n = 0;

	hash_for_each_possible(sroce_members, m, node, sroce_group_hash(addr))
		n += m->qp->dev == dev && ipv6_addr_equal(&m->addr, addr);
	return n;
}

/* The net device joins the IP group */
static int sroce_group_join(struct sroce_dev *dev, const struct in6_addr *addr)
{
	struct net_device *netdev = rtnl_dereference(dev->netdev);
	struct in_device *in_dev;

	if (!netdev)
		return -ENODEV;
	if (!ipv6_addr_v4mapped(addr))
#if IS_ENABLED(CONFIG_IPV6)
		return ipv6_dev_mc_inc(netdev, addr);
#else
		return -EAFNOSUPPORT;
#endif
	in_dev = __in_dev_get_rtnl(netdev);
	if (!in_dev)
		return -ENODEV;
	ip_mc_inc_group(in_dev, addr->s6_addr32[3]);
	return 0;
}

static void sroce_group_leave(struct sroce_dev *dev, const struct in6_addr *addr)
{
	struct net_device *netdev = rtnl_dereference(dev->netdev);
	struct in_device *in_dev;

	if (!netdev)
		return;
	if (!ipv6_addr_v4mapped(addr)) {
#if IS_ENABLED(CONFIG_IPV6)
		ipv6_dev_mc_dec(netdev, addr);
#endif
		return;
	}
	in_dev = __in_dev_get_rtnl(netdev);
	if (in_dev)
		ip_mc_dec_group(in_dev, addr->s6_addr32[3]);
}

static void sroce_member_remove(struct sroce_member *m)
{
	struct sroce_dev *dev = m->qp->dev;

	hash_del_rcu(&m->node);
	if (!sroce_group_size(dev, &m->addr))
		sroce_group_leave(dev, &m->addr);
	kfree_rcu(m, rcu);
}

/**
 * sroce_attach_mcast - ib_device_ops.attach_mcast
 * @ibqp: UD queue pair
 * @gid: group
 * @lid: means nothing to RoCE
 *
 * Context: process.  Return: 0, also when it is attached already; -EINVAL;
 * -ENOMEM, also when the group is full; -ENODEV.
 */
int sroce_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	const struct in6_addr *addr = (const struct in6_addr *)gid;
	struct sroce_qp *qp = to_sqp(ibqp);
	struct sroce_member *m;
	u32 size;
	int err = 0;

	if (!sroce_qp_is_datagram(qp))
		return -EINVAL;
	m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	if (!m)
		return -ENOMEM;
	m->addr = *addr;
	m->qp = qp;

	rtnl_lock();
	size = sroce_group_size(qp->dev, addr);
	if (sroce_member_find(qp, addr))
		goto out_free;
	err = size >= SROCE_MAX_MCAST_ATTACH ? -ENOMEM : 0;
	if (!err && !size)
		err = sroce_group_join(qp->dev, addr);
	if (err)
		goto out_free;
	m->number = ++sroce_member_number;
	hash_add_rcu(sroce_members, &m->node, sroce_group_hash(addr));
	rtnl_unlock();
	return 0;

out_free:
	rtnl_unlock();
	kfree(m);
	return err;
}

/**
 * sroce_detach_mcast - ib_device_ops.detach_mcast
 * @ibqp: queue pair
 * @gid: group
 * @lid: means nothing to RoCE
 *
 * Context: process.  Return: 0 or -EINVAL when it is not attached.
 */
int sroce_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct sroce_member *m;

	rtnl_lock();
	m = sroce_member_find(to_sqp(ibqp), (const struct in6_addr *)gid);
	if (m)
		sroce_member_remove(m);
	rtnl_unlock();
	return m ? 0 : -EINVAL;
}

/**
 * sroce_mcast_detach_all - detach a queue pair from all its groups
 * @qp: queue pair about to be destroyed
 *
 * Context: process.
 */
void sroce_mcast_detach_all(struct sroce_qp *qp)
{
	struct sroce_member *m;
	struct hlist_node *next;
	int bucket;

	if (!sroce_qp_is_datagram(qp) || !atomic_read(&qp->ibqp.usecnt))
		return;
	rtnl_lock();
	hash_for_each_safe(sroce_members, bucket, next, m, node)
		if (m->qp == qp)
			sroce_member_remove(m);
	rtnl_unlock();
}

/* Is the device's net device in this namespace? */
static bool sroce_in_net(const struct sroce_dev *dev, const struct net *net)
{
	struct net_device *netdev = rcu_dereference(dev->netdev);

	return netdev && dev_net(netdev) == net;
}

/**
 * sroce_mcast_find - the next queue pair of a group
 * @net: namespace that a packet came in
 * @addr: group
 * @after: what the last call returned, 0 for the first
 * @qp: where to put the queue pair, with a reference of the caller's
 *
 * Context: RCU read section.  Return: 0 when there is none.
 */
u32 sroce_mcast_find(const struct net *net, const struct in6_addr *addr, u32 after,
		     struct sroce_qp **qp)
{
	struct sroce_member *m, *best = NULL;

	hash_for_each_possible_rcu(sroce_members, m, node, sroce_group_hash(addr))
		if (m->number > after && (!best || m->number < best->number) &&
		    ipv6_addr_equal(&m->addr, addr) && sroce_in_net(m->qp->dev, net))
			best = m;
	if (!best)
		return 0;
	if (!kref_get_unless_zero(&best->qp->ref))
		return sroce_mcast_find(net, addr, best->number, qp);
	*qp = best->qp;
	return best->number;
}
