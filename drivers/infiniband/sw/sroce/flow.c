// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Flow steering.  While a device has rules, a netfilter hook at the net device's ingress
 * looks at its frames, behind packet sockets and before everything else in the stack, and
 * takes those that a rule steers to a raw packet queue pair.
 *
 * The order, in which each frame meets the rules: sniffers, which get a copy; rules with
 * specifications, by priority; last, and only for what this host's stack would not take,
 * the default rules.
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter_netdev.h>
#include <linux/percpu.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/dsfield.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include "device.h"
#include "flow.h"
#include "qp.h"
#include "raw.h"
#include "rss.h"

#define SROCE_MAX_FLOWS		4096

/**
 * struct sroce_flow - a rule
 * @ibflow: the core's part
 * @list: in the device's list, RCU
 * @rcu: frees it
 * @qp: queue pair, which outlives it
 * @type: enum ib_flow_attr_type
 * @rank: its place, lower first
 * @value: what a frame has to have
 * @mask: where it has to have it
 * @drop: frames are not received, by anyone
 * @copy: frames are given to later rules too, and to the stack
 * @filtered: the net device was told to let these frames in
 */
struct sroce_flow {
	struct ib_flow		ibflow;
	struct list_head	list;
	struct rcu_head		rcu;
	struct sroce_qp		*qp;
	u32			type;
	u32			rank;
	struct sroce_flow_key	value;
	struct sroce_flow_key	mask;
	bool			drop;
	bool			copy;
	bool			filtered;
};

/**
 * struct sroce_flow_frame - a frame on its way through the rules
 * @dev: device
 * @skb: the frame
 * @key: its headers
 * @leftover: the stack would not take it, if @judged
 * @judged: a rule wanted to know that
 * @wc_flags: for completions, if @copied
 * @copies: it as it was on the wire, or several that were merged, chained by @next
 * @copied: @copies were made
 */
struct sroce_flow_frame {
	const struct sroce_dev	*dev;
	struct sk_buff		*skb;
	struct sroce_flow_key	key;
	bool			leftover;
	bool			judged;
	int			wc_flags;
	struct sk_buff		*copies;
	bool			copied;
};

/* ---------------------------------------------------------------- headers of a frame */

static void sroce_flow_parse_ports(struct sroce_flow_key *key, const struct sk_buff *skb, int at)
{
	const __be16 *ports;
	__be16 buf[2];

	if (key->protocol != IPPROTO_TCP && key->protocol != IPPROTO_UDP)
		return;
	ports = skb_header_pointer(skb, at, sizeof(buf), buf);
	if (!ports)
		return;
	key->l4 = 1;
	key->sport = ports[0];
	key->dport = ports[1];
}

static void sroce_flow_parse_ipv4(struct sroce_flow_key *key, const struct sk_buff *skb, int at)
{
	const struct iphdr *ip;
	struct iphdr buf;

	ip = skb_header_pointer(skb, at, sizeof(buf), &buf);
	if (!ip || ip->version != 4 || ip->ihl < 5)
		return;
	key->l3 = 4;
	memcpy(key->saddr, &ip->saddr, sizeof(ip->saddr));
	memcpy(key->daddr, &ip->daddr, sizeof(ip->daddr));
	key->protocol = ip->protocol;
	key->tos = ip->tos;
	key->ttl = ip->ttl;
	key->flags = (ip->frag_off & htons(IP_DF) ? IB_IPV4_DONT_FRAG : 0) |
		     (ip_is_fragment(ip) ? IB_IPV4_MORE_FRAG : 0);
	if (!(ip->frag_off & htons(IP_OFFSET)))
		sroce_flow_parse_ports(key, skb, at + ip->ihl * 4);
}

static void sroce_flow_parse_ipv6(struct sroce_flow_key *key, const struct sk_buff *skb, int at)
{
	const struct ipv6hdr *ip;
	struct ipv6hdr buf;

	ip = skb_header_pointer(skb, at, sizeof(buf), &buf);
	if (!ip || ip->version != 6)
		return;
	key->l3 = 6;
	memcpy(key->saddr, &ip->saddr, sizeof(ip->saddr));
	memcpy(key->daddr, &ip->daddr, sizeof(ip->daddr));
	key->label = ip6_flowlabel(ip);
	key->protocol = ip->nexthdr;
	key->tos = ipv6_get_dsfield(ip);
	key->ttl = ip->hop_limit;
	sroce_flow_parse_ports(key, skb, at + sizeof(*ip));
}

