// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Raw packet queue pairs.  A work request is a whole Ethernet frame, from the destination
 * address on and without the FCS, which goes to the net device as it is.  What comes in is
 * what flow steering rules say (flow.c).  The core lets only CAP_NET_RAW holders have one.
 */
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netdevice.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/checksum.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include "device.h"
#include "flow.h"
#include "qp.h"
#include "raw.h"
#include "respond.h"

/**
 * sroce_raw_possible - does the net device carry Ethernet frames?
 * @dev: device
 *
 * Context: any.  Return: whether it does; no for tun, which carries IP packets.
 */
bool sroce_raw_possible(const struct sroce_dev *dev)
{
	const struct net_device *netdev;
	bool possible;

	rcu_read_lock();
	netdev = rcu_dereference(dev->netdev);
	possible = netdev && (netdev->type == ARPHRD_ETHER || netdev->type == ARPHRD_LOOPBACK);
	rcu_read_unlock();
	return possible;
}

/* The longest frame, without a VLAN tag; without a net device it makes no difference */
static u32 sroce_raw_max(const struct sroce_dev *dev)
{
	const struct net_device *netdev;
	u32 mtu;

	rcu_read_lock();
	netdev = rcu_dereference(dev->netdev);
	mtu = netdev ? READ_ONCE(netdev->mtu) : ETH_MAX_MTU;
	rcu_read_unlock();
	return min_t(u32, mtu, ETH_MAX_MTU) + ETH_HLEN;
}

/**
 * sroce_raw_length_ok - can a frame be of this length?
 * @dev: device
 * @length: from the destination address on, bytes
 *
 * Return: whether it can, if one that is too long by a VLAN tag has one.
 */
bool sroce_raw_length_ok(const struct sroce_dev *dev, u32 length)
{
	return length >= ETH_HLEN && length <= sroce_raw_max(dev) + VLAN_HLEN;
}

/**
 * sroce_raw_alloc - allocate a frame to be sent
 * @length: bytes
 *
 * Context: any.  Return: the frame, of which the caller fills all bytes, or NULL.
 */
struct sk_buff *sroce_raw_alloc(u32 length)
{
	struct sk_buff *skb = alloc_skb(LL_MAX_HEADER + length, GFP_ATOMIC | __GFP_NOWARN);

	if (!skb)
		return NULL;
	skb_reserve(skb, LL_MAX_HEADER);
	skb_put(skb, length);
	return skb;
}

/* The checksum of a TCP segment or UDP datagram at @at, of which @pseudo is the sum so far */
static void sroce_raw_checksum_l4(void *at, u32 length, u8 protocol, __wsum pseudo)
{
	struct tcphdr *tcp = at;
	struct udphdr *udp = at;

	if (protocol == IPPROTO_TCP && length >= sizeof(*tcp)) {
		tcp->check = 0;
		tcp->check = csum_fold(csum_partial(at, length, pseudo));
	} else if (protocol == IPPROTO_UDP && length >= sizeof(*udp)) {
		udp->check = 0;
		udp->check = csum_fold(csum_partial(at, length, pseudo)) ?: CSUM_MANGLED_0;
	}
}

static void sroce_raw_checksum_ipv4(struct iphdr *ip, u32 length)
{
	u32 header = ip->ihl * 4, total = ntohs(ip->tot_len);
	u32 payload = total - header;

	if (header < sizeof(*ip) || total < header || total > length)
		return;
	ip_send_check(ip);
	if (ip_is_fragment(ip))
		return;
	sroce_raw_checksum_l4((void *)ip + header, payload, ip->protocol,
			      csum_tcpudp_nofold(ip->saddr, ip->daddr, payload, ip->protocol, 0));
}

static void sroce_raw_checksum_ipv6(struct ipv6hdr *ip, u32 length)
{
	u32 payload = ntohs(ip->payload_len);
	__wsum pseudo;

	if (payload > length - sizeof(*ip))
		return;
	pseudo = ~csum_unfold(csum_ipv6_magic(&ip->saddr, &ip->daddr, payload, ip->nexthdr, 0));
	sroce_raw_checksum_l4(ip + 1, payload, ip->nexthdr, pseudo);
}

