// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Addresses (GIDs).  The core tells which addresses a device has; here is a
 * table of them, by namespace and address, for received packets.  In a
 * namespace where a device has an address, and only there, a netfilter hook
 * takes packets that are delivered locally (receive.c).
 */
#include <linux/hashtable.h>
#include <linux/inetdevice.h>
#include <linux/jhash.h>
#include <linux/netfilter.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include "device.h"
#include "gid.h"
#include "mcast.h"
#include "port.h"
#include "receive.h"

static DEFINE_HASHTABLE(sroce_gids, 8);
static DEFINE_SPINLOCK(sroce_gids_lock);	/* protects changes of the table */

/**
 * struct sroce_net - a net namespace
 * @net: namespace; NULL once it is gone
 * @gids: how many addresses are in it: while there are any, we listen
 * @ref: one for the namespace, one for each address
 */
struct sroce_net {
	struct net	*net;
	unsigned int	gids;
	struct kref	ref;
};

static unsigned int sroce_net_id;
static DEFINE_MUTEX(sroce_net_lock);	/* protects struct sroce_net */

static const struct nf_hook_ops sroce_hooks[] = {
	{
		.hook = sroce_receive_ipv4,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_LOCAL_IN,
		.priority = INT_MAX - 1,	/* after every filter */
	},
#if IS_ENABLED(CONFIG_IPV6)
	{
		.hook = sroce_receive_ipv6,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_LOCAL_IN,
		.priority = INT_MAX - 1,
	},
#endif
};

static void sroce_net_free(struct kref *ref)
{
	kfree(container_of(ref, struct sroce_net, ref));
}

static struct sroce_net **sroce_net_of(struct net *net)
{
	return net_generic(net, sroce_net_id);
}

/* Counts an address in; the first one makes us listen */
static struct sroce_net *sroce_net_get(struct net *net)
{
	struct sroce_net *sn = *sroce_net_of(net);
	int err = 0;

	mutex_lock(&sroce_net_lock);
	if (!sn->net)
		err = -ENODEV;
	else if (!sn->gids)
		err = nf_register_net_hooks(net, sroce_hooks, ARRAY_SIZE(sroce_hooks));
	if (!err) {
		sn->gids++;
		kref_get(&sn->ref);
	}
	mutex_unlock(&sroce_net_lock);
	return err ? ERR_PTR(err) : sn;
}

static void sroce_net_put(struct sroce_net *sn)
{
	mutex_lock(&sroce_net_lock);
	if (!--sn->gids && sn->net)
		nf_unregister_net_hooks(sn->net, sroce_hooks, ARRAY_SIZE(sroce_hooks));
	mutex_unlock(&sroce_net_lock);
	kref_put(&sn->ref, sroce_net_free);
}

static int __net_init sroce_net_start(struct net *net)
{
	struct sroce_net *sn = kzalloc(sizeof(*sn), GFP_KERNEL);

	if (!sn)
		return -ENOMEM;
	sn->net = net;
	kref_init(&sn->ref);
	*sroce_net_of(net) = sn;
	return 0;
}

/* An address may be taken back only after its namespace: then it finds no net */
static void __net_exit sroce_net_stop(struct net *net)
{
	struct sroce_net *sn = *sroce_net_of(net);

	mutex_lock(&sroce_net_lock);
	if (sn->gids)
		nf_unregister_net_hooks(net, sroce_hooks, ARRAY_SIZE(sroce_hooks));
	sn->net = NULL;
	mutex_unlock(&sroce_net_lock);
	kref_put(&sn->ref, sroce_net_free);
}

static struct pernet_operations sroce_net_ops = {
	.init = sroce_net_start,
	.exit = sroce_net_stop,
	.id = &sroce_net_id,
	.size = sizeof(struct sroce_net *),
};

/**
 * sroce_net_init - be told of net namespaces
 *
 * Context: process.  Return: 0 or an errno.
 */
int sroce_net_init(void)
{
	return register_pernet_subsys(&sroce_net_ops);
}

/**
 * sroce_net_exit - the reverse of sroce_net_init(); no packet comes any more
 */
void sroce_net_exit(void)
{
	unregister_pernet_subsys(&sroce_net_ops);
	synchronize_net();
	rcu_barrier();	/* the entries' kfree_rcu() */
}

