// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What requester and responder have in common: building packets */
#include "build.h"
#include "port.h"
#include "qp.h"
#include "trace.h"

static u8 sroce_service(const struct sroce_qp *qp)
{
	switch (qp->ibqp.qp_type) {
	case IB_QPT_RC:
		return SROCE_RC;
	case IB_QPT_UC:
		return SROCE_UC;
	case IB_QPT_XRC_INI:
	case IB_QPT_XRC_TGT:
		return SROCE_XRC;
	default:
		return SROCE_UD;
	}
}

static u32 sroce_eth_bytes(const struct sroce_qp *qp, u8 opcode)
{
	u32 bytes;

	if (opcode == SROCE_CNP)
		return SROCE_CNP_BYTES;
	bytes = sroce_ops[opcode].eth;
	if (sroce_qp_is_datagram(qp))
		bytes += SROCE_DETH_BYTES;
	if (qp->ibqp.qp_type == IB_QPT_XRC_INI)	/* which sends nothing but requests */
		bytes += SROCE_XRCETH_BYTES;
	return bytes;
}

/**
 * sroce_build_flush - hand the frame of a burst on to transmission
 * @qp: queue pair, locked
 * @burst: burst; one without a frame is left alone
 */
void sroce_build_flush(struct sroce_qp *qp, struct sroce_burst *burst)
{
	struct sk_buff *skb = sroce_burst_end(burst);

	if (skb)
		__skb_queue_tail(&qp->tx, skb);
}

static void sroce_build_bth(struct sroce_qp *qp, struct sroce_build *b)
{
	struct sroce_bth *bth = b->packet;

	bth->opcode = b->opcode == SROCE_CNP ? SROCE_CNP : sroce_service(qp) | b->opcode;
	bth->flags = SROCE_BTH_MIGREQ | sroce_pad(b->length) << SROCE_BTH_PAD_SHIFT |
		     (b->solicited ? SROCE_BTH_SE : 0);
	bth->pkey = htons(sroce_port_pkey(qp->dev, b->pkey_index));
	bth->qpn = htonl(b->qpn & (SROCE_QPN_MASK | SROCE_QPN_BECN));
	bth->psn = htonl((b->psn & SROCE_PSN_MASK) | (b->ask ? SROCE_BTH_ACKREQ : 0));
}

/* How the frame goes that a packet begins: what CNPs are obeyed for is ECN-capable, and paced */
static void sroce_build_class(struct sroce_qp *qp, struct sroce_burst *burst,
			      const struct sroce_build *b)
{
	ktime_t departs;

	if (sroce_qp_is_datagram(qp) || b->opcode == SROCE_CNP)
		return;
	burst->ect = b->opcode != SROCE_ACKNOWLEDGE &&
		     READ_ONCE(qp->dev->congestion.rp_enable);
	departs = sroce_congestion_departure(qp);
	if (unlikely(departs))
		sroce_burst_pace(burst, departs);
}

/* Is it one that waits its turn when the rate is limited? */
static bool sroce_build_is_limited(const struct sroce_qp *qp, const struct sroce_build *b)
{
	return !sroce_qp_is_datagram(qp) && b->opcode != SROCE_CNP &&
	       b->opcode != SROCE_ACKNOWLEDGE && b->opcode != SROCE_ATOMIC_ACKNOWLEDGE;
}

/**
 * sroce_build_begin - find room for a packet and write its BTH and pad
 * @qp: queue pair, locked
 * @burst: burst that it joins if it fits; else that is handed on, and another begun
 * @b: packet
 *
 * After it the caller writes headers and payload and calls sroce_build_end().
 * Return: 0; -ENOMEM; -ENETUNREACH when there is no route: the packet counts as
 * sent and lost.
 */
