// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The invariant CRC of RoCEv2 (IBA A17.3.3): the CRC-32 of Ethernet over eight
 * bytes of ones that stand for the LRH, the IP and UDP headers and the packet
 * from the BTH to the pad, with every field that a router may change as ones.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/string.h>
#include <linux/udp.h>
#include "compat.h"
#include "icrc.h"
#include "wire.h"

struct icrc_ipv4 {
	u8		lrh[8];
	struct iphdr	ip;
	struct udphdr	udp;
} __packed;

struct icrc_ipv6 {
	u8		lrh[8];
	struct ipv6hdr	ip;
	struct udphdr	udp;
} __packed;

/**
 * sroce_icrc_init - get hold of the kernel's fastest CRC-32
 *
 * Context: process.  Return: 0, or the errno of the crypto layer.
 */
int sroce_icrc_init(void)
{
	return sroce_crc32_init();
}

/**
 * sroce_icrc_exit - the reverse of sroce_icrc_init()
 */
void sroce_icrc_exit(void)
{
	sroce_crc32_exit();
}

/**
 * sroce_icrc_ipv4 - the CRC of everything before the BTH, IPv4
 * @ip: IP header without options; of its length and ID only the arguments count
 * @udp: UDP header; of its length only the argument counts
 * @id: the IP ID that this segment has on the wire
 * @udp_len: the UDP length that this segment has on the wire, bytes
 *
 * Return: the seed for sroce_icrc_packet().
 */
u32 sroce_icrc_ipv4(const struct iphdr *ip, const struct udphdr *udp, u16 id, u16 udp_len)
{
	struct icrc_ipv4 h;

	memset(h.lrh, 0xff, sizeof(h.lrh));
	h.ip = *ip;
	h.ip.tos = 0xff;
	h.ip.ttl = 0xff;
	h.ip.check = (__force __sum16)0xffff;
	h.ip.id = htons(id);
	h.ip.tot_len = htons(sizeof(*ip) + udp_len);
	h.udp = *udp;
	h.udp.len = htons(udp_len);
	h.udp.check = (__force __sum16)0xffff;
	return sroce_crc32(~0, &h, sizeof(h));
}

/**
 * sroce_icrc_ipv6 - the CRC of everything before the BTH, IPv6
 * @ip: IPv6 header; of its payload length only the argument counts
 * @udp: UDP header; of its length only the argument counts
 * @udp_len: the UDP length that this segment has on the wire, bytes
 *
 * Return: the seed for sroce_icrc_packet().
 */
u32 sroce_icrc_ipv6(const struct ipv6hdr *ip, const struct udphdr *udp, u16 udp_len)
{
	struct icrc_ipv6 h;

	memset(h.lrh, 0xff, sizeof(h.lrh));
	h.ip = *ip;
	h.ip.priority = 0xf;
	memset(h.ip.flow_lbl, 0xff, sizeof(h.ip.flow_lbl));
	h.ip.hop_limit = 0xff;
	h.ip.payload_len = htons(udp_len);
	h.udp = *udp;
	h.udp.len = htons(udp_len);
	h.udp.check = (__force __sum16)0xffff;
	return sroce_crc32(~0, &h, sizeof(h));
}

/**
 * sroce_icrc_packet - the ICRC of one packet
 * @seed: what sroce_icrc_ipv4() or sroce_icrc_ipv6() said for it
 * @bth: the packet, from the BTH to the end of the pad, contiguous
 * @len: its length, bytes; at least a BTH
 *
 * Return: the ICRC as it is stored behind the packet.
 */
__le32 sroce_icrc_packet(u32 seed, const void *bth, u32 len)
{
	struct sroce_bth masked = *(const struct sroce_bth *)bth;
	u32 crc;

	masked.qpn |= htonl(~SROCE_QPN_MASK);
	crc = sroce_crc32(seed, &masked, sizeof(masked));
	crc = sroce_crc32(crc, bth + sizeof(masked), len - sizeof(masked));
	return cpu_to_le32(~crc);
}