/* IBV_SEND_IP_CSUM: what there is to be checksummed; a frame of something else is left alone */
static void sroce_raw_checksum(struct sk_buff *skb)
{
	void *ip = skb_network_header(skb);
	u32 length = skb->len - skb_network_offset(skb);

	if (skb->protocol == htons(ETH_P_IP) && length >= sizeof(struct iphdr))
		sroce_raw_checksum_ipv4(ip, length);
	else if (skb->protocol == htons(ETH_P_IPV6) && length >= sizeof(struct ipv6hdr))
		sroce_raw_checksum_ipv6(ip, length);
}

/**
 * sroce_raw_finish - find the headers of a frame that was filled
 * @dev: device
 * @skb: frame
 * @checksums: compute those of IP, TCP and UDP
 *
 * Return: whether it may be as long as it is.
 */
bool sroce_raw_finish(const struct sroce_dev *dev, struct sk_buff *skb, bool checksums)
{
	const struct ethhdr *eth = (const struct ethhdr *)skb->data;
	const struct vlan_hdr *vlan = (const struct vlan_hdr *)(eth + 1);
	u32 header = sizeof(*eth);

	skb_reset_mac_header(skb);
	skb->protocol = eth->h_proto;
	if (eth_type_vlan(eth->h_proto) && skb->len >= header + sizeof(*vlan)) {
		header += sizeof(*vlan);
		skb->protocol = vlan->h_vlan_encapsulated_proto;
	}
	if (skb->len > sroce_raw_max(dev) + header - sizeof(*eth))
		return false;
	skb_set_network_header(skb, header);
	if (checksums)
		sroce_raw_checksum(skb);
	/* for the stack a tag is a header of its own */
	skb->protocol = eth_proto_is_802_3(eth->h_proto) ? eth->h_proto : htons(ETH_P_802_2);
	skb_set_network_header(skb, sizeof(*eth));
	return true;
}

/**
 * sroce_raw_transmit - hand a frame to the net device
 * @dev: device
 * @skb: frame of sroce_raw_finish(); consumed
 *
 * One that is for this host as well, as one to a group may be, is also for the rules here,
 * as in a NIC; for this host's stack it is not.
 * Context: softirqs disabled, no lock held.
 */
void sroce_raw_transmit(struct sroce_dev *dev, struct sk_buff *skb)
{
	struct net_device *netdev;
	int err = NET_XMIT_DROP;

	rcu_read_lock();
	netdev = rcu_dereference(dev->netdev);
	if (netdev) {
		skb->dev = netdev;
		sroce_count(dev, SROCE_CNT_SENT_FRAMES);
		sroce_count(dev, SROCE_CNT_SENT_PKTS);
		sroce_count_add(dev, SROCE_CNT_SENT_BYTES, skb->len);
		sroce_flow_loopback(dev, skb);
		err = dev_queue_xmit(skb);
	} else {
		kfree_skb(skb);
	}
	rcu_read_unlock();
	if (unlikely(net_xmit_eval(err)))
		sroce_count(dev, SROCE_CNT_SEND_DROPPED);
}

/**
 * sroce_raw_receive - give frames to a queue pair
 * @qp: queue pair, or what a receive queue for RSS has, that the caller keeps alive
 * @frames: linear frames, chained by @next
 * @wc_flags: IB_WC_IP_CSUM_OK, or 0
 *
 * Context: softirqs disabled, no lock held.
 */
void sroce_raw_receive(struct sroce_qp *qp, struct sk_buff *frames, int wc_flags)
{
	struct sk_buff *skb;

	spin_lock_bh(&qp->lock);
	for (skb = frames; skb; skb = skb->next) {
		if (!sroce_qp_can_receive(qp)) {
			sroce_qp_count(qp, SROCE_CNT_RCV_WRONG_STATE);
			continue;
		}
		sroce_qp_count(qp, SROCE_CNT_RCVD_PKTS);
		sroce_qp_count_add(qp, SROCE_CNT_RCVD_BYTES, skb->len);
		sroce_respond_frame(qp, skb->data, skb->len, wc_flags);
	}
	sroce_qp_unlock(qp);
}
