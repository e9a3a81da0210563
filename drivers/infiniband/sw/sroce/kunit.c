// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * KUnit tests of what needs no device: headers, opcodes, PSN arithmetic, the ICRC.
 * A module of its own, so that sroce does not need KUnit; the oracles are written
 * from the specification, byte by byte and bit by bit.
 */
#include <kunit/test.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/udp.h>

/* The functions under test, compiled once more */
#include "wire.c"
#include "icrc.c"
#include "crc32.c"

#define PACKET_MAX	(12 + 28 + 4096 + 3)
#define COVERED_MAX	(8 + 40 + 8 + PACKET_MAX)
#define ROUNDS		200

struct oracle {
	u8	packet[PACKET_MAX + 8];
	u8	covered[COVERED_MAX];
	u32	length;			/* of what is in @covered */
};

static void oracle_add(struct oracle *o, const void *data, u32 length)
{
	memcpy(o->covered + o->length, data, length);
	o->length += length;
}

/* CRC-32 of Ethernet, IEEE 802.3, 3.2.9: a bit at a time */
static u32 oracle_crc(const struct oracle *o)
{
	u32 crc = ~0u;
	u32 i, bit;

	for (i = 0; i < o->length; i++)
		for (bit = 0; bit < 8; bit++) {
			bool carry = (crc ^ o->covered[i] >> bit) & 1;

			crc = crc >> 1 ^ (carry ? 0xedb88320 : 0);
		}
	return ~crc;
}

/* The packet with the byte behind the P_Key as ones, A17.3.3 */
static void oracle_add_packet(struct oracle *o, const u8 *packet, u32 length)
{
	oracle_add(o, packet, length);
	o->covered[o->length - length + 4] = 0xff;
}

