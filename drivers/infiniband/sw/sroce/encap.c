// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * RoCEv2: transport packets in UDP datagrams (IBA annex A17).
 *
 * Consecutive packets of a flow with equal length, the last may be shorter,
 * leave as one skb that the stack treats as one datagram to be segmented
 * (SKB_GSO_UDP_L4).  Each packet in it is complete: own BTH, own ICRC, the
 * latter computed with the IPv4 ID and the lengths that it will have when
 * somebody segments it.
 */
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <net/inet_common.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ip6_route.h>
#include <net/route.h>
#include <net/sch_generic.h>
#include <net/sock.h>
#include <net/udp.h>
#include <rdma/ib_cache.h>
#include "ah.h"
#include "compat.h"
#include "device.h"
#include "encap.h"
#include "gid.h"
#include "icrc.h"

#define SROCE_BURST_PACKETS	64	/* as many as UDP sockets allow */
#define SROCE_PACKET_MAX	(4096 + 128)

#define SROCE_PAGES		16
#define SROCE_PAGE_ORDER	3

/*
 * Where packets are built: stretches of memory that frames take references to.
 * They are used in turn, and again when no frame has them any more, which is
 * cheaper than to allocate, and the caches know them.  Per CPU, softirqs
 * disabled.
 */
struct sroce_pages {
	struct page	*pages[SROCE_PAGES];
	u32		size[SROCE_PAGES];
	u32		current_page;
	u32		offset;
};

static DEFINE_PER_CPU(struct sroce_pages, sroce_pages);

/* Where a received packet is put together that lies in several pieces, per CPU */
static u8 __percpu *sroce_bounce;

/**
 * sroce_encap_init - allocate what the encapsulation needs
 *
 * Context: process.  Return: 0 or -ENOMEM.
 */
int sroce_encap_init(void)
{
	sroce_bounce = __alloc_percpu(SROCE_PACKET_MAX, 64);
	return sroce_bounce ? 0 : -ENOMEM;
}

/**
 * sroce_encap_exit - the reverse of sroce_encap_init(); nothing is sent any more
 */
void sroce_encap_exit(void)
{
	int cpu, i;

	for_each_possible_cpu(cpu) {
		struct sroce_pages *p = per_cpu_ptr(&sroce_pages, cpu);

		for (i = 0; i < SROCE_PAGES; i++)
			if (p->pages[i])
				put_page(p->pages[i]);
	}
	free_percpu(sroce_bounce);
}

static u32 sroce_ip_bytes(const struct sroce_av *av)
{
	return av->v6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
}

static struct dst_entry *sroce_route_ipv4(const struct sroce_av *av, struct net_device *netdev)
{
	struct flowi4 fl4 = {
		.flowi4_oif = netdev->ifindex,
		.flowi4_proto = IPPROTO_UDP,
		.saddr = av->ip4.saddr,
		.daddr = av->ip4.daddr,
		.fl4_sport = av->udp.source,
		.fl4_dport = av->udp.dest,
	};
	struct rtable *rt;

	sroce_flowi4_set_tos(&fl4, av->ip4.tos);
	rt = ip_route_output_key(dev_net(netdev), &fl4);
	return IS_ERR(rt) ? NULL : &rt->dst;
}

static struct dst_entry *sroce_route_ipv6(const struct sroce_av *av, struct net_device *netdev)
{
#if IS_ENABLED(CONFIG_IPV6)
	struct flowi6 fl6 = {
		.flowi6_oif = netdev->ifindex,
		.flowi6_proto = IPPROTO_UDP,
		.saddr = av->ip6.saddr,
		.daddr = av->ip6.daddr,
		.flowlabel = ip6_flowinfo(&av->ip6),
		.fl6_sport = av->udp.source,
		.fl6_dport = av->udp.dest,
	};
	struct dst_entry *dst = ip6_route_output(dev_net(netdev), NULL, &fl6);

	if (!dst->error)
		return dst;
	dst_release(dst);
#endif
	return NULL;
}

/*
 * The net device of the source address.  The core takes addresses back and adds them again
 * when a bond fails over or an administrator does; a connection holds on to the old entry.
 * Another net device may have the same address, in another VLAN or namespace: it is not the
 * connection's.
 */
static struct net_device *sroce_source_netdev(struct sroce_av *av)
{
	struct net_device *netdev = rdma_read_gid_attr_ndev_rcu(av->sgid_attr);