/* The headers of a frame whose MAC header is set, wherever its data begins */
static void sroce_flow_parse(struct sroce_flow_key *key, const struct sk_buff *skb)
{
	const struct ethhdr *eth = eth_hdr(skb);
	int at = skb_mac_offset(skb) + ETH_HLEN;

	memset(key, 0, sizeof(*key));
	ether_addr_copy(key->dst, eth->h_dest);
	ether_addr_copy(key->src, eth->h_source);
	key->type = eth->h_proto;
	if (skb_vlan_tag_present(skb)) {	/* taken out of the frame */
		key->tagged = 1;
		key->tci = htons(skb_vlan_tag_get(skb));
	} else if (eth_type_vlan(eth->h_proto)) {
		const struct vlan_hdr *vlan;
		struct vlan_hdr buf;

		vlan = skb_header_pointer(skb, at, sizeof(buf), &buf);
		if (!vlan)
			return;
		key->tagged = 1;
		key->tci = vlan->h_vlan_TCI;
		key->type = vlan->h_vlan_encapsulated_proto;
		at += sizeof(*vlan);
	}
	if (key->type == htons(ETH_P_IP))
		sroce_flow_parse_ipv4(key, skb, at);
	else if (key->type == htons(ETH_P_IPV6))
		sroce_flow_parse_ipv6(key, skb, at);
}

/* Is it a rule that adds its address to those of the net device? */
static bool sroce_flow_has_address(const struct sroce_flow *flow)
{
	return flow->type == IB_FLOW_ATTR_NORMAL && is_broadcast_ether_addr(flow->mask.dst) &&
	       !is_broadcast_ether_addr(flow->value.dst) && !is_zero_ether_addr(flow->value.dst);
}

/* How many rules have added this address */
static int sroce_flow_users(const struct sroce_dev *dev, const u8 *addr)
{
	const struct sroce_flow *flow;
	int n = 0;

	list_for_each_entry_rcu(flow, &dev->flows, list)
		n += READ_ONCE(flow->filtered) && sroce_flow_has_address(flow) &&
		     ether_addr_equal(flow->value.dst, addr);
	return n;
}

/*
 * Has anybody else added this address to one of the net device's lists?  The list is
 * read under RCU: a driver may hold here what it takes inside the list's lock.
 */
static bool sroce_flow_in_list(const struct sroce_dev *dev, struct netdev_hw_addr_list *list,
			       const u8 *addr)
{
	struct netdev_hw_addr *ha;

	list_for_each_entry_rcu(ha, &list->list, list)
		if (!memcmp(ha->addr, addr, ETH_ALEN))
			return READ_ONCE(ha->refcount) - READ_ONCE(ha->sync_cnt) >
			       sroce_flow_users(dev, addr);
	return false;
}

/* Is it a frame that this host's stack has no use for? */
static bool sroce_flow_leftover(const struct sroce_dev *dev, const struct sk_buff *skb,
				const u8 *dst)
{
	struct net_device *netdev = skb->dev;

	if (rcu_access_pointer(netdev->rx_handler) || is_broadcast_ether_addr(dst))
		return false;
	if (is_multicast_ether_addr(dst))
		return !sroce_flow_in_list(dev, &netdev->mc, dst);
	return skb->pkt_type == PACKET_OTHERHOST && !sroce_flow_in_list(dev, &netdev->uc, dst);
}

/* ---------------------------------------------------------------- frames to queue pairs */

/* A copy of one frame as it was on the wire: linear, with its tag and its checksums, or NULL */
static struct sk_buff *sroce_flow_complete(struct sk_buff *skb)
{
	if (skb->ip_summed == CHECKSUM_PARTIAL && skb_csum_hwoffload_help(skb, 0))
		goto drop;
	if (skb_vlan_tag_present(skb)) {
		skb = __vlan_hwaccel_push_inside(skb);
		if (!skb)
			return NULL;
	}
	if (skb_linearize(skb))
		goto drop;
	return skb;

drop:
	kfree_skb(skb);
	return NULL;
}

