// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Addresses of net devices that are no Ethernet: lo and tun.  The RDMA core looks
 * at them once, when it registers the device, and follows later changes on
 * Ethernet devices only.  Here the core is told to look again.
 */
#include <linux/if_arp.h>
#include <linux/inetdevice.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <net/if_inet6.h>
#include "address.h"
#include "compat.h"
#include "device.h"
#include "gid.h"
#include "port.h"

static void sroce_address_work(struct work_struct *work)
{
	struct sroce_dev *dev = container_of(work, struct sroce_dev, rescan);
	struct net_device *netdev;

	if (!ib_device_try_get(&dev->ibdev))
		return;		/* not registered yet, or no more */
	netdev = sroce_get_netdev(&dev->ibdev, SROCE_PORT);
	if (netdev && sroce_gid_stale(dev, netdev))
		sroce_del_netdev_gids(&dev->ibdev, SROCE_PORT, netdev);
	dev_put(netdev);
	rdma_roce_rescan_device(&dev->ibdev);
	ib_device_put(&dev->ibdev);
}

/**
 * sroce_address_setup - prepare a device
 * @dev: device that nobody knows yet
 */
void sroce_address_setup(struct sroce_dev *dev)
{
	INIT_WORK(&dev->rescan, sroce_address_work);
}

/**
 * sroce_address_changed - look at a device's addresses, if the core does not
 * @dev: device that is bound to a net device
 * @netdev: this one
 *
 * Context: any; RCU read section or rtnl.
 */
void sroce_address_changed(struct sroce_dev *dev, const struct net_device *netdev)
{
	if (netdev->type != ARPHRD_ETHER)
		schedule_work(&dev->rescan);
}

static int sroce_inetaddr_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	const struct in_ifaddr *ifa = ptr;

	sroce_port_address_changed(ifa->ifa_dev->dev);
	return NOTIFY_DONE;
}

static struct notifier_block sroce_inetaddr_notifier = {
	.notifier_call = sroce_inetaddr_event,
};

#if IS_ENABLED(CONFIG_IPV6)
static int sroce_inet6addr_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	const struct inet6_ifaddr *ifa = ptr;

	sroce_port_address_changed(ifa->idev->dev);
	return NOTIFY_DONE;
}

static struct notifier_block sroce_inet6addr_notifier = {
	.notifier_call = sroce_inet6addr_event,
};
#endif

/**
 * sroce_address_init - listen to changes of addresses
 *
 * Context: process.  Return: 0 or an errno.
 */
int sroce_address_init(void)
{
	int err = register_inetaddr_notifier(&sroce_inetaddr_notifier);

#if IS_ENABLED(CONFIG_IPV6)
	if (err)
		return err;
	err = register_inet6addr_notifier(&sroce_inet6addr_notifier);
	if (err)
		unregister_inetaddr_notifier(&sroce_inetaddr_notifier);
#endif
	return err;
}

/**
 * sroce_address_exit - the reverse of sroce_address_init()
 */
void sroce_address_exit(void)
{
#if IS_ENABLED(CONFIG_IPV6)
	unregister_inet6addr_notifier(&sroce_inet6addr_notifier);
#endif
	unregister_inetaddr_notifier(&sroce_inetaddr_notifier);
}
