// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Frames from the IP stack to queue pairs.
 *
 * A netfilter hook, last at LOCAL_IN, sees every datagram that is delivered on
 * this host, super-packets whole.  Requests are executed and answers taken here
 * and now, on this CPU, with the queue pair locked once for all packets of a
 * frame that are for it.
 */
#include <linux/netfilter.h>
#include <linux/rcupdate.h>
#include <net/netfilter/nf_conntrack.h>
#include <rdma/ib_addr.h>
#include "answer.h"
#include "complete.h"
#include "device.h"
#include "encap.h"
#include "gid.h"
#include "mcast.h"
#include "port.h"
#include "qp.h"
#include "receive.h"
#include "respond.h"
#include "send.h"
#include "trace.h"

static bool sroce_service_ok(const struct sroce_qp *qp, u8 opcode)
{
	if (sroce_qp_is_raw(qp))
		return false;
	if (opcode == SROCE_CNP)
		return !sroce_qp_is_datagram(qp);
	switch (qp->ibqp.qp_type) {
	case IB_QPT_RC:
		return (opcode & SROCE_SERVICE_MASK) == SROCE_RC;
	case IB_QPT_XRC_INI:
		return (opcode & SROCE_SERVICE_MASK) == SROCE_XRC &&
		       sroce_ops[opcode & SROCE_OPCODE_MASK].flags & SROCE_OP_RESPONSE;
	case IB_QPT_XRC_TGT:
		return (opcode & SROCE_SERVICE_MASK) == SROCE_XRC &&
		       !(sroce_ops[opcode & SROCE_OPCODE_MASK].flags & SROCE_OP_RESPONSE);
	case IB_QPT_UC:
		return (opcode & SROCE_SERVICE_MASK) == SROCE_UC &&
		       (opcode & SROCE_OPCODE_MASK) <= SROCE_WRITE_ONLY_IMM;
	default:
		return opcode == (SROCE_UD | SROCE_SEND_ONLY) ||
		       opcode == (SROCE_UD | SROCE_SEND_ONLY_IMM);
	}
}

/*
 * Takes a packet apart: header version, opcode, lengths (9.6.1.1).  False when
 * it makes no sense.
 */
static bool sroce_packet_parse(struct sroce_packet *packet, const struct sroce_frame *frame,
			       const void *data, u32 length)
{
	const struct sroce_bth *bth = data;
	bool xrc = (bth->opcode & SROCE_SERVICE_MASK) == SROCE_XRC;
	u32 headers, pad;

	packet->frame = frame;
	packet->bth = bth;
	packet->opcode = bth->opcode;
	packet->op = &sroce_ops[bth->opcode & SROCE_OPCODE_MASK];
	packet->psn = be32_to_cpu(bth->psn) & SROCE_PSN_MASK;
	if (bth->flags & SROCE_BTH_TVER_MASK)
		return false;
	/* an RC responder answers a reserved opcode, 9.7.4.1.3 */
	if (!packet->op->flags && (bth->opcode & SROCE_SERVICE_MASK) != SROCE_RC)
		return false;
	headers = sizeof(*bth) + packet->op->eth;
	if ((bth->opcode & SROCE_SERVICE_MASK) == SROCE_UD)
		headers += SROCE_DETH_BYTES;
	xrc = xrc && !(packet->op->flags & SROCE_OP_RESPONSE);
	if (xrc)
		headers += SROCE_XRCETH_BYTES;
	pad = (bth->flags & SROCE_BTH_PAD_MASK) >> SROCE_BTH_PAD_SHIFT;
	if (length < headers + pad + SROCE_ICRC_BYTES)
		return false;
	packet->length = length - headers - pad - SROCE_ICRC_BYTES;
	if (packet->op->flags && !(packet->op->flags & SROCE_OP_PAYLOAD) && packet->length)
		return false;
	if ((packet->length + pad) & 3)
		return false;
	packet->eth = bth + 1;
	if (xrc) {
		const struct sroce_xrceth *xrceth = packet->eth;

		packet->srq_num = be32_to_cpu(xrceth->srq_num) & SROCE_SRQ_MASK;
		packet->eth = xrceth + 1;
	}
	packet->payload = data + headers;
	return true;
}

/* Counts a packet that is not taken */
static void sroce_receive_drop(struct sroce_qp *qp, enum sroce_counter reason)
{
	sroce_qp_count(qp, reason);
	trace_sroce_drop(qp, reason);
}

static void sroce_receive_trace(const struct sroce_qp *qp, const struct sroce_packet *packet)
{
	u32 aeth, peer = qp->attr.dest_qp_num;

	if (sroce_qp_is_datagram(qp)) {
		const struct sroce_deth *deth = packet->eth;

		peer = be32_to_cpu(deth->src_qpn) & SROCE_QPN_MASK;
	}
	trace_sroce_receive(qp, peer, packet->opcode, packet->psn, packet->length);
	if (!(packet->op->flags & SROCE_OP_AETH))
		return;
	aeth = be32_to_cpu(*(const __be32 *)packet->eth);
	if (sroce_aeth_is_nak(aeth))
		trace_sroce_nak(qp, true, packet->psn, aeth);
	else
		trace_sroce_ack(qp, true, packet->psn, aeth);
}