/* Copies of the frames that this one was made from; NULL when there is no memory */
static struct sk_buff *sroce_flow_copy(struct sk_buff *skb)
{
	struct sk_buff *copy, *next, *first = NULL, **last = &first;

	copy = skb_clone(skb, GFP_ATOMIC);
	if (!copy)
		return NULL;
	skb_push(copy, -skb_mac_offset(copy));
	if (skb_is_gso(copy)) {
		struct sk_buff *segments = __skb_gso_segment(copy, 0, false);

		if (IS_ERR(segments)) {
			kfree_skb(copy);
			return NULL;
		}
		if (segments) {
			consume_skb(copy);
			copy = segments;
		}
	}
	for (; copy; copy = next) {
		next = copy->next;
		skb_mark_not_on_list(copy);
		*last = sroce_flow_complete(copy);
		if (*last)
			last = &(*last)->next;
	}
	return first;
}

/* Did somebody check the sums of TCP or UDP, and is that of an IPv4 header right too? */
static bool sroce_flow_checksum_ok(const struct sroce_flow_frame *frame)
{
	const struct ethhdr *eth;
	const struct iphdr *ip;

	if (!frame->copies || !frame->key.l4 || (frame->skb->ip_summed != CHECKSUM_UNNECESSARY &&
						 frame->skb->ip_summed != CHECKSUM_PARTIAL))
		return false;
	if (frame->key.l3 != 4)
		return true;
	eth = (const struct ethhdr *)frame->copies->data;
	ip = (const void *)(eth + 1) + (eth_type_vlan(eth->h_proto) ? VLAN_HLEN : 0);
	return !ip_fast_csum(ip, ip->ihl);
}

static void sroce_flow_give(const struct sroce_flow *flow, struct sroce_flow_frame *frame)
{
	struct sroce_qp *qp = flow->qp;

	if (flow->drop)
		return;
	if (!frame->copied) {
		frame->copied = true;
		frame->copies = sroce_flow_copy(frame->skb);
		frame->wc_flags = sroce_flow_checksum_ok(frame) ? IB_WC_IP_CSUM_OK : 0;
	}
	if (!kref_get_unless_zero(&qp->ref))
		return;
	if (qp->rss)
		sroce_rss_receive(qp, &frame->key, frame->copies, frame->wc_flags);
	else
		sroce_raw_receive(qp, frame->copies, frame->wc_flags);
	sroce_qp_put(qp);
}

static bool sroce_flow_is_leftover(struct sroce_flow_frame *frame)
{
	if (!frame->judged) {
		frame->judged = true;
		frame->leftover = sroce_flow_leftover(frame->dev, frame->skb, frame->key.dst);
	}
	return frame->leftover;
}

static bool sroce_flow_matches(const struct sroce_flow *flow, struct sroce_flow_frame *frame)
{
	const u64 *mask = (const u64 *)&flow->mask;
	const u64 *value = (const u64 *)&flow->value;
	const u64 *key = (const u64 *)&frame->key;
	u64 differs = 0;
	unsigned int i;

	switch (flow->type) {
	case IB_FLOW_ATTR_SNIFFER:
		return true;
	case IB_FLOW_ATTR_MC_DEFAULT:
		return is_multicast_ether_addr(frame->key.dst) && sroce_flow_is_leftover(frame);
	case IB_FLOW_ATTR_ALL_DEFAULT:
		return sroce_flow_is_leftover(frame);
	}
	for (i = 0; i < sizeof(flow->mask) / sizeof(*mask); i++)
		differs |= (key[i] ^ value[i]) & mask[i];
	return !differs;
}

/* Two rules that say the same: both get the frame */
static bool sroce_flow_same(const struct sroce_flow *a, const struct sroce_flow *b)
{
	return a->rank == b->rank && !memcmp(&a->value, &b->value, sizeof(a->value)) &&
	       !memcmp(&a->mask, &b->mask, sizeof(a->mask));
}