static void oracle_begin(struct oracle *o)
{
	o->length = 0;
	oracle_add(o, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
}

static void oracle_add_udp(struct oracle *o, const u8 *udp, u16 udp_len)
{
	const u8 rest[4] = { udp_len >> 8, udp_len, 0xff, 0xff };

	oracle_add(o, udp, 4);
	oracle_add(o, rest, 4);
}

static u32 oracle_ipv4(struct oracle *o, const u8 *ip, const u8 *udp, u16 id, const u8 *packet,
		       u32 length)
{
	u16 udp_len = 8 + length + 4, total = 20 + udp_len;
	u8 header[20];

	memcpy(header, ip, sizeof(header));
	header[1] = 0xff;
	header[2] = total >> 8;
	header[3] = total;
	header[4] = id >> 8;
	header[5] = id;
	header[8] = 0xff;
	header[10] = 0xff;
	header[11] = 0xff;
	oracle_begin(o);
	oracle_add(o, header, sizeof(header));
	oracle_add_udp(o, udp, udp_len);
	oracle_add_packet(o, packet, length);
	return oracle_crc(o);
}

static u32 oracle_ipv6(struct oracle *o, const u8 *ip, const u8 *udp, const u8 *packet,
		       u32 length)
{
	u16 udp_len = 8 + length + 4;
	u8 header[40];

	memcpy(header, ip, sizeof(header));
	header[0] |= 0x0f;
	header[1] = 0xff;
	header[2] = 0xff;
	header[3] = 0xff;
	header[4] = udp_len >> 8;
	header[5] = udp_len;
	header[7] = 0xff;
	oracle_begin(o);
	oracle_add(o, header, sizeof(header));
	oracle_add_udp(o, udp, udp_len);
	oracle_add_packet(o, packet, length);
	return oracle_crc(o);
}

static struct oracle *oracle_new(struct kunit *test)
{
	struct oracle *o = kunit_kzalloc(test, sizeof(*o), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, o);
	get_random_bytes(o->packet, sizeof(o->packet));
	return o;
}

/* All lengths that are near a boundary, then any; each at any alignment */
static u32 length_of_round(u32 round)
{
	if (round < 150)
		return 12 + round;
	return 12 + get_random_u32_below(PACKET_MAX - 12 + 1);
}

static void icrc_ipv4(struct kunit *test)
{
	struct oracle *o = oracle_new(test);
	struct udphdr udp;
	struct iphdr ip;
	u32 i;

	for (i = 0; i < ROUNDS; i++) {
		const u8 *packet = o->packet + i % 8;
		u32 length = length_of_round(i), seed;
		u16 id = get_random_u32();

		get_random_bytes(&ip, sizeof(ip));
		get_random_bytes(&udp, sizeof(udp));
		seed = sroce_icrc_ipv4(&ip, &udp, id, sizeof(udp) + length + SROCE_ICRC_BYTES);
		KUNIT_ASSERT_EQ_MSG(test, le32_to_cpu(sroce_icrc_packet(seed, packet, length)),
				    oracle_ipv4(o, (u8 *)&ip, (u8 *)&udp, id, packet, length),
				    "round %u, %u bytes", i, length);
	}
}

static void icrc_ipv6(struct kunit *test)
{
	struct oracle *o = oracle_new(test);
	struct ipv6hdr ip;
	struct udphdr udp;
	u32 i;

	for (i = 0; i < ROUNDS; i++) {
		const u8 *packet = o->packet + i % 8;
		u32 length = length_of_round(i), seed;

		get_random_bytes(&ip, sizeof(ip));
		get_random_bytes(&udp, sizeof(udp));
		seed = sroce_icrc_ipv6(&ip, &udp, sizeof(udp) + length + SROCE_ICRC_BYTES);
		KUNIT_ASSERT_EQ_MSG(test, le32_to_cpu(sroce_icrc_packet(seed, packet, length)),
				    oracle_ipv6(o, (u8 *)&ip, (u8 *)&udp, packet, length),
				    "round %u, %u bytes", i, length);
	}
}

/* A captured packet whose ICRC is known: UC SEND Only */
static void icrc_known(struct kunit *test)
{
	static const u8 packet[] = {
		0x24, 0x60, 0xff, 0xff, 0x00, 0x00, 0x00, 0xd3, 0x00, 0xcf, 0x17, 0x10,
		0x46, 0x30, 0x81, 0x8b, 0xe2, 0x89, 0x35, 0xd9, 0x0e, 0x9a, 0x95, 0x50,
		0x54, 0x01, 0xbe, 0x88, 0x5e, 0x50, 0x00, 0x00,
	};
	static const u8 icrc[SROCE_ICRC_BYTES] = { 0x78, 0xf3, 0x53, 0xf3 };
	const struct iphdr ip = {
		.version = 4, .ihl = 5, .tos = 1, .frag_off = htons(IP_DF), .ttl = 64,
		.protocol = IPPROTO_UDP,
		.saddr = htonl(0xc0a80007), .daddr = htonl(0xc0a80007),
	};
	const struct udphdr udp = { .source = htons(49152), .dest = htons(SROCE_UDP_PORT) };
	u32 seed = sroce_icrc_ipv4(&ip, &udp, 1144, sizeof(udp) + sizeof(packet) + sizeof(icrc));
	__le32 computed = sroce_icrc_packet(seed, packet, sizeof(packet));

	KUNIT_EXPECT_MEMEQ(test, &computed, icrc, sizeof(icrc));
}

static void psn_arithmetic(struct kunit *test)
{
	u32 i;

	KUNIT_EXPECT_EQ(test, sroce_psn_add(0xffffff, 1), 0u);
	KUNIT_EXPECT_EQ(test, sroce_psn_add(0, -1), 0xffffffu);
	KUNIT_EXPECT_EQ(test, sroce_psn_diff(0, 0xffffff), 1);
	KUNIT_EXPECT_EQ(test, sroce_psn_diff(0xffffff, 0), -1);
	/* half of the numbers lie ahead, half behind; the one between counts as behind */
	KUNIT_EXPECT_EQ(test, sroce_psn_diff(0x7fffff, 0), 0x7fffff);
	KUNIT_EXPECT_EQ(test, sroce_psn_diff(0x800000, 0), -0x800000);
	for (i = 0; i < 10000; i++) {
		u32 psn = get_random_u32() & SROCE_PSN_MASK;
		s32 n = (s32)(get_random_u32() & SROCE_PSN_MASK) - 0x800000;
		u32 other = sroce_psn_add(psn, n);

		KUNIT_ASSERT_EQ_MSG(test, other & ~SROCE_PSN_MASK, 0u, "%#x + %d", psn, n);
		KUNIT_ASSERT_EQ_MSG(test, sroce_psn_diff(other, psn), n, "%#x + %d", psn, n);
		if (n != -0x800000)
			KUNIT_ASSERT_EQ_MSG(test, sroce_psn_diff(psn, other), -n, "%#x + %d",
					    psn, n);
		/* what was kept in 32 bits counts modulo 2^24 */
		KUNIT_ASSERT_EQ_MSG(test, sroce_psn_diff(other | 0xab000000, psn), n, "%#x", psn);
	}
}

static void header_sizes(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, sizeof(struct sroce_bth), 12);
	KUNIT_EXPECT_EQ(test, sizeof(struct sroce_deth), SROCE_DETH_BYTES);
	KUNIT_EXPECT_EQ(test, sizeof(struct sroce_reth), SROCE_RETH_BYTES);
	KUNIT_EXPECT_EQ(test, sizeof(struct sroce_atomic_eth), SROCE_ATOMIC_ETH_BYTES);
	KUNIT_EXPECT_EQ(test, sizeof(struct sroce_aeth), SROCE_AETH_BYTES);
}