static bool sroce_receive_traced(void)
{
	return trace_sroce_receive_enabled() || trace_sroce_ack_enabled() ||
	       trace_sroce_nak_enabled();
}

/* What has to be right whatever the service (9.6.1.4); counts what is not */
static bool sroce_packet_for(struct sroce_qp *qp, const struct sroce_packet *packet)
{
	u16 index;

	if (!sroce_port_pkey_match(qp->dev, be16_to_cpu(packet->bth->pkey), &index)) {
		sroce_receive_drop(qp, SROCE_CNT_RCV_BAD_PKEY);
		return false;
	}
	if (!sroce_service_ok(qp, packet->opcode)) {
		sroce_receive_drop(qp, SROCE_CNT_RCV_WRONG_SERVICE);
		return false;
	}
	if (!sroce_qp_can_receive(qp)) {
		sroce_receive_drop(qp, SROCE_CNT_RCV_WRONG_STATE);
		return false;
	}
	if (!sroce_qp_is_datagram(qp) && !sroce_frame_of_path(packet->frame, qp->av)) {
		sroce_receive_drop(qp, SROCE_CNT_RCV_BAD_PATH);
		return false;
	}
	return true;
}

/* Hands one packet of a frame to its queue pair, which is locked */
static void sroce_receive_packet(struct sroce_qp *qp, const struct sroce_frame *frame,
				 u32 offset, u32 length)
{
	const void *data = sroce_frame_packet(frame, offset, length);
	struct sroce_packet packet;

	if (!data || length < sizeof(struct sroce_bth) + SROCE_ICRC_BYTES) {
		sroce_receive_drop(qp, SROCE_CNT_RCV_MALFORMED);
		return;
	}
	if (!sroce_frame_icrc_ok(frame, offset, data, length)) {
		sroce_receive_drop(qp, SROCE_CNT_ICRC_ERRORS);
		return;
	}
	if (!sroce_packet_parse(&packet, frame, data, length)) {
		sroce_receive_drop(qp, SROCE_CNT_RCV_MALFORMED);
		return;
	}
	if (!sroce_packet_for(qp, &packet))
		return;
	if (sroce_receive_traced())
		sroce_receive_trace(qp, &packet);
	sroce_qp_count(qp, SROCE_CNT_RCVD_PKTS);
	sroce_qp_count_add(qp, SROCE_CNT_RCVD_BYTES, length);
	if (unlikely(rdma_is_multicast_addr((struct in6_addr *)&frame->daddr)))
		sroce_qp_count(qp, SROCE_CNT_RCVD_MULTICAST);
	if (unlikely(frame->ce))
		sroce_congestion_seen(qp);
	if (packet.opcode == SROCE_CNP)
		sroce_congestion_notified(qp);
	else if (packet.op->flags & SROCE_OP_RESPONSE)
		sroce_complete_packet(qp, &packet);
	else
		sroce_respond_packet(qp, &packet);
}

/* The frame's packets for this queue pair are through: answer, and go on sending */
static void sroce_receive_finish(struct sroce_qp *qp)
	__releases(&qp->lock)
{
	if (unlikely(qp->req.congestion.notify))
		sroce_congestion_notify(qp);
	if (sroce_qp_is_reliable(qp)) {
		sroce_answer_run(qp);
		sroce_send_run(qp);
	}
	sroce_qp_unlock(qp);
	sroce_qp_put(qp);
}

/* The destination of the packet at @offset, or 0, which is nobody's here */
static u32 sroce_frame_qpn(const struct sroce_frame *frame, u32 offset)
{
	const struct sroce_bth *bth;

	if (offset + sizeof(*bth) > frame->length)
		return 0;
	bth = sroce_frame_packet(frame, offset, sizeof(*bth));
	return bth ? be32_to_cpu(bth->qpn) & SROCE_QPN_MASK : 0;
}

/*
 * The packets from @offset on that are for one queue pair; returns where the next
 * begins that is for another.
 */
static u32 sroce_receive_run(const struct sroce_frame *frame, struct sroce_dev *dev, u32 offset)
{
	u32 qpn = sroce_frame_qpn(frame, offset);
	struct sroce_qp *qp = sroce_qp_find(dev, qpn);

	/* two devices may have the address, through the same net device above both */
	if (qp && qp->dev != dev && !sroce_gid_find(frame->net, &frame->daddr, qp->dev)) {
		sroce_qp_put(qp);
		qp = NULL;
	}
	if (!qp) {
		sroce_count(dev, SROCE_CNT_RCV_NO_QP);
		return offset + frame->segment;
	}
	spin_lock_bh(&qp->lock);
	do {
		sroce_receive_packet(qp, frame, offset,
				     min(frame->segment, frame->length - offset));
		offset += frame->segment;
	} while (offset < frame->length && sroce_frame_qpn(frame, offset) == qpn);
	sroce_receive_finish(qp);
	return offset;
}