	if (IS_ERR_OR_NULL(netdev))
		return sroce_gid_netdev_of(av->dev, &av->sgid_attr->gid, av->ifindex, av->home);
	av->ifindex = netdev->ifindex;
	av->home = dev_net(netdev)->net_cookie;
	return netdev;
}

/* Notes whose the route is as well: its net device may be another by the time it is known */
static struct dst_entry *sroce_route_lookup(struct sroce_av *av)
{
	struct dst_entry *dst = NULL;
	struct net_device *netdev;

	rcu_read_lock();
	netdev = sroce_source_netdev(av);
	if (netdev)
		dst = av->v6 ? sroce_route_ipv6(av, netdev) : sroce_route_ipv4(av, netdev);
	av->net = dst ? dev_net(netdev) : NULL;
	rcu_read_unlock();
	return dst;
}

/* The route of an address vector, with a reference of the caller's, or NULL */
static struct dst_entry *sroce_route(struct sroce_av *av)
{
	struct dst_entry *dst;

	spin_lock_bh(&av->lock);
	dst = av->dst;
	if (dst && dst->obsolete && !dst->ops->check(dst, av->cookie)) {
		dst_release(dst);
		dst = NULL;
		av->dst = NULL;
	}
	if (!dst) {
		dst = sroce_route_lookup(av);
		av->dst = dst;
#if IS_ENABLED(CONFIG_IPV6)
		if (dst && av->v6)
			av->cookie = rt6_get_cookie(container_of(dst, struct rt6_info, dst));
#endif
	}
	if (dst)
		dst_hold(dst);
	spin_unlock_bh(&av->lock);
	return dst;
}

/* Is fq the queueing discipline, which sends no frame before its time? */
static bool sroce_netdev_paces(const struct net_device *netdev)
{
	bool paces;

	rcu_read_lock();
	paces = !strcmp(rcu_dereference(netdev_get_tx_queue(netdev, 0)->qdisc)->ops->id, "fq");
	rcu_read_unlock();
	return paces;
}

/* How many packets of this length one frame may have on this route */
static u32 sroce_burst_limit(const struct net_device *netdev, u32 headers, u32 length)
{
	u32 bytes = min_t(u32, READ_ONCE(netdev->gso_max_size), IP_MAX_MTU) - headers;
	u32 packets = min_t(u32, READ_ONCE(netdev->gso_max_segs), SROCE_BURST_PACKETS);

	return clamp(bytes / length, 1u, packets ?: 1);
}

/**
 * sroce_burst_begin - begin a frame
 * @burst: burst that has none
 * @av: where it goes
 * @id: IPv4 ID of its first packet; each further one has the next
 * @length: length of its first packet, from the BTH to the ICRC, bytes
 *
 * Context: softirqs disabled.  Return: 0; -ENOMEM; -ENETUNREACH when there is
 * no route now, which is to be treated as loss on the way.
 */
int sroce_burst_begin(struct sroce_burst *burst, struct sroce_av *av, u16 id, u32 length)
{
	u32 headers = sroce_ip_bytes(av) + sizeof(struct udphdr);
	u32 headroom;

	burst->dst = sroce_route(av);
	if (!burst->dst) {
		sroce_count(av->dev, SROCE_CNT_NO_ROUTE);
		return -ENETUNREACH;
	}
	headroom = LL_RESERVED_SPACE(burst->dst->dev) + headers;
	burst->skb = alloc_skb(headroom, GFP_ATOMIC | __GFP_NOWARN);
	if (!burst->skb) {
		dst_release(burst->dst);
		return -ENOMEM;
	}
	skb_reserve(burst->skb, headroom);
	kref_get(&av->ref);
	burst->av = av;
	burst->first_id = id;
	burst->segment = length;
	burst->packets = 0;
	burst->max_packets = sroce_burst_limit(burst->dst->dev, headers, length);
	burst->closed = false;
	burst->ect = false;
	burst->cnp = false;
	burst->departs = 0;
	return 0;
}

/**
 * sroce_burst_pace - say when the frame is to leave, where somebody sees to it
 * @burst: burst with a frame
 * @departs: when, monotonic time
 */
void sroce_burst_pace(struct sroce_burst *burst, ktime_t departs)
{
	bool paced = sroce_netdev_paces(burst->dst->dev);

	WRITE_ONCE(burst->av->paced, paced);
	if (paced)
		burst->departs = departs;
}