/* Gives a frame to whom it is for; true when the stack is not to see it */
static bool sroce_flow_steer(const struct sroce_dev *dev, struct sroce_flow_frame *frame)
{
	const struct sroce_flow *flow, *taken = NULL;

	list_for_each_entry_rcu(flow, &dev->flows, list) {
		if (taken && flow->rank != taken->rank)
			break;
		if (taken ? !sroce_flow_same(flow, taken) : !sroce_flow_matches(flow, frame))
			continue;
		sroce_flow_give(flow, frame);
		if (!flow->copy)
			taken = flow;
	}
	kfree_skb_list(frame->copies);
	return taken;
}

static unsigned int sroce_flow_ingress(void *priv, struct sk_buff *skb,
				       const struct nf_hook_state *state)
{
	struct sroce_dev *dev = priv;
	struct sroce_flow_frame frame = { .dev = dev, .skb = skb };

	if (!skb_mac_header_was_set(skb) || skb_mac_offset(skb) > -ETH_HLEN)
		return NF_ACCEPT;
	sroce_flow_parse(&frame.key, skb);
	if (!sroce_flow_steer(dev, &frame))
		return NF_ACCEPT;
	local_bh_disable();
	sroce_count(dev, SROCE_CNT_RCVD_FRAMES);
	local_bh_enable();
	consume_skb(skb);
	return NF_STOLEN;
}

/* Queue pairs that answer each other from within each other's loops, at the most */
#define SROCE_FLOW_DEPTH	4

static DEFINE_PER_CPU(unsigned int, sroce_flow_depth);

/**
 * sroce_flow_loopback - give a frame that is sent to the rules here
 * @dev: device
 * @skb: frame, its data at the Ethernet header; not consumed
 *
 * A NIC does so with what is for its own address or for a group.  From a loopback device
 * all comes back anyway.  Who receives may send at once what others have posted to him:
 * what that leads to ends at some depth, and frames are lost.
 * Context: RCU read section, softirqs disabled, no lock held.
 */
void sroce_flow_loopback(struct sroce_dev *dev, struct sk_buff *skb)
{
	struct sroce_flow_frame frame = { .dev = dev, .skb = skb };
	const u8 *dst = eth_hdr(skb)->h_dest;

	if (list_empty(&dev->flows) || skb->dev->flags & IFF_LOOPBACK ||
	    !(is_multicast_ether_addr(dst) || ether_addr_equal(dst, skb->dev->dev_addr)))
		return;
	if (__this_cpu_inc_return(sroce_flow_depth) <= SROCE_FLOW_DEPTH) {
		sroce_flow_parse(&frame.key, skb);
		sroce_flow_steer(dev, &frame);
	}
	__this_cpu_dec(sroce_flow_depth);
}

/* ---------------------------------------------------------------- rules */

/* Frames that the rule wants may have to be let in by the net device */
static int sroce_flow_filter(struct sroce_flow *flow, struct net_device *netdev, bool want)
{
	int err = 0;

	if (flow->filtered == want)
		return 0;
	switch (flow->type) {
	case IB_FLOW_ATTR_SNIFFER:
	case IB_FLOW_ATTR_ALL_DEFAULT:
		err = dev_set_promiscuity(netdev, want ? 1 : -1);
		break;
	case IB_FLOW_ATTR_MC_DEFAULT:
		err = dev_set_allmulti(netdev, want ? 1 : -1);
		break;
	default:
		if (!sroce_flow_has_address(flow))
			return 0;
		if (is_multicast_ether_addr(flow->value.dst))
			err = want ? dev_mc_add(netdev, flow->value.dst) :
				     dev_mc_del(netdev, flow->value.dst);
		else
			err = want ? dev_uc_add(netdev, flow->value.dst) :
				     dev_uc_del(netdev, flow->value.dst);
	}
	if (!err)
		WRITE_ONCE(flow->filtered, want);
	return err;
}

