/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What is on the wire: transport headers, opcodes, syndromes, PSN arithmetic
 * (IBA volume 1, chapter 9).  Knows nothing of IP or of Linux objects, so the
 * user-space unit test compiles it as it is.
 */
#ifndef SROCE_WIRE_H
#define SROCE_WIRE_H

#include <linux/types.h>
#include <asm/byteorder.h>

#define SROCE_UDP_PORT		4791	/* RoCEv2, A17.3.1.1 */
#define SROCE_ICRC_BYTES	4

#define SROCE_QPN_MASK		0x00ffffff
#define SROCE_QPN_MULTICAST	0x00ffffff
#define SROCE_QPN_BECN		0x40000000	/* in the word with the QPN, A17.9.3 */
#define SROCE_PSN_MASK		0x00ffffff
#define SROCE_PKEY_DEFAULT	0xffff

/* Base transport header, 9.2 */
struct sroce_bth {
	__u8	opcode;
	__u8	flags;		/* SE, MigReq, pad count, header version */
	__be16	pkey;
	__be32	qpn;		/* resv8a (FECN, BECN), destination QP */
	__be32	psn;		/* AckReq, resv7, PSN */
};

#define SROCE_BTH_SE		0x80
#define SROCE_BTH_MIGREQ	0x40
#define SROCE_BTH_PAD_SHIFT	4
#define SROCE_BTH_PAD_MASK	0x30
#define SROCE_BTH_TVER_MASK	0x0f
#define SROCE_BTH_ACKREQ	0x80000000u

/* Datagram extended transport header, 9.3.2 */
struct sroce_deth {
	__be32	qkey;
	__be32	src_qpn;
};

/* XRC extended transport header, in every request of that service, A14.3.1 */
struct sroce_xrceth {
	__be32	srq_num;	/* in the lower 24 bits */
};

#define SROCE_SRQ_MASK		0x00ffffff

/* RDMA extended transport header, 9.3.3 */
struct sroce_reth {
	__be64	va;
	__be32	rkey;
	__be32	length;
} __packed;

/* FLUSH extended transport header, before the RETH: A19.4.1 */
struct sroce_feth {
	__be32	what;		/* placement type and selectivity level */
};

#define SROCE_FETH_TYPE_MASK	0x0f
#define SROCE_FETH_LEVEL_SHIFT	4
#define SROCE_FETH_LEVEL_MASK	0x30

enum sroce_flush_type {
	SROCE_FLUSH_GLOBAL	= 1 << 0,	/* visible to all */
	SROCE_FLUSH_PERSISTENT	= 1 << 1,
	SROCE_FLUSH_TYPES	= SROCE_FLUSH_GLOBAL | SROCE_FLUSH_PERSISTENT,
};

enum sroce_flush_level {
	SROCE_FLUSH_RANGE,
	SROCE_FLUSH_MR,		/* the whole region: address and length are ignored */
};

/* Atomic extended transport header, 9.3.4 */
struct sroce_atomic_eth {
	__be64	va;
	__be32	rkey;
	__be64	swap_add;
	__be64	compare;
} __packed;

/* ACK extended transport header, 9.3.5 */
struct sroce_aeth {
	__be32	syndrome_msn;
};

/* AETH syndrome, 9.7.5.1.2 (table 44) */
enum sroce_syndrome {
	SROCE_ACK		= 0x00,
	SROCE_RNR_NAK		= 0x20,
	SROCE_NAK		= 0x60,
	SROCE_SYNDROME_MASK	= 0xe0,
	SROCE_VALUE_MASK	= 0x1f,
	/* an ACK that carries no end-to-end credits */
	SROCE_ACK_NO_CREDITS	= SROCE_ACK | 0x1f,
	SROCE_NAK_PSN		= SROCE_NAK | 0,
	SROCE_NAK_INVALID	= SROCE_NAK | 1,
	SROCE_NAK_ACCESS	= SROCE_NAK | 2,
	SROCE_NAK_OPERATIONAL	= SROCE_NAK | 3,
};

static inline int sroce_aeth_is_nak(__u32 syndrome_msn)
{
	return syndrome_msn >> 24 & (SROCE_NAK | SROCE_RNR_NAK);
}

/* Congestion notification packet: the whole opcode, and zeros, A17.9.3 */
#define SROCE_CNP		0x81
#define SROCE_CNP_BYTES		16

/* Opcodes: the service in the upper three bits, 9.2.1 (table 38) */
enum sroce_service {
	SROCE_RC = 0x00,
	SROCE_UC = 0x20,
	SROCE_UD = 0x60,
	SROCE_XRC = 0xa0,
	SROCE_SERVICE_MASK = 0xe0,
};

