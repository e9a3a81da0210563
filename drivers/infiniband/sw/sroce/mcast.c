// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Multicast groups of datagram queue pairs (IBA volume 1, 10.5).  Groups are
 * named by MGID.  While a queue pair is attached, the net devices that the
 * port's addresses are on (its own, and VLANs and the like above it) are members
 * of the IP group, so that the stack delivers its datagrams.  A queue pair gets
 * what came in by one of these.
 */
#include <linux/hashtable.h>
#include <linux/if_vlan.h>
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/jhash.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include "device.h"
#include "encap.h"
#include "gid.h"
#include "mcast.h"
#include "port.h"
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

/**
 * struct sroce_join - a net device's membership of an IP group
 * @node: in the table of all; readers are in an RCU section
 * @rcu: frees it
 * @addr: group, an IPv4 one mapped
 * @dev: device that has queue pairs attached to the group
 * @netdev: net device; the record does not outlive its registration
 * @net: namespace that it is in
 * @ifindex: its index there
 * @vlan_id: its VLAN, or 0xffff
 */
struct sroce_join {
	struct hlist_node	node;
	struct rcu_head		rcu;
	struct in6_addr		addr;
	struct sroce_dev	*dev;
	struct net_device	*netdev;
	const struct net	*net;
	int			ifindex;
	u16			vlan_id;
};

/* Both tables are changed under rtnl */
static DEFINE_HASHTABLE(sroce_members, 8);
static DEFINE_HASHTABLE(sroce_joins, 8);
static u32 sroce_member_number;		/* under rtnl */
static unsigned int sroce_member_count;	/* changed under rtnl */

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

