/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Tracepoints: what becomes of a message, packet by packet.  They are called with the
 * queue pair locked, and are a jump over nothing while nobody listens.
 * Documentation/tracing.md says how to follow a message by them.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM sroce

#if !defined(SROCE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SROCE_TRACE_H

#include <linux/tracepoint.h>
#include <rdma/ib_cm.h>
#include <rdma/rdma_cm.h>
#include <trace/misc/rdma.h>
#include "compat.h"
#include "qp.h"
#include "stats.h"
#include "wire.h"

#define SROCE_TRACE_SERVICES(S) S(RC) S(UC) S(UD) S(XRC)

#define SROCE_TRACE_OPCODES(S) \
	S(SEND_FIRST) S(SEND_MIDDLE) S(SEND_LAST) S(SEND_LAST_IMM) S(SEND_LAST_INV) \
	S(SEND_ONLY) S(SEND_ONLY_IMM) S(SEND_ONLY_INV) \
	S(WRITE_FIRST) S(WRITE_MIDDLE) S(WRITE_LAST) S(WRITE_LAST_IMM) \
	S(WRITE_ONLY) S(WRITE_ONLY_IMM) \
	S(READ_REQUEST) S(READ_RESPONSE_FIRST) S(READ_RESPONSE_MIDDLE) \
	S(READ_RESPONSE_LAST) S(READ_RESPONSE_ONLY) \
	S(ACKNOWLEDGE) S(ATOMIC_ACKNOWLEDGE) S(COMPARE_SWAP) S(FETCH_ADD) \
	S(FLUSH) S(ATOMIC_WRITE)

#define SROCE_TRACE_NAKS(S) S(NAK_PSN) S(NAK_INVALID) S(NAK_ACCESS) S(NAK_OPERATIONAL)

/* Tells programs that read the events the numbers; and the names of the numbers */
#define SROCE_TRACE_ENUM(name)	TRACE_DEFINE_ENUM(SROCE_##name);
#define SROCE_TRACE_NAME(name)	{ SROCE_##name, #name },

SROCE_TRACE_SERVICES(SROCE_TRACE_ENUM)
SROCE_TRACE_OPCODES(SROCE_TRACE_ENUM)
SROCE_TRACE_NAKS(SROCE_TRACE_ENUM)

#define sroce_show_service(opcode) \
	__print_symbolic((opcode) & 0xe0, SROCE_TRACE_SERVICES(SROCE_TRACE_NAME) { 0x40, "RD" })
#define sroce_show_opcode(opcode) \
	__print_symbolic((opcode) & 0x1f, \
			 SROCE_TRACE_OPCODES(SROCE_TRACE_NAME) { 0x15, "RESERVED" })
#define sroce_show_nak(syndrome) \
	__print_symbolic(((syndrome) & 0xe0) == 0x20 ? 0x20 : (syndrome), \
			 SROCE_TRACE_NAKS(SROCE_TRACE_NAME) { 0x20, "RNR_NAK" })

/* A send work request is begun: from here on @psn to @psn + @packets - 1 are its */
TRACE_EVENT(sroce_request,
	TP_PROTO(const struct sroce_qp *qp, const struct sroce_swqe *wqe),
	TP_ARGS(qp, wqe),
	TP_STRUCT__entry(
		__string(device, dev_name(&qp->dev->ibdev.dev))
		__field(u64, wr_id)
		__field(u32, qpn)
		__field(u32, psn)
		__field(u32, packets)
		__field(u32, length)
		__field(u8, wr_opcode)
	),
	TP_fast_assign(
		sroce_assign_str(device, dev_name(&qp->dev->ibdev.dev));
		__entry->wr_id = wqe->wr_id;
		__entry->qpn = qp->ibqp.qp_num;
		__entry->psn = wqe->first_psn;
		__entry->packets = wqe->packets;
		__entry->length = wqe->length;
		__entry->wr_opcode = wqe->opcode;
	),
	TP_printk("device=%s qpn=%u wr_id=%#llx wr_opcode=%u psn=%u packets=%u length=%u",
		  __get_str(device), __entry->qpn, __entry->wr_id, __entry->wr_opcode,
		  __entry->psn, __entry->packets, __entry->length)
);

/* A packet between @qpn, ours, and @peer, a queue pair over there, or 0: not known */
DECLARE_EVENT_CLASS(sroce_packet,
	TP_PROTO(const struct sroce_qp *qp, u32 peer, u8 opcode, u32 psn, u32 length),
	TP_ARGS(qp, peer, opcode, psn, length),
	TP_STRUCT__entry(
		__string(device, dev_name(&qp->dev->ibdev.dev))
		__field(u32, qpn)
		__field(u32, peer)
		__field(u32, psn)
		__field(u32, length)
		__field(u8, opcode)
	),
	TP_fast_assign(
		sroce_assign_str(device, dev_name(&qp->dev->ibdev.dev));
		__entry->qpn = qp->ibqp.qp_num;
		__entry->peer = peer;
		__entry->psn = psn;
		__entry->length = length;
		__entry->opcode = opcode;
	),
	TP_printk("device=%s qpn=%u peer=%u opcode=%#04x psn=%u length=%u %s %s",
		  __get_str(device), __entry->qpn, __entry->peer, __entry->opcode,
		  __entry->psn, __entry->length, sroce_show_service(__entry->opcode),
		  sroce_show_opcode(__entry->opcode))
);

