// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Loading and unloading, and the link type of "rdma link add ... type sroce" */
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <rdma/rdma_netlink.h>
#include "address.h"
#include "device.h"
#include "encap.h"
#include "gid.h"
#include "hold.h"
#include "icrc.h"
#include "mcast.h"
#include "port.h"
#include "qp.h"

static int sroce_newlink(const char *name, struct net_device *netdev)
{
	return sroce_device_create(name, netdev);
}

static struct rdma_link_ops sroce_link_ops = {
	.type = "sroce",
	.newlink = sroce_newlink,
};

static int __init sroce_init(void)
{
	int err;

	err = sroce_icrc_init();
	if (err)
		return err;
	err = sroce_encap_init();
	if (err)
		goto err_icrc;
	err = sroce_hold_init();
	if (err)
		goto err_encap;
	err = sroce_qp_init();
	if (err)
		goto err_hold;
	err = sroce_net_init();
	if (err)
		goto err_qp;
	err = sroce_port_notifier_init();
	if (err)
		goto err_net;
	err = sroce_address_init();
	if (err)
		goto err_port;
	rdma_link_register(&sroce_link_ops);
	return 0;

err_port:
	sroce_port_notifier_exit();
err_net:
	sroce_net_exit();
err_qp:
	sroce_qp_exit();
err_hold:
	sroce_hold_exit();
err_encap:
	sroce_encap_exit();
err_icrc:
	sroce_icrc_exit();
	return err;
}

static void __exit sroce_exit(void)
{
	rdma_link_unregister(&sroce_link_ops);
	sroce_device_remove_all();
	sroce_address_exit();
	sroce_port_notifier_exit();
	sroce_mcast_exit();
	sroce_net_exit();
	sroce_qp_exit();
	sroce_hold_exit();
	sroce_encap_exit();
	sroce_icrc_exit();
}

module_init(sroce_init);
module_exit(sroce_exit);
MODULE_DESCRIPTION("RDMA over Converged Ethernet in software");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_ALIAS_RDMA_LINK("sroce");
MODULE_SOFTDEP("pre: crc32");