/* The IP stack's part: the net device becomes a member */
static int sroce_ip_join(struct net_device *netdev, const struct in6_addr *addr)
{
	struct in_device *in_dev;

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

static void sroce_ip_leave(struct net_device *netdev, const struct in6_addr *addr)
{
	struct in_device *in_dev;

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

/* Has the net device lost all its memberships, as when its MTU gets too small for IP? */
static bool sroce_ip_forgot(const struct net_device *netdev, const struct in6_addr *addr)
{
	if (ipv6_addr_v4mapped(addr))
		return !__in_dev_get_rtnl(netdev);
#if IS_ENABLED(CONFIG_IPV6)
	return !__in6_dev_get(netdev);
#else
	return true;
#endif
}

static struct sroce_join *sroce_join_find(const struct sroce_dev *dev, const struct in6_addr *addr,
					  const struct net_device *netdev)
{
	struct sroce_join *j;

	hash_for_each_possible(sroce_joins, j, node, sroce_group_hash(addr))
		if (j->dev == dev && j->netdev == netdev && ipv6_addr_equal(&j->addr, addr))
			return j;
	return NULL;
}

static int sroce_join(struct sroce_dev *dev, const struct in6_addr *addr, struct net_device *netdev)
{
	struct sroce_join *j;
	int err;

	if (netdev->reg_state != NETREG_REGISTERED)
		return -ENODEV;
	if (sroce_join_find(dev, addr, netdev))
		return 0;
	j = kzalloc(sizeof(*j), GFP_KERNEL);
	if (!j)
		return -ENOMEM;
	err = sroce_ip_join(netdev, addr);
	if (err) {
		kfree(j);
		return err;
	}
	j->addr = *addr;
	j->dev = dev;
	j->netdev = netdev;
	j->net = dev_net(netdev);
	j->ifindex = netdev->ifindex;
	j->vlan_id = is_vlan_dev(netdev) ? vlan_dev_vlan_id(netdev) : 0xffff;
	hash_add_rcu(sroce_joins, &j->node, sroce_group_hash(addr));
	return 0;
}

static void sroce_join_drop(struct sroce_join *j)
{
	hash_del_rcu(&j->node);
	kfree_rcu(j, rcu);
}

static void sroce_leave(struct sroce_join *j)
{
	sroce_ip_leave(j->netdev, &j->addr);
	sroce_join_drop(j);
}

/*
 * Every net device of the port joins, if it has not yet.  Return: 0 if there is any
 * that did, else what the port's own one says.
 */
static int sroce_group_join(struct sroce_dev *dev, const struct in6_addr *addr)
{
	struct net_device *own = rtnl_dereference(dev->netdev);
	struct net_device *netdev = NULL;
	int err = own ? sroce_join(dev, addr, own) : -ENODEV;

	while ((netdev = sroce_gid_next_netdev(dev, netdev))) {
		if (netdev != own && !sroce_join(dev, addr, netdev))
			err = 0;
		dev_put(netdev);	/* from here on only compared */
	}
	return err;
}

static void sroce_group_leave(struct sroce_dev *dev, const struct in6_addr *addr)
{
	struct hlist_node *next;
	struct sroce_join *j;

	hash_for_each_possible_safe(sroce_joins, j, next, node, sroce_group_hash(addr))
		if (j->dev == dev && ipv6_addr_equal(&j->addr, addr))
			sroce_leave(j);
}

/* Join where addresses have come, leave where they have gone */
static void sroce_mcast_sync(struct work_struct *work)
{
	struct sroce_member *m;
	struct hlist_node *next;
	struct sroce_join *j;
	int bucket;

	rtnl_lock();
	hash_for_each(sroce_members, bucket, m, node)
		sroce_group_join(m->qp->dev, &m->addr);
	hash_for_each_safe(sroce_joins, bucket, next, j, node)
		if (j->netdev != rtnl_dereference(j->dev->netdev) &&
		    !sroce_gid_on_netdev(j->dev, j->netdev))
			sroce_leave(j);
	rtnl_unlock();
}

static DECLARE_WORK(sroce_mcast_work, sroce_mcast_sync);

/**
 * sroce_mcast_refresh - addresses have come or gone: join or leave soon
 *
 * Context: any.
 */
void sroce_mcast_refresh(void)
{
	if (READ_ONCE(sroce_member_count))
		schedule_work(&sroce_mcast_work);
}

/**
 * sroce_mcast_exit - there is no queue pair any more
 *
 * Context: process, sleeps.
 */
void sroce_mcast_exit(void)
{
	cancel_work_sync(&sroce_mcast_work);
}

/**
 * sroce_mcast_netdev_event - something happened to a net device
 * @netdev: net device, any
 * @event: NETDEV_...
 *
 * The stack drops all memberships of a net device that is unregistered, that
 * moves to another net namespace, or whose MTU gets too small for IP.
 * Context: rtnl.
 */
void sroce_mcast_netdev_event(struct net_device *netdev, unsigned long event)
{
	struct hlist_node *next;
	struct sroce_join *j;
	int bucket;

	if (!sroce_member_count)
		return;
	hash_for_each_safe(sroce_joins, bucket, next, j, node)
		if (j->netdev == netdev &&
		    (event == NETDEV_UNREGISTER || sroce_ip_forgot(netdev, &j->addr)))
			sroce_join_drop(j);
	if (event == NETDEV_REGISTER || event == NETDEV_UP || event == NETDEV_CHANGEMTU)
		sroce_mcast_refresh();
}

static void sroce_member_remove(struct sroce_member *m)
{
	struct sroce_dev *dev = m->qp->dev;

	hash_del_rcu(&m->node);
	WRITE_ONCE(sroce_member_count, sroce_member_count - 1);
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
	WRITE_ONCE(sroce_member_count, sroce_member_count + 1);
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

/* Is a device's group received by this net device? */
static const struct sroce_join *sroce_joined(const struct sroce_dev *dev, const struct net *net,
					     int ifindex, const struct in6_addr *addr)
{
	const struct sroce_join *j;

	hash_for_each_possible_rcu(sroce_joins, j, node, sroce_group_hash(addr))
		if (j->dev == dev && j->ifindex == ifindex && j->net == net &&
		    ipv6_addr_equal(&j->addr, addr))
			return j;
	return NULL;
}

/**
 * sroce_mcast_find - the next queue pair of a group
 * @frame: frame to the group, with the net device that it came in by; gets that
 *	one's VLAN
 * @after: what the last call returned, 0 for the first
 * @qp: where to put the queue pair, with a reference of the caller's
 *
 * Context: RCU read section.  Return: 0 when there is none.
 */
u32 sroce_mcast_find(struct sroce_frame *frame, u32 after, struct sroce_qp **qp)
{
	const struct in6_addr *addr = &frame->daddr;
	const struct sroce_join *j, *from = NULL;
	struct sroce_member *m, *best = NULL;

	hash_for_each_possible_rcu(sroce_members, m, node, sroce_group_hash(addr)) {
		if (m->number <= after || (best && m->number > best->number) ||
		    !ipv6_addr_equal(&m->addr, addr))
			continue;
		j = sroce_joined(m->qp->dev, frame->net, frame->ifindex, addr);
		if (j) {
			best = m;
			from = j;
		}
	}
	if (!best)
		return 0;
	if (!kref_get_unless_zero(&best->qp->ref))
		return sroce_mcast_find(frame, best->number, qp);
	frame->vlan_id = from->vlan_id;
	*qp = best->qp;
	return best->number;
}

/**
 * sroce_mcast_count - count a frame to a group, once for each device that it reaches
 * @frame: frame
 *
 * Context: RCU read section.
 */
void sroce_mcast_count(const struct sroce_frame *frame)
{
	const struct in6_addr *addr = &frame->daddr;
	const struct sroce_join *j;

	hash_for_each_possible_rcu(sroce_joins, j, node, sroce_group_hash(addr))
		if (j->ifindex == frame->ifindex && j->net == frame->net &&
		    ipv6_addr_equal(&j->addr, addr))
			sroce_count(j->dev, SROCE_CNT_RCVD_FRAMES);
}