/**
 * sroce_burst_fits - can a packet be added to the frame?
 * @burst: burst, perhaps without a frame
 * @av: where the packet goes
 * @length: its length, from the BTH to the ICRC, bytes
 *
 * Return: whether there is a frame and it can take the packet.
 */
bool sroce_burst_fits(const struct sroce_burst *burst, const struct sroce_av *av, u32 length)
{
	return burst->skb && burst->av == av && !burst->closed && length <= burst->segment &&
	       burst->packets < burst->max_packets;
}

static struct page *sroce_pages_alloc(u32 length, u32 *size)
{
	const gfp_t gfp = GFP_ATOMIC | __GFP_NOWARN | __GFP_COMP;
	unsigned int order = SROCE_PAGE_ORDER;
	struct page *page;

	page = alloc_pages((gfp | __GFP_NORETRY) & ~__GFP_HIGH, order);
	if (!page) {
		order = get_order(length);
		page = alloc_pages(gfp, order);
	}
	*size = PAGE_SIZE << order;
	return page;
}

/* Makes the next stretch the current one; false when there is no memory */
static bool sroce_pages_next(struct sroce_pages *p, u32 length)
{
	u32 next = (p->current_page + 1) % SROCE_PAGES;
	struct page *page = p->pages[next];

	if (!page || page_ref_count(page) != 1 || p->size[next] < length) {
		struct page *fresh = sroce_pages_alloc(length, &p->size[next]);

		p->pages[next] = fresh;
		if (page)
			put_page(page);
		if (!fresh)
			return false;
	}
	p->current_page = next;
	p->offset = 0;
	return true;
}

static bool sroce_pages_room(struct sroce_pages *p, u32 length)
{
	if (p->pages[p->current_page] && p->offset + length <= p->size[p->current_page])
		return true;
	return sroce_pages_next(p, length);
}

/**
 * sroce_burst_add - make room for a packet
 * @burst: burst with a frame that the packet fits
 * @length: its length, from the BTH to the ICRC, bytes
 *
 * Context: softirqs disabled.  Return: where to build it, contiguous, or NULL
 * when there is no memory, or no room in the frame that the page's end leaves;
 * the frame is as it was.
 */
void *sroce_burst_add(struct sroce_burst *burst, u32 length)
{
	struct sroce_pages *p = this_cpu_ptr(&sroce_pages);
	struct sk_buff *skb = burst->skb;
	int i = skb_shinfo(skb)->nr_frags;
	struct page *page;
	void *packet;

	if (!sroce_pages_room(p, length))
		return NULL;
	page = p->pages[p->current_page];
	packet = page_address(page) + p->offset;
	if (skb_can_coalesce(skb, i, page, p->offset)) {
		skb_frag_size_add(&skb_shinfo(skb)->frags[i - 1], length);
	} else {
		if (i == MAX_SKB_FRAGS)
			return NULL;
		get_page(page);
		skb_fill_page_desc(skb, i, page, p->offset, length);
	}
	p->offset += length;
	skb->len += length;
	skb->data_len += length;
	skb->truesize += length;
	burst->packets++;
	burst->last = packet;
	burst->last_bytes = length;
	if (length < burst->segment)
		burst->closed = true;
	return packet;
}

/**
 * sroce_burst_remove - take the packet back that was added last
 * @burst: its burst
 * @length: its length, from the BTH to the ICRC, bytes
 *
 * Context: softirqs disabled since it was added.
 */
void sroce_burst_remove(struct sroce_burst *burst, u32 length)
{
	struct sk_buff *skb = burst->skb;
	struct skb_shared_info *info = skb_shinfo(skb);
	skb_frag_t *frag = &info->frags[info->nr_frags - 1];

	this_cpu_ptr(&sroce_pages)->offset -= length;
	skb_frag_size_sub(frag, length);
	if (!skb_frag_size(frag)) {
		put_page(skb_frag_page(frag));
		info->nr_frags--;
		frag--;
	}
	skb->len -= length;
	skb->data_len -= length;
	skb->truesize -= length;
	burst->packets--;
	burst->closed = false;
	if (burst->packets) {
		burst->last = skb_frag_address(frag) + skb_frag_size(frag) - burst->segment;
		burst->last_bytes = burst->segment;
	}
}

