/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Flow steering: which received frames go to which raw packet queue pair */
#ifndef SROCE_FLOW_H
#define SROCE_FLOW_H

#include <linux/if_ether.h>
#include <linux/kconfig.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

struct net_device;
struct sk_buff;
struct sroce_dev;

#define SROCE_FLOW_STEERING	IS_ENABLED(CONFIG_NETFILTER_INGRESS)

/**
 * struct sroce_flow_key - what rules look at in a frame, and RSS
 * @dst: Ethernet addresses
 * @src: likewise
 * @type: EtherType, behind a VLAN tag if there is one
 * @tci: VLAN tag
 * @saddr: IP addresses, IPv4 ones in the first four bytes
 * @daddr: likewise
 * @label: IPv6 flow label
 * @sport: ports, in network order as all the above
 * @dport: likewise
 * @l3: 4, 6, or 0 when there is no IP header
 * @protocol: IPv4 protocol, or what follows the IPv6 header
 * @tos: type of service, traffic class
 * @ttl: time to live, hop limit
 * @flags: enum ib_ipv4_flags; of a fragment, IB_IPV4_MORE_FRAG
 * @tagged: whether there is a VLAN tag
 * @l4: whether there are ports
 * @reserved: 0
 *
 * Words of 64 bits are compared.
 */
struct sroce_flow_key {
	u8	dst[ETH_ALEN];
	u8	src[ETH_ALEN];
	__be16	type;
	__be16	tci;
	u8	saddr[16];
	u8	daddr[16];
	__be32	label;
	__be16	sport;
	__be16	dport;
	u8	l3;
	u8	protocol;
	u8	tos;
	u8	ttl;
	u8	flags;
	u8	tagged;
	u8	l4;
	u8	reserved;
} __aligned(8);

struct ib_flow *sroce_create_flow(struct ib_qp *ibqp, struct ib_flow_attr *attr,
				  struct ib_udata *udata);
int sroce_destroy_flow(struct ib_flow *ibflow);
void sroce_flow_unbind(struct sroce_dev *dev, struct net_device *netdev);
void sroce_flow_moved(struct sroce_dev *dev, struct net_device *netdev);
void sroce_flow_loopback(struct sroce_dev *dev, struct sk_buff *skb);

#endif /* SROCE_FLOW_H */