enum sroce_opcode {
	SROCE_SEND_FIRST		= 0x00,
	SROCE_SEND_MIDDLE		= 0x01,
	SROCE_SEND_LAST			= 0x02,
	SROCE_SEND_LAST_IMM		= 0x03,
	SROCE_SEND_ONLY			= 0x04,
	SROCE_SEND_ONLY_IMM		= 0x05,
	SROCE_WRITE_FIRST		= 0x06,
	SROCE_WRITE_MIDDLE		= 0x07,
	SROCE_WRITE_LAST		= 0x08,
	SROCE_WRITE_LAST_IMM		= 0x09,
	SROCE_WRITE_ONLY		= 0x0a,
	SROCE_WRITE_ONLY_IMM		= 0x0b,
	SROCE_READ_REQUEST		= 0x0c,
	SROCE_READ_RESPONSE_FIRST	= 0x0d,
	SROCE_READ_RESPONSE_MIDDLE	= 0x0e,
	SROCE_READ_RESPONSE_LAST	= 0x0f,
	SROCE_READ_RESPONSE_ONLY	= 0x10,
	SROCE_ACKNOWLEDGE		= 0x11,
	SROCE_ATOMIC_ACKNOWLEDGE	= 0x12,
	SROCE_COMPARE_SWAP		= 0x13,
	SROCE_FETCH_ADD			= 0x14,
	SROCE_SEND_LAST_INV		= 0x16,
	SROCE_SEND_ONLY_INV		= 0x17,
	SROCE_FLUSH			= 0x1c,
	SROCE_ATOMIC_WRITE		= 0x1d,
	SROCE_OPCODES			= 0x1e,
	SROCE_OPCODE_MASK		= 0x1f,
};

/* What a packet of some opcode is and carries */
enum sroce_op_flags {
	SROCE_OP_START		= 1 << 0,	/* first packet of a message */
	SROCE_OP_END		= 1 << 1,	/* last packet of a message */
	SROCE_OP_SEND		= 1 << 2,
	SROCE_OP_WRITE		= 1 << 3,
	SROCE_OP_READ		= 1 << 4,
	SROCE_OP_ATOMIC		= 1 << 5,
	SROCE_OP_RESPONSE	= 1 << 6,	/* to the requester */
	SROCE_OP_PAYLOAD	= 1 << 7,
	SROCE_OP_RETH		= 1 << 8,
	SROCE_OP_ATOMIC_ETH	= 1 << 9,
	SROCE_OP_AETH		= 1 << 10,
	SROCE_OP_ATOMIC_AETH	= 1 << 11,
	SROCE_OP_IMM		= 1 << 12,
	SROCE_OP_IETH		= 1 << 13,
	SROCE_OP_ATOMIC_WRITE	= 1 << 14,
	SROCE_OP_FLUSH		= 1 << 15,	/* with a FETH */
};

/* Requests that a response of their own answers, not just any ACK behind them */
#define SROCE_OP_ANSWERED \
	(SROCE_OP_READ | SROCE_OP_ATOMIC | SROCE_OP_ATOMIC_WRITE | SROCE_OP_FLUSH)

/**
 * struct sroce_op - an opcode's properties
 * @flags: enum sroce_op_flags; 0 for an opcode that does not exist
 * @eth: bytes of extended transport headers behind the BTH, without the DETH
 *	that every UD packet has
 */
struct sroce_op {
	__u16	flags;
	__u8	eth;
};

extern const struct sroce_op sroce_ops[SROCE_OPCODE_MASK + 1];

/* The order of the headers behind the BTH, in words of four bytes each */
#define SROCE_DETH_BYTES	8
#define SROCE_XRCETH_BYTES	4
#define SROCE_RETH_BYTES	16
#define SROCE_ATOMIC_ETH_BYTES	28
#define SROCE_AETH_BYTES	4
#define SROCE_ATOMIC_AETH_BYTES	8
#define SROCE_IMM_BYTES		4

/* Signed distance from PSN @b to PSN @a, modulo 2^24: positive if @a is later */
static inline __s32 sroce_psn_diff(__u32 a, __u32 b)
{
	return (__s32)((a - b) << 8) >> 8;
}

static inline __u32 sroce_psn_add(__u32 psn, __u32 n)
{
	return (psn + n) & SROCE_PSN_MASK;
}

static inline __u32 sroce_pad(__u32 length)
{
	return -length & 3;
}

#endif /* SROCE_WIRE_H */