/* What an opcode's headers add up to; with the reserved ones none (table 38) */
static u32 headers_of(u16 flags)
{
	bool request = !(flags & SROCE_OP_RESPONSE);

	return (flags & SROCE_OP_RETH ? 16 : 0) + (flags & SROCE_OP_FLUSH ? 4 : 0) +
	       (flags & SROCE_OP_ATOMIC_ETH && request ? 28 : 0) +
	       (flags & SROCE_OP_AETH ? 4 : 0) +
	       (flags & SROCE_OP_ATOMIC_AETH ? 8 : 0) +
	       (flags & SROCE_OP_IMM ? 4 : 0) + (flags & SROCE_OP_IETH ? 4 : 0);
}

static void opcode_table(struct kunit *test)
{
	static const u32 reserved = BIT(0x15) | GENMASK(0x1b, 0x18) | BIT(0x1e) | BIT(0x1f);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(sroce_ops); i++) {
		const struct sroce_op *op = &sroce_ops[i];
		u32 kinds = !!(op->flags & SROCE_OP_SEND) + !!(op->flags & SROCE_OP_WRITE) +
			    !!(op->flags & SROCE_OP_READ) + !!(op->flags & SROCE_OP_ATOMIC) +
			    !!(op->flags & SROCE_OP_ATOMIC_WRITE) + !!(op->flags & SROCE_OP_FLUSH);

		KUNIT_EXPECT_EQ_MSG(test, !op->flags, !!(reserved & BIT(i)), "opcode %#x", i);
		KUNIT_EXPECT_EQ_MSG(test, op->eth, headers_of(op->flags), "opcode %#x", i);
		if (!op->flags)
			continue;
		/* one kind, but for the plain ACK, which acknowledges any */
		KUNIT_EXPECT_EQ_MSG(test, kinds, i != SROCE_ACKNOWLEDGE, "opcode %#x", i);
		if (op->flags & (SROCE_OP_IMM | SROCE_OP_IETH))
			KUNIT_EXPECT_TRUE_MSG(test, op->flags & SROCE_OP_END, "opcode %#x", i);
		if (op->flags & SROCE_OP_RETH)
			KUNIT_EXPECT_TRUE_MSG(test, op->flags & SROCE_OP_START, "opcode %#x", i);
	}
}

static void padding(struct kunit *test)
{
	u32 length;

	for (length = 0; length <= 4096; length++) {
		KUNIT_ASSERT_EQ(test, (length + sroce_pad(length)) % 4, 0u);
		KUNIT_ASSERT_LT(test, sroce_pad(length), 4u);
	}
}

static int suite_init(struct kunit_suite *suite)
{
	return sroce_icrc_init();
}

static void suite_exit(struct kunit_suite *suite)
{
	sroce_icrc_exit();
}

static struct kunit_case sroce_cases[] = {
	KUNIT_CASE(header_sizes),
	KUNIT_CASE(opcode_table),
	KUNIT_CASE(padding),
	KUNIT_CASE(psn_arithmetic),
	KUNIT_CASE(icrc_known),
	KUNIT_CASE(icrc_ipv4),
	KUNIT_CASE(icrc_ipv6),
	{}
};

static struct kunit_suite sroce_suite = {
	.name = "sroce",
	.suite_init = suite_init,
	.suite_exit = suite_exit,
	.test_cases = sroce_cases,
};

kunit_test_suite(sroce_suite);
MODULE_DESCRIPTION("KUnit tests of sroce");
MODULE_LICENSE("Dual BSD/GPL");