#define SROCE_PACKET_EVENT(name) \
DEFINE_EVENT(sroce_packet, name, \
	TP_PROTO(const struct sroce_qp *qp, u32 peer, u8 opcode, u32 psn, u32 length), \
	TP_ARGS(qp, peer, opcode, psn, length))

/* Built, for the first time; of a request sent before, sroce_retransmit instead */
SROCE_PACKET_EVENT(sroce_send);
SROCE_PACKET_EVENT(sroce_retransmit);
/* Came in, and is for this queue pair; whether it is the one expected is not known yet */
SROCE_PACKET_EVENT(sroce_receive);

/* An answer that stands alone or is in a response: @received, or else being sent */
DECLARE_EVENT_CLASS(sroce_answer,
	TP_PROTO(const struct sroce_qp *qp, bool received, u32 psn, u32 aeth),
	TP_ARGS(qp, received, psn, aeth),
	TP_STRUCT__entry(
		__string(device, dev_name(&qp->dev->ibdev.dev))
		__field(u32, qpn)
		__field(u32, psn)
		__field(u32, msn)
		__field(u8, syndrome)
		__field(bool, received)
	),
	TP_fast_assign(
		sroce_assign_str(device, dev_name(&qp->dev->ibdev.dev));
		__entry->qpn = qp->ibqp.qp_num;
		__entry->psn = psn;
		__entry->msn = aeth & SROCE_PSN_MASK;
		__entry->syndrome = aeth >> 24;
		__entry->received = received;
	),
	TP_printk("device=%s qpn=%u %s psn=%u msn=%u syndrome=%#04x %s",
		  __get_str(device), __entry->qpn, __entry->received ? "received" : "sent",
		  __entry->psn, __entry->msn, __entry->syndrome,
		  __entry->syndrome & 0x60 ? sroce_show_nak(__entry->syndrome) : "ACK")
);

#define SROCE_ANSWER_EVENT(name) \
DEFINE_EVENT(sroce_answer, name, \
	TP_PROTO(const struct sroce_qp *qp, bool received, u32 psn, u32 aeth), \
	TP_ARGS(qp, received, psn, aeth))

SROCE_ANSWER_EVENT(sroce_ack);
SROCE_ANSWER_EVENT(sroce_nak);

/* A packet for this queue pair was not taken; @reason is the name of the counter */
TRACE_EVENT(sroce_drop,
	TP_PROTO(const struct sroce_qp *qp, enum sroce_counter reason),
	TP_ARGS(qp, reason),
	TP_STRUCT__entry(
		__string(device, dev_name(&qp->dev->ibdev.dev))
		__string(reason, sroce_counter_name(reason))
		__field(u32, qpn)
	),
	TP_fast_assign(
		sroce_assign_str(device, dev_name(&qp->dev->ibdev.dev));
		sroce_assign_str(reason, sroce_counter_name(reason));
		__entry->qpn = qp->ibqp.qp_num;
	),
	TP_printk("device=%s qpn=%u reason=%s", __get_str(device), __entry->qpn, __get_str(reason))
);

/* A work request is complete, and its consumer told: a receive or a send */
TRACE_EVENT(sroce_completion,
	TP_PROTO(const struct sroce_qp *qp, const struct ib_wc *wc),
	TP_ARGS(qp, wc),
	TP_STRUCT__entry(
		__string(device, dev_name(&qp->dev->ibdev.dev))
		__field(u64, wr_id)
		__field(u32, qpn)
		__field(u32, length)
		__field(u32, status)
		__field(u32, wc_opcode)
	),
	TP_fast_assign(
		sroce_assign_str(device, dev_name(&qp->dev->ibdev.dev));
		__entry->wr_id = wc->wr_id;
		__entry->qpn = qp->ibqp.qp_num;
		__entry->length = wc->byte_len;
		__entry->status = wc->status;
		__entry->wc_opcode = wc->opcode;
	),
	TP_printk("device=%s qpn=%u wr_id=%#llx %s wc_opcode=%u length=%u status=%s",
		  __get_str(device), __entry->qpn, __entry->wr_id,
		  __entry->wc_opcode & 0x80 ? "receive" : "send", __entry->wc_opcode,
		  __entry->length, rdma_show_wc_status(__entry->status))
);

/* The rate limit of a queue pair changed: bytes per second; alpha is of 1024 */
TRACE_EVENT(sroce_rate,
	TP_PROTO(const struct sroce_qp *qp),
	TP_ARGS(qp),
	TP_STRUCT__entry(
		__string(device, dev_name(&qp->dev->ibdev.dev))
		__field(u64, rate)
		__field(u64, target)
		__field(u32, qpn)
		__field(u32, alpha)
		__field(u32, srtt)
	),
	TP_fast_assign(
		sroce_assign_str(device, dev_name(&qp->dev->ibdev.dev));
		__entry->rate = sroce_dcqcn_rate(&qp->req.congestion.dcqcn, &qp->dev->congestion);
		__entry->target = div_u64(qp->req.congestion.dcqcn.target * USEC_PER_SEC,
					  qp->req.congestion.dcqcn.rtt);
		__entry->qpn = qp->ibqp.qp_num;
		__entry->alpha = qp->req.congestion.dcqcn.alpha;
		__entry->srtt = qp->req.recovery.srtt;
	),
	TP_printk("device=%s qpn=%u rate=%llu target=%llu alpha=%u srtt=%u",
		  __get_str(device), __entry->qpn, __entry->rate, __entry->target,
		  __entry->alpha, __entry->srtt)
);

#endif /* SROCE_TRACE_H */

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