/**
 * sroce_burst_seal - compute a packet's ICRC
 * @burst: its burst; it is the packet that was added last
 * @packet: the packet
 * @length: its length, from the BTH to the ICRC, bytes
 */
void sroce_burst_seal(struct sroce_burst *burst, void *packet, u32 length)
{
	u16 udp_len = sizeof(struct udphdr) + length;
	const struct sroce_av *av = burst->av;
	u32 body = length - SROCE_ICRC_BYTES;
	__le32 icrc;
	u32 seed;

	if (av->v6)
		seed = sroce_icrc_ipv6(&av->ip6, &av->udp, udp_len);
	else
		seed = sroce_icrc_ipv4(&av->ip4, &av->udp,
				       burst->first_id + burst->packets - 1, udp_len);
	icrc = sroce_icrc_packet(seed, packet, body);
	memcpy(packet + body, &icrc, sizeof(icrc));
}

static void sroce_push_ip(struct sk_buff *skb, const struct sroce_av *av, u16 id)
{
	u32 payload = skb->len;

	skb_push(skb, sroce_ip_bytes(av));
	skb_reset_network_header(skb);
	if (av->v6) {
		*ipv6_hdr(skb) = av->ip6;
		ipv6_hdr(skb)->payload_len = htons(payload);
		skb->protocol = htons(ETH_P_IPV6);
	} else {
		*ip_hdr(skb) = av->ip4;
		ip_hdr(skb)->id = htons(id);
		skb->protocol = htons(ETH_P_IP);
	}
}

/*
 * ECN, and how a CNP goes: apart from what made the congestion, and not to be marked.  The
 * ICRC covers none of it.
 */
static void sroce_push_class(struct sk_buff *skb, const struct sroce_burst *burst)
{
	const struct sroce_congestion_parameters *p = &burst->av->dev->congestion;
	u8 mask = burst->cnp ? 0 : (u8)~INET_ECN_MASK;
	u8 value = burst->ect ? INET_ECN_ECT_0 : INET_ECN_NOT_ECT;

	if (burst->cnp) {
		value = READ_ONCE(p->cnp_dscp) << 2;
		skb->priority = READ_ONCE(p->cnp_802p_prio);
	}
	if (burst->av->v6)
		ipv6_change_dsfield(ipv6_hdr(skb), mask, value);
	else
		ip_hdr(skb)->tos = (ip_hdr(skb)->tos & mask) | value;
}

/*
 * A checksum, to be computed by whoever segments or sends the frame: without
 * one the stack does not segment it, and GRO merges none.
 */
static void sroce_push_udp(struct sk_buff *skb, const struct sroce_av *av)
{
	struct udphdr *udp = skb_push(skb, sizeof(*udp));

	skb_reset_transport_header(skb);
	*udp = av->udp;
	udp->len = htons(skb->len);
	if (av->v6)
		udp->check = ~udp_v6_check(skb->len, &av->ip6.saddr, &av->ip6.daddr, 0);
	else
		udp->check = ~udp_v4_check(skb->len, av->ip4.saddr, av->ip4.daddr, 0);
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	skb->csum_offset = offsetof(struct udphdr, check);
}

/**
 * sroce_burst_end - finish the frame
 * @burst: burst; on return it has no frame
 *
 * Return: the frame, ready for sroce_transmit(), or NULL when there was none.
 */
struct sk_buff *sroce_burst_end(struct sroce_burst *burst)
{
	struct sk_buff *skb = burst->skb;
	struct sroce_av *av = burst->av;

	if (!skb)
		return NULL;
	burst->skb = NULL;
	if (unlikely(!burst->packets)) {
		kfree_skb(skb);
		dst_release(burst->dst);
		sroce_av_put(av);
		return NULL;
	}
	sroce_count_add(av->dev, SROCE_CNT_SENT_PKTS, burst->packets);
	sroce_count_add(av->dev, SROCE_CNT_SENT_BYTES, skb->len);
	if (unlikely(av->multicast))
		sroce_count_add(av->dev, SROCE_CNT_SENT_MULTICAST, burst->packets);
	if (burst->packets > 1) {
		skb_shinfo(skb)->gso_type = SKB_GSO_UDP_L4;
		skb_shinfo(skb)->gso_size = burst->segment;
		skb_shinfo(skb)->gso_segs = burst->packets;
	}
	sroce_push_udp(skb, av);
	sroce_push_ip(skb, av, burst->first_id);
	skb->priority = av->priority;
	sroce_push_class(skb, burst);
	if (unlikely(burst->departs))
		sroce_skb_set_departure(skb, burst->departs);
	skb_dst_set(skb, burst->dst);
	sroce_av_put(av);
	return skb;
}