static int sroce_flow_hook(struct sroce_dev *dev, struct net_device *netdev)
{
	if (!SROCE_FLOW_STEERING)
		return -EOPNOTSUPP;
	dev->flow_hook = (struct nf_hook_ops) {
		.hook = sroce_flow_ingress,
		.dev = netdev,
		.priv = dev,
		.pf = NFPROTO_NETDEV,
		.hooknum = NF_NETDEV_INGRESS,
		.priority = INT_MIN,	/* as if the host never saw the frame */
	};
	return nf_register_net_hook(dev_net(netdev), &dev->flow_hook);
}

static void sroce_flow_unhook(struct sroce_dev *dev, struct net_device *netdev)
{
	nf_unregister_net_hook(dev_net(netdev), &dev->flow_hook);
}

/* Puts a rule in its place, behind those of the same rank; under rtnl */
static void sroce_flow_insert(struct sroce_dev *dev, struct sroce_flow *flow)
{
	struct list_head *at = &dev->flows;
	struct sroce_flow *other;

	list_for_each_entry(other, &dev->flows, list)
		if (other->rank > flow->rank)
			break;
	at = &other->list;	/* the list's head, when there was none */
	list_add_tail_rcu(&flow->list, at);
	dev->flow_count++;
}

static int sroce_flow_add(struct sroce_dev *dev, struct sroce_flow *flow)
{
	struct net_device *netdev;
	int err;

	ASSERT_RTNL();
	netdev = rtnl_dereference(dev->netdev);
	if (!netdev)
		return -ENODEV;
	if (dev->flow_count >= SROCE_MAX_FLOWS)
		return -ENOSPC;
	err = sroce_flow_filter(flow, netdev, true);
	if (err)
		return err;
	if (!dev->flow_count) {
		err = sroce_flow_hook(dev, netdev);
		if (err) {
			sroce_flow_filter(flow, netdev, false);
			return err;
		}
	}
	sroce_flow_insert(dev, flow);
	return 0;
}

/**
 * sroce_flow_unbind - the net device goes away: let go of it
 * @dev: device
 * @netdev: its net device
 *
 * The rules stay until they are destroyed, and match nothing.
 * Context: rtnl.
 */
void sroce_flow_unbind(struct sroce_dev *dev, struct net_device *netdev)
{
	struct sroce_flow *flow;

	if (!dev->flow_count)
		return;
	sroce_flow_unhook(dev, netdev);
	list_for_each_entry(flow, &dev->flows, list)
		sroce_flow_filter(flow, netdev, false);
}

/**
 * sroce_flow_moved - the net device is in another net namespace now
 * @dev: device
 * @netdev: its net device, which has lost all addresses that were added
 *
 * Context: rtnl.
 */
void sroce_flow_moved(struct sroce_dev *dev, struct net_device *netdev)
{
	struct sroce_flow *flow;

	list_for_each_entry(flow, &dev->flows, list) {
		if (!flow->filtered || !sroce_flow_has_address(flow))
			continue;
		flow->filtered = false;
		if (sroce_flow_filter(flow, netdev, true))
			ibdev_warn(&dev->ibdev, "a flow steering rule has lost its address\n");
	}
}

/* Sets a part of what a rule matches; -EINVAL when it contradicts what is set already */
static int sroce_flow_set(struct sroce_flow *flow, void *part, const void *value,
			  const void *mask, size_t bytes)
{
	u8 *v = part, *m = (u8 *)&flow->mask + (v - (u8 *)&flow->value);
	size_t i;

	for (i = 0; i < bytes; i++) {
		u8 vi = ((const u8 *)value)[i], mi = ((const u8 *)mask)[i];

		if ((v[i] ^ vi) & m[i] & mi)
			return -EINVAL;
		m[i] |= mi;
		v[i] |= vi & mi;	/* what is outside of the mask says nothing */
	}
	return 0;
}

#define SROCE_FLOW_SET(flow, member, spec, from) \
	sroce_flow_set(flow, &(flow)->value.member, &(spec)->val.from, &(spec)->mask.from, \
		       sizeof((spec)->val.from))

static int sroce_flow_set_byte(struct sroce_flow *flow, u8 *part, u8 value)
{
	const u8 all = 0xff;

	return sroce_flow_set(flow, part, &value, &all, sizeof(all));
}