int sroce_build_begin(struct sroce_qp *qp, struct sroce_burst *burst, struct sroce_build *b)
{
	u32 eth = sroce_eth_bytes(qp, b->opcode);
	u32 pad = sroce_pad(b->length);
	int err;

	b->bytes = sizeof(struct sroce_bth) + eth + b->length + pad + SROCE_ICRC_BYTES;
	b->packet = NULL;
	if (sroce_burst_fits(burst, b->av, b->bytes))
		b->packet = sroce_burst_add(burst, b->bytes);
	if (!b->packet) {
		sroce_build_flush(qp, burst);
		err = sroce_burst_begin(burst, b->av, qp->ip_id, b->bytes);
		if (err)
			return err;
		sroce_build_class(qp, burst, b);
		b->packet = sroce_burst_add(burst, b->bytes);
		if (!b->packet)
			return -ENOMEM;
	}
	qp->ip_id++;
	sroce_build_bth(qp, b);
	b->eth = b->packet + sizeof(struct sroce_bth);
	b->payload = b->eth + eth;
	memset(b->payload + b->length, 0, pad);
	return 0;
}

/* Is it a request that was sent before? */
static bool sroce_build_is_repeated(const struct sroce_qp *qp, const struct sroce_build *b)
{
	return sroce_qp_is_reliable(qp) && !(sroce_ops[b->opcode].flags & SROCE_OP_RESPONSE) &&
	       sroce_psn_diff(b->psn, qp->req.psn_max) < 0;
}

static void sroce_build_trace(const struct sroce_qp *qp, const struct sroce_build *b)
{
	u8 opcode = sroce_service(qp) | b->opcode;
	u32 aeth;

	if (b->opcode == SROCE_CNP) {
		trace_sroce_send(qp, b->qpn & SROCE_QPN_MASK, b->opcode, 0, 0);
		return;
	}

	if (sroce_build_is_repeated(qp, b))
		trace_sroce_retransmit(qp, b->qpn, opcode, b->psn, b->length);
	else
		trace_sroce_send(qp, b->qpn, opcode, b->psn, b->length);
	if (!(sroce_ops[b->opcode].flags & SROCE_OP_AETH))
		return;
	aeth = be32_to_cpu(*(const __be32 *)b->eth);
	if (sroce_aeth_is_nak(aeth))
		trace_sroce_nak(qp, false, b->psn, aeth);
	else
		trace_sroce_ack(qp, false, b->psn, aeth);
}

static bool sroce_build_traced(void)
{
	return trace_sroce_send_enabled() || trace_sroce_retransmit_enabled() ||
	       trace_sroce_ack_enabled() || trace_sroce_nak_enabled();
}

/**
 * sroce_build_end - compute the ICRC of a packet that is complete
 * @qp: queue pair, locked
 * @burst: its burst
 * @b: packet
 */
void sroce_build_end(struct sroce_qp *qp, struct sroce_burst *burst, struct sroce_build *b)
{
	sroce_burst_seal(burst, b->packet, b->bytes);
	/* the device's, when the burst is complete */
	sroce_qp_count_own(qp, SROCE_CNT_SENT_PKTS, 1);
	sroce_qp_count_own(qp, SROCE_CNT_SENT_BYTES, b->bytes);
	if (unlikely(b->av->multicast))
		sroce_qp_count_own(qp, SROCE_CNT_SENT_MULTICAST, 1);
	if (sroce_build_is_limited(qp, b))
		sroce_congestion_sent(qp, b->bytes);
	if (sroce_build_traced())
		sroce_build_trace(qp, b);
}

/**
 * sroce_build_ask - have the last packet of a burst ask for an acknowledgment
 * @burst: burst with a frame; the packet is complete
 */
void sroce_build_ask(struct sroce_burst *burst)
{
	struct sroce_bth *bth = burst->last;

	bth->psn |= htonl(SROCE_BTH_ACKREQ);
	sroce_burst_seal(burst, burst->last, burst->last_bytes);
}

/**
 * sroce_build_cancel - take back a packet that could not be completed
 * @qp: queue pair, locked
 * @burst: its burst
 * @b: packet, the last that sroce_build_begin() was called for
 */
void sroce_build_cancel(struct sroce_qp *qp, struct sroce_burst *burst, struct sroce_build *b)
{
	sroce_burst_remove(burst, b->bytes);
	qp->ip_id--;
}
