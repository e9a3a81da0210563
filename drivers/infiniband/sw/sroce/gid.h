/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Addresses: which device a received packet is for, and where we listen */
#ifndef SROCE_GID_H
#define SROCE_GID_H

#include <linux/in6.h>
#include <linux/if_vlan.h>
#include <rdma/ib_verbs.h>

struct sroce_dev;
struct sroce_net;

/**
 * struct sroce_gid - an address of a device
 * @node: in the table of all addresses; readers are in an RCU section
 * @rcu: frees it
 * @dev: device, which outlives it by a grace period
 * @netdev: net device that has the address; the core has a reference to it until
 *	the entry is out of the table
 * @net: namespace that the address is in; only compared
 * @sn: what listens in that namespace
 * @addr: address, an IPv4 one mapped into IPv6
 * @vlan_id: VLAN of the net device that has the address, or 0xffff
 * @primary: that net device is the RDMA device's own, not one above it
 */
struct sroce_gid {
	struct hlist_node	node;
	struct rcu_head		rcu;
	struct sroce_dev	*dev;
	struct net_device	*netdev;
	const struct net	*net;
	struct sroce_net	*sn;
	struct in6_addr		addr;
	u16			vlan_id;
	bool			primary;
};

int sroce_add_gid(const struct ib_gid_attr *attr, void **context);
int sroce_del_gid(const struct ib_gid_attr *attr, void **context);
const struct sroce_gid *sroce_gid_find(const struct net *net, const struct in6_addr *addr,
				       const struct sroce_dev *dev);
void sroce_gid_forget(const struct sroce_dev *dev);
struct net_device *sroce_gid_next_netdev(const struct sroce_dev *dev,
					 const struct net_device *after);
struct net_device *sroce_gid_netdev_of(const struct sroce_dev *dev, const union ib_gid *addr,
				       int ifindex, u64 home);
bool sroce_gid_on_netdev(const struct sroce_dev *dev, const struct net_device *netdev);
bool sroce_gid_stale(const struct sroce_dev *dev, struct net_device *netdev);
int sroce_net_init(void);
void sroce_net_exit(void);

#endif /* SROCE_GID_H */