static int sroce_flow_set_type(struct sroce_flow *flow, u16 type)
{
	const __be16 value = htons(type), all = htons(0xffff);

	return sroce_flow_set(flow, &flow->value.type, &value, &all, sizeof(all));
}

static int sroce_flow_spec_eth(struct sroce_flow *flow, const struct ib_flow_spec_eth *spec)
{
	int err = SROCE_FLOW_SET(flow, dst, spec, dst_mac);

	if (!err)
		err = SROCE_FLOW_SET(flow, src, spec, src_mac);
	if (!err)
		err = SROCE_FLOW_SET(flow, type, spec, ether_type);
	if (err || !spec->mask.vlan_tag)
		return err;
	err = SROCE_FLOW_SET(flow, tci, spec, vlan_tag);
	return err ?: sroce_flow_set_byte(flow, &flow->value.tagged, 1);
}

static int sroce_flow_spec_ipv4(struct sroce_flow *flow, const struct ib_flow_spec_ipv4 *spec)
{
	int err = sroce_flow_set_type(flow, ETH_P_IP);

	if (!err)
		err = sroce_flow_set_byte(flow, &flow->value.l3, 4);
	if (!err)
		err = SROCE_FLOW_SET(flow, saddr, spec, src_ip);
	if (!err)
		err = SROCE_FLOW_SET(flow, daddr, spec, dst_ip);
	if (!err)
		err = SROCE_FLOW_SET(flow, protocol, spec, proto);
	if (!err)
		err = SROCE_FLOW_SET(flow, tos, spec, tos);
	if (!err)
		err = SROCE_FLOW_SET(flow, ttl, spec, ttl);
	return err ?: SROCE_FLOW_SET(flow, flags, spec, flags);
}

static int sroce_flow_spec_ipv6(struct sroce_flow *flow, const struct ib_flow_spec_ipv6 *spec)
{
	int err = sroce_flow_set_type(flow, ETH_P_IPV6);

	if (!err)
		err = sroce_flow_set_byte(flow, &flow->value.l3, 6);
	if (!err)
		err = SROCE_FLOW_SET(flow, saddr, spec, src_ip);
	if (!err)
		err = SROCE_FLOW_SET(flow, daddr, spec, dst_ip);
	if (!err)
		err = SROCE_FLOW_SET(flow, label, spec, flow_label);
	if (!err)
		err = SROCE_FLOW_SET(flow, protocol, spec, next_hdr);
	if (!err)
		err = SROCE_FLOW_SET(flow, tos, spec, traffic_class);
	return err ?: SROCE_FLOW_SET(flow, ttl, spec, hop_limit);
}

static int sroce_flow_spec_ports(struct sroce_flow *flow, const struct ib_flow_spec_tcp_udp *spec,
				 u8 protocol)
{
	int err = sroce_flow_set_byte(flow, &flow->value.protocol, protocol);

	if (!err)
		err = sroce_flow_set_byte(flow, &flow->value.l4, 1);
	if (!err)
		err = SROCE_FLOW_SET(flow, sport, spec, src_port);
	return err ?: SROCE_FLOW_SET(flow, dport, spec, dst_port);
}