/**
 * sroce_transmit - hand a frame to the IP stack
 * @dev: device
 * @skb: frame; consumed
 *
 * Context: softirqs disabled, no lock held: the stack may deliver the frame,
 * and what answers it, before this returns.
 */
void sroce_transmit(struct sroce_dev *dev, struct sk_buff *skb)
{
	struct net *net = dev_net(skb_dst(skb)->dev);
	int err;

	sroce_count(dev, SROCE_CNT_SENT_FRAMES);
	if (skb->protocol == htons(ETH_P_IP))
		err = ip_local_out(net, skb->sk, skb);
	else
#if IS_ENABLED(CONFIG_IPV6)
		err = ip6_local_out(net, skb->sk, skb);
#else
		err = -EPFNOSUPPORT;
#endif
	if (unlikely(net_xmit_eval(err)))
		sroce_count(dev, SROCE_CNT_SEND_DROPPED);
}

/* The UDP header, and how the datagram is divided into packets */
static bool sroce_frame_parse_udp(struct sroce_frame *frame, u32 offset)
{
	struct sk_buff *skb = frame->skb;
	const struct udphdr *udp;

	udp = skb_header_pointer(skb, offset, sizeof(frame->udp), &frame->udp);
	if (!udp || udp->dest != htons(SROCE_UDP_PORT))
		return false;
	if (udp != &frame->udp)
		frame->udp = *udp;
	frame->start = offset + sizeof(*udp);
	if (skb_is_gso(skb) && !(skb_shinfo(skb)->gso_type & SKB_GSO_UDP_L4))
		return false;
	if (skb->len < frame->start)
		return false;
	frame->length = skb->len - frame->start;
	/* gso_segs may be 0 or wrong, when the frame comes from outside */
	frame->segment = skb_is_gso(skb) ? skb_shinfo(skb)->gso_size : frame->length;
	return true;
}

/**
 * sroce_frame_parse_ipv4 - is it RoCEv2, and where is what?
 * @frame: where to
 * @skb: frame with its data at the IPv4 header, defragmented
 * @net: namespace
 *
 * Return: whether it is a UDP datagram to the RoCE port.
 */
bool sroce_frame_parse_ipv4(struct sroce_frame *frame, struct sk_buff *skb, const struct net *net)
{
	const struct iphdr *ip = ip_hdr(skb);

	if (ip->protocol != IPPROTO_UDP)
		return false;
	frame->skb = skb;
	frame->net = net;
	frame->ifindex = inet_sdif(skb) ?: skb->skb_iif;
	frame->v6 = false;
	frame->ce = INET_ECN_is_ce(ip->tos);
	frame->ip4 = ip;
	ipv6_addr_set_v4mapped(ip->saddr, &frame->saddr);
	ipv6_addr_set_v4mapped(ip->daddr, &frame->daddr);
	return sroce_frame_parse_udp(frame, skb_network_offset(skb) + ip->ihl * 4);
}

/**
 * sroce_frame_parse_ipv6 - is it RoCEv2, and where is what?
 * @frame: where to
 * @skb: frame with its data at the IPv6 header
 * @net: namespace
 *
 * Return: whether it is a UDP datagram to the RoCE port, without extension
 * headers: RoCEv2 has none.
 */
bool sroce_frame_parse_ipv6(struct sroce_frame *frame, struct sk_buff *skb, const struct net *net)
{
	const struct ipv6hdr *ip = ipv6_hdr(skb);

	if (ip->nexthdr != IPPROTO_UDP)
		return false;
	frame->skb = skb;
	frame->net = net;
	frame->ifindex = inet6_sdif(skb) ?: skb->skb_iif;
	frame->v6 = true;
	frame->ce = INET_ECN_is_ce(ipv6_get_dsfield(ip));
	frame->ip6 = ip;
	frame->saddr = ip->saddr;
	frame->daddr = ip->daddr;
	return sroce_frame_parse_udp(frame, skb_network_offset(skb) + sizeof(*ip));
}

