// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The port: its state, MTU and P_Keys, and what becomes of it when the net
 * device changes.  All changes come under rtnl.
 */
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/rtnetlink.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>
#include "address.h"
#include "ah.h"
#include "device.h"
#include "flow.h"
#include "mcast.h"
#include "port.h"

/* Devices that have a net device; changed under rtnl, readers may be in an RCU section */
static LIST_HEAD(sroce_bound);

/**
 * sroce_port_check_netdev - can this net device carry RoCE?
 * @netdev: net device
 *
 * Context: rtnl.  Return: 0; -EOPNOTSUPP for a kind that cannot; -EINVAL for an
 * MTU too small; -EEXIST when it carries an RDMA device of this driver already.
 */
int sroce_port_check_netdev(struct net_device *netdev)
{
	struct sroce_dev *dev;

	ASSERT_RTNL();
	switch (netdev->type) {
	case ARPHRD_ETHER:
	case ARPHRD_LOOPBACK:
	case ARPHRD_NONE:	/* tun: RoCEv2 needs no Ethernet */
		break;
	default:
		netdev_info(netdev, "sroce: not an Ethernet interface\n");
		return -EOPNOTSUPP;
	}
	if (!iboe_get_mtu(netdev->mtu)) {
		netdev_info(netdev, "sroce: MTU %u is too small for any RoCE packet\n",
			    netdev->mtu);
		return -EINVAL;
	}
	list_for_each_entry(dev, &sroce_bound, list)
		if (rtnl_dereference(dev->netdev) == netdev) {
			netdev_info(netdev, "sroce: has the RDMA device %s already\n",
				    dev_name(&dev->ibdev.dev));
			return -EEXIST;
		}
	return 0;
}

static enum ib_port_state sroce_netdev_state(const struct net_device *netdev)
{
	if (netif_running(netdev) && netif_carrier_ok(netdev) && iboe_get_mtu(netdev->mtu))
		return IB_PORT_ACTIVE;
	return IB_PORT_DOWN;
}

/**
 * sroce_port_bind - take hold of the net device
 * @dev: device that is not registered yet
 * @netdev: net device
 *
 * Context: rtnl.  Return: as sroce_port_check_netdev().
 */
int sroce_port_bind(struct sroce_dev *dev, struct net_device *netdev)
{
	int err = sroce_port_check_netdev(netdev);

	if (err)
		return err;
	netdev_hold(netdev, &dev->netdev_tracker, GFP_KERNEL);
	rcu_assign_pointer(dev->netdev, netdev);
	dev->state = sroce_netdev_state(netdev);
	list_add_tail_rcu(&dev->list, &sroce_bound);
	return 0;
}

/**
 * sroce_port_unbind - let go of the net device
 * @dev: device; one that was let go before is left alone
 *
 * Context: rtnl.  What reads @dev->netdev under RCU may go on until the net
 * device's own unregistration waits for it.
 */
void sroce_port_unbind(struct sroce_dev *dev)
{
	struct net_device *netdev = rtnl_dereference(dev->netdev);

	if (!netdev)
		return;
	sroce_flow_unbind(dev, netdev);
	RCU_INIT_POINTER(dev->netdev, NULL);
	list_del_rcu(&dev->list);
	dev->state = IB_PORT_DOWN;
	netdev_put(netdev, &dev->netdev_tracker);
}

static void sroce_port_event(struct sroce_dev *dev, enum ib_event_type type)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.element.port_num = SROCE_PORT,
		.event = type,
	};

	ib_dispatch_event(&event);
}

/**
 * sroce_port_announce - report the port's state if it changed
 * @dev: device; nothing is reported of one that is not registered yet (its
 *	creator looks again) or being unregistered
 *
 * Context: rtnl.
 */
void sroce_port_announce(struct sroce_dev *dev)
{
	struct net_device *netdev = rtnl_dereference(dev->netdev);
	enum ib_port_state state = netdev ? sroce_netdev_state(netdev) : IB_PORT_DOWN;

	if (state == dev->state || !ib_device_try_get(&dev->ibdev))
		return;
	dev->state = state;
	if (state == IB_PORT_DOWN) {
		local_bh_disable();
		sroce_count(dev, SROCE_CNT_LINK_DOWNED);
		local_bh_enable();
	}
	ibdev_info(&dev->ibdev, "port is %s\n", state == IB_PORT_ACTIVE ? "active" : "down");
	sroce_port_event(dev, state == IB_PORT_ACTIVE ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR);
	ib_device_put(&dev->ibdev);
}

