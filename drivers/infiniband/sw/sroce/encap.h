/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The encapsulation: a transport packet into a frame and out of it.  Nothing
 * outside encap.c, ah.c and the ICRC knows of IP or UDP headers.
 */
#ifndef SROCE_ENCAP_H
#define SROCE_ENCAP_H

#include <linux/in6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/skbuff.h>
#include <linux/udp.h>
#include <rdma/ib_verbs.h>
#include "wire.h"

struct sroce_av;
struct sroce_dev;

/**
 * struct sroce_burst - packets of one flow on their way into one super-packet
 * @skb: the frame so far, NULL when there is none
 * @av: where it goes
 * @dst: by what route; references of the burst's
 * @first_id: IPv4 ID of the first packet
 * @segment: length of every packet but the last, from the BTH to the ICRC, bytes
 * @packets: how many there are
 * @max_packets: how many there may be
 * @closed: the last packet was shorter: no further one can follow
 * @last: the packet added last
 * @last_bytes: its length, from the BTH to the ICRC, bytes
 * @ect: its sender obeys CNPs: switches may mark it rather than drop it
 * @cnp: it is a CNP
 * @departs: when it is to leave, 0 for at once
 *
 * Lives on the stack, under the lock of a queue pair.
 */
struct sroce_burst {
	struct sk_buff		*skb;
	struct sroce_av		*av;
	struct dst_entry	*dst;
	u16			first_id;
	u16			segment;
	u16			packets;
	u16			max_packets;
	bool			closed;
	void			*last;
	u16			last_bytes;
	bool			ect;
	bool			cnp;
	ktime_t			departs;
};

/**
 * struct sroce_frame - a received frame: one packet, or a super-packet
 * @skb: the frame
 * @net: namespace it was received in
 * @ifindex: net device there that it came in by, of a VRF the one below
 * @saddr: source
 * @daddr: destination, IPv4 ones mapped
 * @v6: which of the headers
 * @ce: a switch marked it: it met congestion
 * @ip4: IPv4 header
 * @ip6: IPv6 header, in the frame
 * @udp: a copy of the UDP header
 * @start: offset of the first BTH in the frame
 * @segment: length of every packet but the last, from the BTH to the ICRC
 * @length: of all packets together
 * @vlan_id: VLAN of the net device that has the destination address or, for a
 *	group, that it came in by; or 0xffff
 */
struct sroce_frame {
	struct sk_buff		*skb;
	const struct net	*net;
	int			ifindex;
	struct in6_addr		saddr;
	struct in6_addr		daddr;
	bool			v6;
	bool			ce;
	const struct iphdr	*ip4;
	const struct ipv6hdr	*ip6;
	struct udphdr		udp;
	u32			start;
	u32			segment;
	u32			length;
	u16			vlan_id;
};

/**
 * struct sroce_packet - one packet of a received frame, its ICRC checked
 * @frame: the frame
 * @bth: the packet, contiguous, up to the ICRC
 * @op: what its opcode says
 * @opcode: opcode with the service
 * @psn: PSN
 * @srq_num: for a request of XRC
 * @eth: the extended transport headers
 * @payload: payload
 * @length: its length without pad, bytes
 */
struct sroce_packet {
	const struct sroce_frame	*frame;
	const struct sroce_bth		*bth;
	const struct sroce_op		*op;
	u8				opcode;
	u32				psn;
	u32				srq_num;
	const void			*eth;
	const void			*payload;
	u32				length;
};

int sroce_encap_init(void);
void sroce_encap_exit(void);

int sroce_burst_begin(struct sroce_burst *burst, struct sroce_av *av, u16 id, u32 length);
void sroce_burst_pace(struct sroce_burst *burst, ktime_t departs);
bool sroce_burst_fits(const struct sroce_burst *burst, const struct sroce_av *av, u32 length);
void *sroce_burst_add(struct sroce_burst *burst, u32 length);
void sroce_burst_remove(struct sroce_burst *burst, u32 length);
void sroce_burst_seal(struct sroce_burst *burst, void *packet, u32 length);
struct sk_buff *sroce_burst_end(struct sroce_burst *burst);
void sroce_transmit(struct sroce_dev *dev, struct sk_buff *skb);

bool sroce_frame_parse_ipv4(struct sroce_frame *frame, struct sk_buff *skb, const struct net *net);
bool sroce_frame_parse_ipv6(struct sroce_frame *frame, struct sk_buff *skb, const struct net *net);
const void *sroce_frame_packet(const struct sroce_frame *frame, u32 offset, u32 length);
bool sroce_frame_icrc_ok(const struct sroce_frame *frame, u32 offset, const void *packet,
			 u32 length);
void sroce_frame_grh(const struct sroce_frame *frame, union rdma_network_hdr *grh);
bool sroce_frame_of_path(const struct sroce_frame *frame, const struct sroce_av *av);

#endif /* SROCE_ENCAP_H */