/* A stretch of the frame that lies in one fragment, or NULL */
static const void *sroce_frame_in_frag(const struct sk_buff *skb, u32 offset, u32 length)
{
	const struct skb_shared_info *info = skb_shinfo(skb);
	int i;

	if (offset < skb_headlen(skb))
		return NULL;
	offset -= skb_headlen(skb);
	for (i = 0; i < info->nr_frags; i++) {
		u32 size = skb_frag_size(&info->frags[i]);
		const void *address;

		if (offset < size) {
			address = skb_frag_address_safe(&info->frags[i]);
			return address && offset + length <= size ? address + offset : NULL;
		}
		offset -= size;
	}
	return NULL;
}

/**
 * sroce_frame_packet - a stretch of a frame in one piece
 * @frame: frame
 * @offset: where in the frame's packets it begins
 * @length: bytes
 *
 * Context: softirqs disabled.  Return: the bytes, in the frame itself or, until
 * the next call on this CPU, in a buffer; NULL when it is longer than any
 * packet or the frame is shorter.
 */
const void *sroce_frame_packet(const struct sroce_frame *frame, u32 offset, u32 length)
{
	struct sk_buff *skb = frame->skb;
	const void *packet;
	void *bounce;

	offset += frame->start;
	if (offset + length <= skb_headlen(skb))
		return skb->data + offset;
	packet = sroce_frame_in_frag(skb, offset, length);
	if (packet)
		return packet;
	if (length > SROCE_PACKET_MAX)
		return NULL;
	bounce = this_cpu_ptr(sroce_bounce);
	return skb_copy_bits(skb, offset, bounce, length) ? NULL : bounce;
}

static bool sroce_icrc_matches(const struct sroce_frame *frame, u16 id, const void *packet,
			       u32 length)
{
	u16 udp_len = sizeof(struct udphdr) + length;
	u32 body = length - SROCE_ICRC_BYTES;
	__le32 icrc;
	u32 seed;

	if (frame->v6)
		seed = sroce_icrc_ipv6(frame->ip6, &frame->udp, udp_len);
	else
		seed = sroce_icrc_ipv4(frame->ip4, &frame->udp, id, udp_len);
	icrc = sroce_icrc_packet(seed, packet, body);
	return !memcmp(packet + body, &icrc, sizeof(icrc));
}

/**
 * sroce_frame_icrc_ok - check a packet's ICRC
 * @frame: its frame
 * @offset: where in the frame's packets it begins
 * @packet: the packet
 * @length: its length, from the BTH to the ICRC, bytes
 *
 * When GRO merged packets, the IDs of all but the first are lost: they count
 * up or they are all the same, so either is good.
 * Return: whether the ICRC is right.
 */
bool sroce_frame_icrc_ok(const struct sroce_frame *frame, u32 offset, const void *packet,
			 u32 length)
{
	u32 index = offset / frame->segment;
	u16 id = frame->v6 ? 0 : ntohs(frame->ip4->id);

	if (sroce_icrc_matches(frame, id + index, packet, length))
		return true;
	return index && !frame->v6 && sroce_icrc_matches(frame, id, packet, length);
}

/**
 * sroce_frame_grh - what a UD receiver gets before the payload, A17.3.2
 * @frame: frame
 * @grh: where to: the IP header, an IPv4 one in the last 20 bytes
 */
void sroce_frame_grh(const struct sroce_frame *frame, union rdma_network_hdr *grh)
{
	memset(grh, 0, sizeof(*grh));
	if (frame->v6)
		memcpy(grh, frame->ip6, sizeof(*frame->ip6));
	else
		grh->roce4grh = *frame->ip4;
}

/**
 * sroce_frame_of_path - did the frame come by a connection's path? (9.6.1.2)
 * @frame: frame
 * @av: the connection's address vector
 *
 * Return: whether it is from the peer's address to ours.
 */
bool sroce_frame_of_path(const struct sroce_frame *frame, const struct sroce_av *av)
{
	if (frame->v6 != av->v6)
		return false;
	if (av->v6)
		return ipv6_addr_equal(&frame->saddr, &av->ip6.daddr) &&
		       ipv6_addr_equal(&frame->daddr, &av->ip6.saddr);
	return frame->ip4->saddr == av->ip4.daddr && frame->ip4->daddr == av->ip4.saddr;
}