static u32 sroce_gid_hash(const struct net *net, const struct in6_addr *addr)
{
	return jhash2((const u32 *)addr->s6_addr32, 4, (u32)(uintptr_t)net);
}

/**
 * sroce_gid_find - find who has an address
 * @net: namespace
 * @addr: address, an IPv4 one mapped
 * @dev: the device that must have it, or NULL for any; then the one that has
 *	it on its own net device goes first
 *
 * Context: RCU read section.  Return: the entry, or NULL.
 */
const struct sroce_gid *sroce_gid_find(const struct net *net, const struct in6_addr *addr,
				       const struct sroce_dev *dev)
{
	const struct sroce_gid *gid, *other = NULL;

	hash_for_each_possible_rcu(sroce_gids, gid, node, sroce_gid_hash(net, addr)) {
		if (gid->net != net || !ipv6_addr_equal(&gid->addr, addr))
			continue;
		if (dev ? gid->dev == dev : gid->primary)
			return gid;
		if (!dev)
			other = gid;
	}
	return other;
}

/**
 * sroce_gid_next_netdev - walk the net devices that have addresses of a device
 * @dev: device
 * @after: what the last call returned, perhaps gone meanwhile, NULL for the first
 *
 * Context: any.  Return: the next net device with a reference of the caller's, or
 * NULL.
 */
struct net_device *sroce_gid_next_netdev(const struct sroce_dev *dev,
					 const struct net_device *after)
{
	struct net_device *next = NULL;
	struct sroce_gid *gid;
	int bucket;

	/* while an entry is in the table, the core has a reference to its net device */
	spin_lock_bh(&sroce_gids_lock);
	hash_for_each(sroce_gids, bucket, gid, node)
		if (gid->dev == dev && gid->netdev > after && (!next || gid->netdev < next))
			next = gid->netdev;
	dev_hold(next);
	spin_unlock_bh(&sroce_gids_lock);
	return next;
}

/**
 * sroce_gid_netdev_of - the net device that has an address of a device now
 * @dev: device
 * @addr: address, an IPv4 one mapped
 * @ifindex: index of the net device
 * @home: cookie of its namespace
 *
 * Context: RCU read section.  Return: the net device, as long as the section lasts, if it
 * has the address and is up, or NULL.
 */
struct net_device *sroce_gid_netdev_of(const struct sroce_dev *dev, const union ib_gid *addr,
				       int ifindex, u64 home)
{
	const struct sroce_gid *gid;
	int bucket;

	hash_for_each_rcu(sroce_gids, bucket, gid, node)
		if (gid->dev == dev && !memcmp(&gid->addr, addr, sizeof(*addr)) &&
		    gid->netdev->ifindex == ifindex &&
		    dev_net(gid->netdev)->net_cookie == home &&
		    READ_ONCE(gid->netdev->flags) & IFF_UP)
			return gid->netdev;
	return NULL;
}

/**
 * sroce_gid_on_netdev - has a net device an address of a device?
 * @dev: device
 * @netdev: net device, only compared
 *
 * Context: any.  Return: whether it has.
 */
bool sroce_gid_on_netdev(const struct sroce_dev *dev, const struct net_device *netdev)
{
	const struct sroce_gid *gid;
	bool found = false;
	int bucket;

	rcu_read_lock();
	hash_for_each_rcu(sroce_gids, bucket, gid, node)
		found |= gid->dev == dev && gid->netdev == netdev;
	rcu_read_unlock();
	return found;
}

/* Has the net device the address still, as the core sees it? */
static bool sroce_gid_assigned(const struct sroce_gid *gid, struct net_device *netdev)
{
	const struct in_device *in_dev;
	const struct in_ifaddr *ifa;

	if (gid->net != dev_net(netdev))
		return false;
	/* among these is the default address, which no net device has */
	if (ipv6_addr_type(&gid->addr) & IPV6_ADDR_LINKLOCAL)
		return true;
	if (!ipv6_addr_v4mapped(&gid->addr))
#if IS_ENABLED(CONFIG_IPV6)
		return ipv6_chk_addr_and_flags(dev_net(netdev), &gid->addr, netdev, false, 1, 0);
#else
		return false;
#endif
	in_dev = __in_dev_get_rcu(netdev);
	if (!in_dev)
		return false;
	in_dev_for_each_ifa_rcu(ifa, in_dev)
		if (ifa->ifa_address == gid->addr.s6_addr32[3])
			return true;
	return false;
}