static struct sroce_dev *sroce_port_find(struct net_device *netdev)
{
	struct sroce_dev *dev;

	list_for_each_entry(dev, &sroce_bound, list)
		if (rtnl_dereference(dev->netdev) == netdev)
			return dev;
	return NULL;
}

/**
 * sroce_port_orphan - have a device removed that has lost its net device
 * @dev: device; one that is not registered yet, or is being unregistered by
 *	somebody else, is left to him
 *
 * Context: any.
 */
void sroce_port_orphan(struct sroce_dev *dev)
{
	if (!ib_device_try_get(&dev->ibdev))
		return;
	ib_unregister_device_queued(&dev->ibdev);
	ib_device_put(&dev->ibdev);
}

/**
 * sroce_port_address_changed - a net device got or lost an address
 * @netdev: net device, any
 *
 * Context: any.
 */
void sroce_port_address_changed(const struct net_device *netdev)
{
	struct sroce_dev *dev;

	rcu_read_lock();
	list_for_each_entry_rcu(dev, &sroce_bound, list)
		if (rcu_access_pointer(dev->netdev) == netdev)
			sroce_address_changed(dev, netdev);
	rcu_read_unlock();
}

static int sroce_netdev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct net_device *netdev = netdev_notifier_info_to_dev(ptr);
	struct sroce_dev *dev = sroce_port_find(netdev);

	if (event == NETDEV_UNREGISTER)
		sroce_av_forget_routes(dev_net(netdev));
	sroce_mcast_netdev_event(netdev, event);
	if (!dev)
		return NOTIFY_DONE;
	switch (event) {
	case NETDEV_UNREGISTER:
		/* a move to another net namespace also comes as this: a NIC stays */
		if (netdev->reg_state == NETREG_REGISTERED)
			break;
		sroce_port_unbind(dev);
		sroce_port_orphan(dev);
		break;
	case NETDEV_REGISTER:	/* in another net namespace */
		sroce_flow_moved(dev, netdev);
		sroce_address_changed(dev, netdev);
		fallthrough;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
	case NETDEV_CHANGEMTU:
		sroce_port_announce(dev);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block sroce_netdev_notifier = {
	.notifier_call = sroce_netdev_event,
};

/**
 * sroce_port_notifier_init - listen to net devices
 *
 * Context: process.  Return: 0 or an errno.
 */
int sroce_port_notifier_init(void)
{
	return register_netdevice_notifier(&sroce_netdev_notifier);
}

/**
 * sroce_port_notifier_exit - the reverse of sroce_port_notifier_init()
 */
void sroce_port_notifier_exit(void)
{
	unregister_netdevice_notifier(&sroce_netdev_notifier);
}

/**
 * sroce_port_mtu - the largest path MTU that the net device carries now
 * @dev: device
 *
 * Context: any.  Return: enum ib_mtu, 0 when it carries none.
 */
enum ib_mtu sroce_port_mtu(struct sroce_dev *dev)
{
	struct net_device *netdev;
	enum ib_mtu mtu = 0;

	rcu_read_lock();
	netdev = rcu_dereference(dev->netdev);
	if (netdev)
		mtu = iboe_get_mtu(READ_ONCE(netdev->mtu));
	rcu_read_unlock();
	return mtu;
}

/**
 * sroce_port_pkey - an entry of the P_Key table
 * @dev: device
 * @index: index, below SROCE_PKEY_TABLE; another is taken for 0
 *
 * Return: the P_Key.  RoCE has the default one (A16.5.10).
 */
u16 sroce_port_pkey(struct sroce_dev *dev, u16 index)
{
	return SROCE_PKEY_DEFAULT;
}

/**
 * sroce_port_pkey_match - is a packet of this P_Key for us? (10.9.3)
 * @dev: device
 * @pkey: from the packet
 * @index: where to put the index of the entry that it matches
 *
 * Return: whether the keys are the same and not both limited members.
 */
bool sroce_port_pkey_match(struct sroce_dev *dev, u16 pkey, u16 *index)
{
	u16 i;

	for (i = 0; i < SROCE_PKEY_TABLE; i++) {
		u16 own = sroce_port_pkey(dev, i);

		if ((own & 0x7fff) == (pkey & 0x7fff) && (own | pkey) & 0x8000) {
			*index = i;
			return true;
		}
	}
	return false;
}

/**
 * sroce_get_netdev - ib_device_ops.get_netdev
 * @ibdev: device
 * @port: port number; there is one
 *
 * The core wants the Ethernet device at the bottom: it finds a VLAN's addresses
 * by the real device of the VLAN.  sroce_port_has_netdev() leaves those out
 * that are not the VLAN's.
 *
 * Return: the net device, of a VLAN the real one, with a reference, or NULL
 * when it is gone.
 */
struct net_device *sroce_get_netdev(struct ib_device *ibdev, u32 port)
{
	struct net_device *netdev;

	rcu_read_lock();
	netdev = rcu_dereference(to_sdev(ibdev)->netdev);
	if (netdev && is_vlan_dev(netdev))
		netdev = vlan_dev_real_dev(netdev);
	dev_hold(netdev);
	rcu_read_unlock();
	return netdev;
}

/**
 * sroce_port_has_netdev - are this net device's addresses the port's?
 * @dev: device
 * @netdev: net device that the core names
 *
 * A device over a VLAN must not speak for the rest of the Ethernet, which may
 * be another net namespace's.
 *
 * Context: RCU read section.  Return: whether it is the device's own or above it.
 */
bool sroce_port_has_netdev(const struct sroce_dev *dev, struct net_device *netdev)
{
	struct net_device *own = rcu_dereference(dev->netdev);

	return own && (!is_vlan_dev(own) || netdev == own ||
		       netdev_has_upper_dev_all_rcu(own, netdev));
}

/**
 * sroce_query_port - ib_device_ops.query_port
 * @ibdev: device
 * @port: port number; there is one
 * @attr: where to, zeroed by the core
 *
 * Return: 0 or -EINVAL.
 */
int sroce_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct sroce_dev *dev = to_sdev(ibdev);
	struct net_device *netdev;

	if (port != SROCE_PORT)
		return -EINVAL;
	attr->gid_tbl_len = SROCE_GID_TABLE;
	attr->ip_gids = true;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = SROCE_MAX_MESSAGE;
	attr->pkey_tbl_len = SROCE_PKEY_TABLE;
	attr->max_vl_num = 1;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = sroce_port_mtu(dev) ?: IB_MTU_256;
	attr->phys_mtu = ib_mtu_enum_to_int(attr->active_mtu);
	attr->bad_pkey_cntr = sroce_counter_sum(dev, SROCE_CNT_RCV_BAD_PKEY);
	attr->qkey_viol_cntr = sroce_counter_sum(dev, SROCE_CNT_RCV_BAD_QKEY);

	rcu_read_lock();
	netdev = rcu_dereference(dev->netdev);
	attr->state = netdev ? sroce_netdev_state(netdev) : IB_PORT_DOWN;
	if (attr->state == IB_PORT_ACTIVE)
		attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	else if (netdev && netif_running(netdev))
		attr->phys_state = IB_PORT_PHYS_STATE_POLLING;
	else
		attr->phys_state = IB_PORT_PHYS_STATE_DISABLED;
	rcu_read_unlock();
	return ib_get_eth_speed(ibdev, port, &attr->active_speed, &attr->active_width);
}

/**
 * sroce_query_pkey - ib_device_ops.query_pkey
 * @ibdev: device
 * @port: port number; there is one
 * @index: index in the table
 * @pkey: where to
 *
 * Return: 0 or -EINVAL.
 */
int sroce_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index >= SROCE_PKEY_TABLE)
		return -EINVAL;
	*pkey = sroce_port_pkey(to_sdev(ibdev), index);
	return 0;
}

/**
 * sroce_get_port_immutable - ib_device_ops.get_port_immutable
 * @ibdev: device
 * @port: port number; there is one
 * @imm: where to
 *
 * Return: 0.
 */
int sroce_get_port_immutable(struct ib_device *ibdev, u32 port, struct ib_port_immutable *imm)
{
	imm->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	imm->pkey_tbl_len = SROCE_PKEY_TABLE;
	imm->gid_tbl_len = SROCE_GID_TABLE;
	imm->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

/**
 * sroce_get_link_layer - ib_device_ops.get_link_layer
 * @ibdev: device
 * @port: port number; there is one
 *
 * Return: Ethernet.
 */
enum rdma_link_layer sroce_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}
