// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Unit test, in user space, of the driver's own wire.c and icrc.c */
#include "compat.h"
#include <stdio.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include "icrc.h"
#include "wire.h"

static int failed, number;

static void ok(int good, const char *what)
{
	printf("%sok %d - %s\n", good ? "" : "not ", ++number, what);
	failed += !good;
}

/* A captured packet whose ICRC is known: UC SEND Only, 20 bytes, pad 2 in them */
static const u8 known[] = {
	0x24, 0x60, 0xff, 0xff, 0x00, 0x00, 0x00, 0xd3, 0x00, 0xcf, 0x17, 0x10,
	0x46, 0x30, 0x81, 0x8b, 0xe2, 0x89, 0x35, 0xd9, 0x0e, 0x9a, 0x95, 0x50,
	0x54, 0x01, 0xbe, 0x88, 0x5e, 0x50, 0x00, 0x00,
};
static const u8 known_icrc[] = { 0x78, 0xf3, 0x53, 0xf3 };

static void test_known_answer(void)
{
	const u16 udp_len = sizeof(struct udphdr) + sizeof(known) + sizeof(known_icrc);
	struct iphdr ip = {
		.version = 4, .ihl = 5, .tos = 1, .frag_off = htons(0x4000), .ttl = 64,
		.protocol = 17, .saddr = htonl(0xc0a80007), .daddr = htonl(0xc0a80007),
	};
	struct udphdr udp = { .source = htons(49152), .dest = htons(SROCE_UDP_PORT) };
	u8 packet[sizeof(known)];
	__le32 icrc;

	icrc = sroce_icrc_packet(sroce_icrc_ipv4(&ip, &udp, 1144, udp_len), known, sizeof(known));
	ok(!memcmp(&icrc, known_icrc, sizeof(icrc)), "the ICRC of a known packet");

	memcpy(packet, known, sizeof(packet));
	packet[4] = 0xc0;	/* FECN and BECN may change on the way */
	ip.ttl = 3;
	ip.tos = 0xff;
	icrc = sroce_icrc_packet(sroce_icrc_ipv4(&ip, &udp, 1144, udp_len), packet, sizeof(packet));
	ok(!memcmp(&icrc, known_icrc, sizeof(icrc)), "what a router changes does not count");

	icrc = sroce_icrc_packet(sroce_icrc_ipv4(&ip, &udp, 1145, udp_len), packet, sizeof(packet));
	ok(memcmp(&icrc, known_icrc, sizeof(icrc)), "the IP ID counts");
	packet[12] ^= 1;
	icrc = sroce_icrc_packet(sroce_icrc_ipv4(&ip, &udp, 1144, udp_len), packet, sizeof(packet));
	ok(memcmp(&icrc, known_icrc, sizeof(icrc)), "a bit of the payload counts");
}

static void test_ipv6(void)
{
	struct ipv6hdr ip = { .version = 6, .nexthdr = 17, .hop_limit = 64 };
	struct udphdr udp = { .source = htons(49152), .dest = htons(SROCE_UDP_PORT) };
	u32 seed = sroce_icrc_ipv6(&ip, &udp, 100);

	ip.hop_limit = 1;
	ip.priority = 5;
	ip.flow_lbl[1] = 0x12;
	ok(seed == sroce_icrc_ipv6(&ip, &udp, 100), "IPv6: hop limit, class and flow do not count");
	ip.saddr.s6_addr[15] = 1;
	ok(seed != sroce_icrc_ipv6(&ip, &udp, 100), "IPv6: the address counts");
}

static void test_psn(void)
{
	ok(sroce_psn_diff(5, 3) == 2 && sroce_psn_diff(3, 5) == -2, "PSN distance");
	ok(sroce_psn_diff(1, 0xffffff) == 2 && sroce_psn_diff(0xffffff, 1) == -2,
	   "PSN distance across the wrap");
	ok(sroce_psn_add(0xffffff, 1) == 0 && sroce_psn_add(0, -1) == 0xffffff, "PSN addition");
}

static void test_opcodes(void)
{
	static const struct { u8 opcode, eth; } sizes[] = {
		{ SROCE_SEND_ONLY, 0 }, { SROCE_SEND_ONLY_IMM, 4 }, { SROCE_SEND_ONLY_INV, 4 },
		{ SROCE_WRITE_FIRST, 16 }, { SROCE_WRITE_ONLY_IMM, 20 }, { SROCE_WRITE_LAST_IMM, 4 },
		{ SROCE_READ_REQUEST, 16 }, { SROCE_READ_RESPONSE_MIDDLE, 0 },
		{ SROCE_READ_RESPONSE_LAST, 4 }, { SROCE_ACKNOWLEDGE, 4 },
		{ SROCE_ATOMIC_ACKNOWLEDGE, 12 }, { SROCE_COMPARE_SWAP, 28 },
	};
	unsigned int i, good = 1;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		good &= sroce_ops[sizes[i].opcode].eth == sizes[i].eth;
	ok(good, "header sizes");
	ok(!sroce_ops[0x15].flags && !sroce_ops[0x18].flags && !sroce_ops[0x1f].flags,
	   "reserved opcodes are none");
	ok(sroce_pad(0) == 0 && sroce_pad(1) == 3 && sroce_pad(4) == 0 && sroce_pad(4095) == 1,
	   "pad");
}

int main(void)
{
	test_known_answer();
	test_ipv6();
	test_psn();
	test_opcodes();
	printf("1..%d\n%d passed, %d failed, 0 skipped\n", number, number - failed, failed);
	return !!failed;
}