/**
 * sroce_gid_stale - has a device an address that its net device has no more?
 * @dev: device
 * @netdev: its net device
 *
 * Context: process.  Return: whether it has.
 */
bool sroce_gid_stale(const struct sroce_dev *dev, struct net_device *netdev)
{
	const struct sroce_gid *gid;
	bool stale = false;
	int bucket;

	rcu_read_lock();
	hash_for_each_rcu(sroce_gids, bucket, gid, node)
		if (gid->dev == dev && gid->netdev == netdev)
			stale |= !sroce_gid_assigned(gid, netdev);
	rcu_read_unlock();
	return stale;
}

/*
 * What the core's entry says of the net device that has the address; NULL when
 * it is none of the port's.
 */
static struct net *sroce_gid_netdev(const struct ib_gid_attr *attr, struct sroce_gid *gid)
{
	struct net_device *netdev;
	struct net *net = NULL;

	rcu_read_lock();
	netdev = rcu_dereference(attr->ndev);
	if (netdev && sroce_port_has_netdev(gid->dev, netdev)) {
		net = maybe_get_net(dev_net(netdev));
		gid->netdev = netdev;
		gid->vlan_id = is_vlan_dev(netdev) ? vlan_dev_vlan_id(netdev) : 0xffff;
		gid->primary = netdev == rcu_dereference(gid->dev->netdev);
	}
	rcu_read_unlock();
	return net;
}

/**
 * sroce_add_gid - ib_device_ops.add_gid: the device got an address
 * @attr: the core's entry
 * @context: keeps ours for sroce_del_gid()
 *
 * Context: process.  Return: 0; -ENODEV, also for an address that the port
 * shall not have; -ENOMEM; what netfilter says.
 */
int sroce_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct sroce_gid *gid;
	struct net *net;
	int err = 0;

	gid = kzalloc(sizeof(*gid), GFP_KERNEL);
	if (!gid)
		return -ENOMEM;
	gid->dev = to_sdev(attr->device);
	memcpy(&gid->addr, &attr->gid, sizeof(gid->addr));
	net = sroce_gid_netdev(attr, gid);
	if (!net) {
		kfree(gid);
		return -ENODEV;
	}
	gid->net = net;
	gid->sn = sroce_net_get(net);
	put_net(net);
	if (IS_ERR(gid->sn)) {
		err = PTR_ERR(gid->sn);
		kfree(gid);
		return err;
	}
	spin_lock_bh(&sroce_gids_lock);
	hash_add_rcu(sroce_gids, &gid->node, sroce_gid_hash(gid->net, &gid->addr));
	spin_unlock_bh(&sroce_gids_lock);
	sroce_mcast_refresh();
	*context = gid;
	return 0;
}

/**
 * sroce_del_gid - ib_device_ops.del_gid: the device lost an address
 * @attr: the core's entry
 * @context: ours
 *
 * Context: process.  Return: 0.
 */
int sroce_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct sroce_gid *gid = *context;

	if (!gid)
		return 0;
	spin_lock_bh(&sroce_gids_lock);
	hash_del_rcu(&gid->node);
	spin_unlock_bh(&sroce_gids_lock);
	sroce_mcast_refresh();
	sroce_net_put(gid->sn);
	kfree_rcu(gid, rcu);
	*context = NULL;
	return 0;
}

static struct sroce_gid *sroce_gid_take(const struct sroce_dev *dev)
{
	struct sroce_gid *gid;
	int bucket;

	spin_lock_bh(&sroce_gids_lock);
	hash_for_each(sroce_gids, bucket, gid, node)
		if (gid->dev == dev) {
			hash_del_rcu(&gid->node);
			break;
		}
	spin_unlock_bh(&sroce_gids_lock);
	return gid;
}

/**
 * sroce_gid_forget - take back what is left of a device's addresses
 * @dev: device that the core does not know any more
 *
 * Some kernels leave them when they fail to register a device.
 * Context: process, sleeps.
 */
void sroce_gid_forget(const struct sroce_dev *dev)
{
	struct sroce_gid *gid;

	while ((gid = sroce_gid_take(dev))) {
		sroce_net_put(gid->sn);
		kfree_rcu(gid, rcu);
	}
}