static void sroce_receive_unicast(struct sroce_frame *frame, const struct sroce_gid *gid)
{
	u32 offset = 0;

	sroce_count(gid->dev, SROCE_CNT_RCVD_FRAMES);
	frame->vlan_id = gid->vlan_id;
	while (offset < frame->length)
		offset = sroce_receive_run(frame, gid->dev, offset);
}

/* To all queue pairs of the group */
static void sroce_receive_multicast(struct sroce_frame *frame)
{
	struct sroce_qp *qp;
	u32 offset, after = 0;

	sroce_mcast_count(frame);
	while ((after = sroce_mcast_find(frame, after, &qp))) {
		spin_lock_bh(&qp->lock);
		for (offset = 0; offset < frame->length; offset += frame->segment)
			if (sroce_frame_qpn(frame, offset) == SROCE_QPN_MULTICAST)
				sroce_receive_packet(qp, frame, offset,
						     min(frame->segment, frame->length - offset));
		sroce_receive_finish(qp);
	}
}

/* Is the in-tree driver here too, so that the packet may be for it? */
static bool sroce_other_driver(const struct sroce_gid *gid)
{
	struct net_device *netdev = rcu_dereference(gid->dev->netdev);
	struct ib_device *other;

	if (!netdev)
		return false;
	other = ib_device_get_by_netdev(netdev, RDMA_DRIVER_RXE);
	if (!other)
		return false;
	ib_device_put(other);
	return true;
}

static bool sroce_is_for_other(const struct sroce_frame *frame, const struct sroce_gid *gid)
{
	struct sroce_qp *qp = sroce_qp_find(gid->dev, sroce_frame_qpn(frame, 0));

	if (qp) {
		sroce_qp_put(qp);
		return false;
	}
	return sroce_other_driver(gid);
}

static unsigned int sroce_receive_stolen(struct sk_buff *skb)
{
	consume_skb(skb);
	return NF_STOLEN;
}

/*
 * Conntrack confirms an entry in a hook behind ours, which this frame will not
 * reach: do it here, else the entry is lost and every frame a new connection.
 */
static bool sroce_receive_confirm(struct sk_buff *skb)
{
#if IS_ENABLED(CONFIG_NF_CONNTRACK)
	const struct nf_ct_hook *hook = rcu_dereference(nf_ct_hook);
	const struct nf_conn *ct = (const struct nf_conn *)skb_nfct(skb);

	if (ct && !nf_ct_is_confirmed(ct) && hook)
		return hook->confirm(skb) == NF_ACCEPT;
#endif
	return true;
}

static unsigned int sroce_receive(struct sroce_frame *frame)
{
	const struct sroce_gid *gid;

	if (!frame->length || !frame->segment || frame->segment > frame->length)
		return NF_ACCEPT;
	if (rdma_is_multicast_addr((struct in6_addr *)&frame->daddr)) {
		sroce_receive_multicast(frame);
		return NF_ACCEPT;	/* others may be members too, such as rdma_rxe */
	}
	gid = sroce_gid_find(frame->net, &frame->daddr, NULL);
	if (!gid || sroce_is_for_other(frame, gid))
		return NF_ACCEPT;
	if (!sroce_receive_confirm(frame->skb))
		return NF_DROP;
	sroce_receive_unicast(frame, gid);
	return sroce_receive_stolen(frame->skb);
}

/**
 * sroce_receive_ipv4 - netfilter hook at LOCAL_IN, IPv4
 * @priv: nothing
 * @skb: frame, its data at the IPv4 header
 * @state: namespace
 *
 * Context: RCU read section, softirqs disabled.  Return: NF_STOLEN for a frame
 * to an address of ours, NF_ACCEPT for any other.
 */
unsigned int sroce_receive_ipv4(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct sroce_frame frame;

	if (!sroce_frame_parse_ipv4(&frame, skb, state->net))
		return NF_ACCEPT;
	return sroce_receive(&frame);
}

/**
 * sroce_receive_ipv6 - netfilter hook at LOCAL_IN, IPv6
 * @priv: nothing
 * @skb: frame, its data at the IPv6 header
 * @state: namespace
 *
 * Context: RCU read section, softirqs disabled.  Return: as sroce_receive_ipv4().
 */
unsigned int sroce_receive_ipv6(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct sroce_frame frame;

	if (!sroce_frame_parse_ipv6(&frame, skb, state->net))
		return NF_ACCEPT;
	return sroce_receive(&frame);
}