static int sroce_flow_spec(struct sroce_flow *flow, const union ib_flow_spec *spec)
{
	switch (spec->type) {
	case IB_FLOW_SPEC_ETH:
		return sroce_flow_spec_eth(flow, &spec->eth);
	case IB_FLOW_SPEC_IPV4:
		return sroce_flow_spec_ipv4(flow, &spec->ipv4);
	case IB_FLOW_SPEC_IPV6:
		return sroce_flow_spec_ipv6(flow, &spec->ipv6);
	case IB_FLOW_SPEC_TCP:
		return sroce_flow_spec_ports(flow, &spec->tcp_udp, IPPROTO_TCP);
	case IB_FLOW_SPEC_UDP:
		return sroce_flow_spec_ports(flow, &spec->tcp_udp, IPPROTO_UDP);
	case IB_FLOW_SPEC_ACTION_DROP:
		flow->drop = true;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

/* All specifications; they are behind the attributes, one behind the other */
static int sroce_flow_specs(struct sroce_flow *flow, const struct ib_flow_attr *attr)
{
	const void *at = attr + 1;
	int i, err = 0;

	for (i = 0; i < attr->num_of_specs && !err; i++) {
		const union ib_flow_spec *spec = at;

		err = sroce_flow_spec(flow, spec);
		at += spec->size;
	}
	return err;
}

static int sroce_flow_check(const struct sroce_qp *qp, const struct ib_flow_attr *attr)
{
	if (!sroce_qp_is_raw(qp) || attr->flags & ~(u32)IB_FLOW_ATTR_FLAGS_DONT_TRAP)
		return -EOPNOTSUPP;
	switch (attr->type) {
	case IB_FLOW_ATTR_NORMAL:
		return 0;
	case IB_FLOW_ATTR_SNIFFER:
	case IB_FLOW_ATTR_MC_DEFAULT:
	case IB_FLOW_ATTR_ALL_DEFAULT:
		return attr->num_of_specs || attr->flags ? -EINVAL : 0;
	default:
		return -EINVAL;
	}
}

/* Lower is first, 17 bits of each */
static u32 sroce_flow_rank(const struct ib_flow_attr *attr)
{
	switch (attr->type) {
	case IB_FLOW_ATTR_SNIFFER:
		return 0;
	case IB_FLOW_ATTR_MC_DEFAULT:
		return 2 << 17 | attr->priority;
	case IB_FLOW_ATTR_ALL_DEFAULT:
		return 3 << 17 | attr->priority;
	default:
		return 1 << 17 | attr->priority;
	}
}

/**
 * sroce_create_flow - ib_device_ops.create_flow
 * @ibqp: queue pair that is to get the frames
 * @attr: the rule; the core looked at lengths
 * @udata: nothing in it
 *
 * Context: process, takes rtnl.
 * Return: the rule; -EINVAL for one that contradicts itself; -EOPNOTSUPP for what it asks
 * and we do not have; -ENOSPC when there are too many; -ENODEV without a net device; -ENOMEM.
 */
struct ib_flow *sroce_create_flow(struct ib_qp *ibqp, struct ib_flow_attr *attr,
				  struct ib_udata *udata)
{
	struct sroce_qp *qp = to_sqp(ibqp);
	struct sroce_flow *flow;
	int err;

	err = sroce_flow_check(qp, attr);
	if (err)
		return ERR_PTR(err);
	flow = kzalloc(sizeof(*flow), GFP_KERNEL_ACCOUNT);
	if (!flow)
		return ERR_PTR(-ENOMEM);
	flow->qp = qp;
	flow->type = attr->type;
	flow->rank = sroce_flow_rank(attr);
	flow->copy = attr->type == IB_FLOW_ATTR_SNIFFER ||
		     attr->flags & IB_FLOW_ATTR_FLAGS_DONT_TRAP;
	err = sroce_flow_specs(flow, attr);
	if (!err) {
		rtnl_lock();
		err = sroce_flow_add(qp->dev, flow);
		rtnl_unlock();
	}
	if (err) {
		kfree(flow);
		return ERR_PTR(err);
	}
	return &flow->ibflow;
}

/**
 * sroce_destroy_flow - ib_device_ops.destroy_flow
 * @ibflow: rule
 *
 * A frame that met it before may be on its way to the queue pair.
 * Context: process, takes rtnl.  Return: 0.
 */
int sroce_destroy_flow(struct ib_flow *ibflow)
{
	struct sroce_flow *flow = container_of(ibflow, struct sroce_flow, ibflow);
	struct sroce_dev *dev = flow->qp->dev;
	struct net_device *netdev;

	rtnl_lock();
	netdev = rtnl_dereference(dev->netdev);
	list_del_rcu(&flow->list);
	dev->flow_count--;
	if (netdev) {
		sroce_flow_filter(flow, netdev, false);
		if (!dev->flow_count)
			sroce_flow_unhook(dev, netdev);
	}
	rtnl_unlock();
	kfree_rcu(flow, rcu);
	return 0;
}
