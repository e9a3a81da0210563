// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The requester's receiving side: acknowledgments and responses into progress
 * and completions (IBA volume 1, 9.7.5 and 9.9).
 */
#include <linux/slab.h>
#include "build.h"
#include "complete.h"
#include "mr.h"
#include "qp.h"
#include "send.h"

/* RNR NAK timer codes in units of 10 us, 9.7.5.2.8 (table 46) */
static const u32 sroce_rnr_10us[32] = {
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
	16384, 24576, 32768, 49152,
};

static u32 sroce_rnr_us(u8 code)
{
	return sroce_rnr_10us[code & 0x1f] * 10;
}

static const enum ib_wc_opcode sroce_wc_opcodes[] = {
	[IB_WR_RDMA_WRITE]		= IB_WC_RDMA_WRITE,
	[IB_WR_RDMA_WRITE_WITH_IMM]	= IB_WC_RDMA_WRITE,
	[IB_WR_SEND]			= IB_WC_SEND,
	[IB_WR_SEND_WITH_IMM]		= IB_WC_SEND,
	[IB_WR_SEND_WITH_INV]		= IB_WC_SEND,
	[IB_WR_RDMA_READ]		= IB_WC_RDMA_READ,
	[IB_WR_ATOMIC_CMP_AND_SWP]	= IB_WC_COMP_SWAP,
	[IB_WR_ATOMIC_FETCH_AND_ADD]	= IB_WC_FETCH_ADD,
	[IB_WR_LOCAL_INV]		= IB_WC_LOCAL_INV,
	[IB_WR_REG_MR]			= IB_WC_REG_MR,
	[SROCE_WR_FLUSH]		= SROCE_WC_FLUSH,
	[SROCE_WR_ATOMIC_WRITE]		= SROCE_WC_ATOMIC_WRITE,
	[IB_WR_BIND_MW]		= IB_WC_BIND_MW,
};

static enum ib_wc_opcode sroce_wc_opcode(u32 wr_opcode)
{
	return wr_opcode < ARRAY_SIZE(sroce_wc_opcodes) ? sroce_wc_opcodes[wr_opcode] : IB_WC_SEND;
}

static void sroce_complete_cqe(struct sroce_qp *qp, u64 wr_id, u32 wr_opcode, u32 length,
			       enum ib_wc_status status)
{
	struct ib_wc wc = {
		.wr_id = wr_id,
		.status = status,
		.opcode = sroce_wc_opcode(wr_opcode),
		.qp = &qp->ibqp,
		.port_num = SROCE_PORT,
	};

	if (wc.opcode == IB_WC_RDMA_READ || wc.opcode == IB_WC_COMP_SWAP ||
	    wc.opcode == IB_WC_FETCH_ADD)
		wc.byte_len = length;
	if (status == IB_WC_WR_FLUSH_ERR)
		sroce_qp_count(qp, SROCE_CNT_REQ_CQE_FLUSH);
	else if (status != IB_WC_SUCCESS)
		sroce_qp_count(qp, SROCE_CNT_REQ_CQE_ERROR);
	sroce_qp_complete(qp, qp->ibqp.send_cq, &wc, false);
}

/* Takes the oldest request out of the queue */
static void sroce_retire(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	u32 slot = req->ring.index;

	req->ring.index = sroce_ring_next(&req->ring, slot);
	if (req->next == slot)
		req->next = req->ring.index;
	if (req->fresh == slot)
		req->fresh = req->ring.index;
	sroce_ring_set_consumer(&req->ring, req->ring.index);
}

/* Does everything of this request lie behind us? */
static bool sroce_is_done(const struct sroce_qp *qp, const struct sroce_swqe *wqe)
{
	u32 end = sroce_psn_add(wqe->first_psn, wqe->packets);

	if (wqe->state != SROCE_WQE_SENDING)
		return true;
	if (sroce_wqe_is_rd_atomic(wqe))
		return false;
	return sroce_psn_diff(qp->req.una, end) >= 0;
}

/* Send queue error: datagrams and UC go on receiving, 10.3.1.6 */
static void sroce_send_queue_error(struct sroce_qp *qp)
{
	if (sroce_qp_is_reliable(qp)) {
		sroce_qp_error(qp);
		return;
	}
	WRITE_ONCE(qp->state, IB_QPS_SQE);
	qp->attr.qp_state = IB_QPS_SQE;
	sroce_complete_flush(qp);
}

static void sroce_check_drained(struct sroce_qp *qp)
{
	const struct sroce_requester *req = &qp->req;

	if (qp->state != IB_QPS_SQD || qp->sq_drained || req->ring.index != req->fresh)
		return;
	qp->sq_drained = true;
	qp->attr.sq_draining = 0;
	if (qp->attr.en_sqd_async_notify)
		sroce_qp_event(qp, IB_EVENT_SQ_DRAINED);
}

/**
 * sroce_complete_done - complete the requests that are done, in their order
 * @qp: queue pair, locked
 *
 * One that failed takes the queue pair to an error state when its turn comes.
 */
void sroce_complete_done(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;

	while (req->ring.index != req->fresh) {
		const struct sroce_swqe *wqe = &req->wqes[req->ring.index];
		bool failed = wqe->state == SROCE_WQE_FAILED;

		if (!sroce_is_done(qp, wqe))
			break;
		sroce_retire(qp);	/* before its completion can be seen */
		if (failed || qp->sig_type == IB_SIGNAL_ALL_WR || wqe->flags & IB_SEND_SIGNALED)
			sroce_complete_cqe(qp, wqe->wr_id, wqe->opcode, wqe->length, wqe->status);
		if (failed) {
			sroce_send_queue_error(qp);
			return;
		}
	}
	sroce_check_drained(qp);
}

/**
 * sroce_complete_flush - complete everything in the send queue as flushed
 * @qp: queue pair, locked, in an error state
 */
void sroce_complete_flush(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	u32 producer;

	if (!req->ring.queue)
		return;
	producer = sroce_ring_producer(&req->ring);
	req->armed = false;
	req->rnr_wait = false;
	req->rd_atomic = 0;
	/* what was begun is named as it was then, whatever the ring says now */
	while (req->ring.index != req->fresh) {
		const struct sroce_swqe *wqe = &req->wqes[req->ring.index];

		sroce_retire(qp);
		sroce_complete_cqe(qp, wqe->wr_id, wqe->opcode, 0, IB_WC_WR_FLUSH_ERR);
	}
	while (req->ring.index != producer) {
		const struct sroce_send_wqe *ring = sroce_ring_element(&req->ring, req->ring.index);
		u64 wr_id = READ_ONCE(ring->wr.wr_id);
		u32 opcode = READ_ONCE(ring->wr.opcode);

		sroce_retire(qp);
		sroce_complete_cqe(qp, wr_id, opcode, 0, IB_WC_WR_FLUSH_ERR);
	}
	if (sroce_ring_ask(&req->ring, producer))
		sroce_qp_work_due(qp, SROCE_WORK_NOW);
	req->next = producer;
	req->fresh = producer;
	req->psn = req->psn_end;
	req->psn_max = req->psn_end;
	req->una = req->psn_end;
}

/**
 * sroce_complete_seek - go back, or ahead, in what is to be sent
 * @qp: queue pair, locked
 * @psn: PSN to be sent next; the request that it belongs to becomes the next
 */
void sroce_complete_seek(struct sroce_qp *qp, u32 psn)
{
	struct sroce_requester *req = &qp->req;
	u32 slot;

	req->psn = psn;
	for (slot = req->ring.index; slot != req->fresh; slot = sroce_ring_next(&req->ring, slot)) {
		const struct sroce_swqe *wqe = &req->wqes[slot];

		if (wqe->state == SROCE_WQE_FAILED ||	/* nothing goes past it */
		    sroce_psn_diff(psn, sroce_psn_add(wqe->first_psn, wqe->packets)) < 0)
			break;
	}
	req->next = slot;
}

/* Progress: everything before @psn is acknowledged */
static void sroce_progress(struct sroce_qp *qp, u32 psn)
{
	struct sroce_requester *req = &qp->req;

	u32 from = req->una;

	if (sroce_psn_diff(psn, from) <= 0)
		return;
	req->una = psn;
	if (sroce_psn_diff(req->acked, psn) < 0)
		req->acked = psn;
	req->retries = qp->attr.retry_cnt;
	req->rnr_retries = qp->attr.rnr_retry;
	req->armed = false;
	req->gap = false;
	req->rnr_wait = false;
	sroce_recover_progress(qp, from);
	if (sroce_psn_diff(psn, req->psn) > 0)
		sroce_complete_seek(qp, psn);
}

static struct sroce_swqe *sroce_oldest(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;

	return req->ring.index == req->fresh ? NULL : &req->wqes[req->ring.index];
}

/**
 * sroce_complete_fail - the oldest request fails, and with it the queue pair
 * @qp: queue pair, locked
 * @status: with which it fails
 */
void sroce_complete_fail(struct sroce_qp *qp, enum ib_wc_status status)
{
	struct sroce_swqe *wqe = sroce_oldest(qp);

	if (!wqe)
		return;
	wqe->state = SROCE_WQE_FAILED;
	wqe->status = status;
	sroce_complete_done(qp);
}

/*
 * Acknowledges everything before @psn, as far as nothing in between needs a
 * response of its own: a missing one is an implied NAK (9.9.2.4.2).  False then.
 */
static bool sroce_acknowledge(struct sroce_qp *qp, u32 psn)
{
	struct sroce_requester *req = &qp->req;
	u32 slot;

	for (slot = req->ring.index; slot != req->fresh; slot = sroce_ring_next(&req->ring, slot)) {
		const struct sroce_swqe *wqe = &req->wqes[slot];
		bool responds = wqe->state == SROCE_WQE_SENDING && sroce_wqe_is_rd_atomic(wqe);

		if (sroce_psn_diff(psn, wqe->first_psn) <= 0)
			break;
		if (responds) {
			if (sroce_psn_diff(wqe->first_psn, req->una) > 0)
				sroce_progress(qp, wqe->first_psn);
			return psn == req->una;
		}
	}
	sroce_progress(qp, psn);
	return true;
}

/* Once for a gap: what was sent before the repetition is still arriving */
static void sroce_implied_nak(struct sroce_qp *qp)
{
	if (qp->req.gap)
		return;
	qp->req.gap = true;
	sroce_qp_count(qp, SROCE_CNT_IMPLIED_NAK);
	sroce_complete_done(qp);
	if (qp->state != IB_QPS_ERR && sroce_psn_diff(qp->req.psn, qp->req.una) > 0)
		sroce_recover_gap(qp);
}

static void sroce_rnr_nak(struct sroce_qp *qp, u8 code)
{
	struct sroce_requester *req = &qp->req;

	if (!req->rnr_retries) {
		sroce_qp_count(qp, SROCE_CNT_RNR_EXCEEDED);
		sroce_complete_fail(qp, IB_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	sroce_qp_count(qp, SROCE_CNT_RNR_NAK_RCVD);
	if (qp->attr.rnr_retry != 7)	/* 7 is for ever */
		req->rnr_retries--;
	sroce_recover_later(qp, sroce_rnr_us(code));
}

static void sroce_nak(struct sroce_qp *qp, u8 syndrome)
{
	switch (syndrome) {
	case SROCE_NAK_PSN:
		sroce_qp_count(qp, SROCE_CNT_PACKET_SEQ_ERR);
		if (sroce_psn_diff(qp->req.psn, qp->req.una) > 0)
			sroce_recover_nak(qp);
		break;
	case SROCE_NAK_INVALID:
		sroce_qp_count(qp, SROCE_CNT_REQ_REMOTE_INVALID);
		sroce_complete_fail(qp, IB_WC_REM_INV_REQ_ERR);
		break;
	case SROCE_NAK_ACCESS:
		sroce_qp_count(qp, SROCE_CNT_REQ_REMOTE_ACCESS);
		sroce_complete_fail(qp, IB_WC_REM_ACCESS_ERR);
		break;
	case SROCE_NAK_OPERATIONAL:
		sroce_complete_fail(qp, IB_WC_REM_OP_ERR);
		break;
	}
}

/* ACK, NAK or RNR NAK, 9.7.5.1 */
static void sroce_complete_ack(struct sroce_qp *qp, const struct sroce_packet *packet, u8 syndrome)
{
	u8 kind = syndrome & SROCE_SYNDROME_MASK;

	if (kind == SROCE_ACK) {
		u32 end = sroce_psn_add(packet->psn, 1);

		if (sroce_acknowledge(qp, end))
			return;
		if (sroce_psn_diff(end, qp->req.acked) > 0)
			qp->req.acked = end;
		sroce_implied_nak(qp);
		return;
	}
	/* a NAK says that everything before it arrived */
	if (!sroce_acknowledge(qp, packet->psn)) {
		sroce_implied_nak(qp);
		return;
	}
	sroce_complete_done(qp);
	if (qp->state == IB_QPS_ERR || packet->psn != qp->req.una)
		return;
	if (kind == SROCE_RNR_NAK)
		sroce_rnr_nak(qp, syndrome & SROCE_VALUE_MASK);
	else if (kind == SROCE_NAK)
		sroce_nak(qp, syndrome);
}

/* Puts an answer where it belongs: enum ib_wc_status, or -EAGAIN when that is being brought */
static int sroce_scatter(struct sroce_qp *qp, u32 offset, const void *from, u32 length)
{
	struct sroce_requester *req = &qp->req;
	u32 slot = req->ring.index;
	int err;

	if (!length)
		return IB_WC_SUCCESS;
	if (!req->scatter_valid || req->scatter_slot != slot) {
		req->scatter_valid = !sroce_send_load_sgl(qp, slot, req->scatter);
		req->scatter_slot = slot;
		if (!req->scatter_valid)
			return IB_WC_LOC_QP_OP_ERR;
	}
	err = sroce_sgl_copy(qp->dev, qp->ibqp.pd, req->scatter, offset, (void *)from, length,
			     IB_ACCESS_LOCAL_WRITE);
	if (err == -EAGAIN)
		return err;
	return err ? IB_WC_LOC_PROT_ERR : IB_WC_SUCCESS;
}

/* What is to be done with what sroce_scatter() returned: true when all went well */
static bool sroce_scattered(struct sroce_qp *qp, int status)
{
	if (status == -EAGAIN) {
		/* the answer is lost, and what follows it is of no use */
		qp->req.gap = true;
		sroce_recover_later(qp, SROCE_PAGES_US);
	} else if (status != IB_WC_SUCCESS) {
		sroce_complete_fail(qp, status);
	}
	return status == IB_WC_SUCCESS;
}

static void sroce_response_done(struct sroce_qp *qp, struct sroce_swqe *wqe)
{
	wqe->state = SROCE_WQE_DONE;
	qp->req.scatter_valid = false;
	if (qp->req.rd_atomic)
		qp->req.rd_atomic--;
}

/*
 * Is the packet what a READ response has to be here? (9.7.5.1.6)  A request may have been
 * for a part only, so FIRST can be in the middle, and LAST too.
 */
static bool sroce_read_response_ok(const struct sroce_qp *qp, const struct sroce_swqe *wqe,
				   const struct sroce_packet *packet, u32 index)
{
	bool last = index == wqe->packets - 1;
	bool end = packet->op->flags & SROCE_OP_END;
	u32 remains = wqe->length - index * qp->mtu;

	if (last && !end)
		return false;
	if (end && !last && !wqe->repeated && wqe->packets <= SROCE_PSN_WINDOW)
		return false;
	return packet->length == min(remains, qp->mtu);
}

static void sroce_complete_read(struct sroce_qp *qp, struct sroce_swqe *wqe,
				const struct sroce_packet *packet)
{
	u32 index = sroce_psn_diff(packet->psn, wqe->first_psn) & SROCE_PSN_MASK;

	if (!sroce_read_response_ok(qp, wqe, packet, index)) {
		sroce_complete_fail(qp, IB_WC_BAD_RESP_ERR);
		return;
	}
	if (!sroce_scattered(qp, sroce_scatter(qp, index * qp->mtu, packet->payload,
					       packet->length)))
		return;
	sroce_progress(qp, sroce_psn_add(packet->psn, 1));
	if (index == wqe->packets - 1)
		sroce_response_done(qp, wqe);
}

static void sroce_complete_atomic(struct sroce_qp *qp, struct sroce_swqe *wqe,
				  const struct sroce_packet *packet)
{
	__be64 wire;
	u64 original;

	memcpy(&wire, packet->eth + SROCE_AETH_BYTES, sizeof(wire));
	original = be64_to_cpu(wire);
	if (!sroce_scattered(qp, sroce_scatter(qp, 0, &original, sizeof(original))))
		return;
	sroce_progress(qp, sroce_psn_add(packet->psn, 1));
	sroce_response_done(qp, wqe);
}

/* An atomic write or a FLUSH: answered like a READ of nothing */
static void sroce_complete_empty(struct sroce_qp *qp, struct sroce_swqe *wqe,
				 const struct sroce_packet *packet)
{
	if (packet->length || !(packet->op->flags & SROCE_OP_START) ||
	    !(packet->op->flags & SROCE_OP_END)) {
		sroce_complete_fail(qp, IB_WC_BAD_RESP_ERR);
		return;
	}
	sroce_progress(qp, sroce_psn_add(packet->psn, 1));
	sroce_response_done(qp, wqe);
}

/* The response to the oldest request that is not answered */
static void sroce_complete_expected(struct sroce_qp *qp, const struct sroce_packet *packet)
{
	bool read = packet->op->flags & SROCE_OP_READ;
	struct sroce_swqe *wqe = sroce_oldest(qp);

	if (!wqe || packet->psn != qp->req.una)
		return;
	if (wqe->state == SROCE_WQE_SENDING && wqe->opcode == IB_WR_RDMA_READ && read)
		sroce_complete_read(qp, wqe, packet);
	else if (wqe->state == SROCE_WQE_SENDING && read &&
		 (wqe->opcode == SROCE_WR_ATOMIC_WRITE || wqe->opcode == SROCE_WR_FLUSH))
		sroce_complete_empty(qp, wqe, packet);
	else if (wqe->state == SROCE_WQE_SENDING && !read &&
		 (wqe->opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
		  wqe->opcode == IB_WR_ATOMIC_FETCH_AND_ADD))
		sroce_complete_atomic(qp, wqe, packet);
	else
		sroce_complete_fail(qp, IB_WC_BAD_RESP_ERR);
	/* what was acknowledged while this was missing */
	if (sroce_psn_diff(qp->req.acked, qp->req.una) > 0)
		sroce_acknowledge(qp, qp->req.acked);
	sroce_complete_done(qp);
}

/*
 * The turn may have come of what was held, up to the next gap.  As long as none of it is
 * taken, it is still the gap that was asked for.
 */
static void sroce_complete_held(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_held *held;
	bool closed = false;
	u32 psn;

	while (sroce_qp_can_send(qp) && (held = sroce_hold_take(&req->hold, req->una))) {
		sroce_complete_expected(qp, &held->packet);
		kfree(held);
		closed = true;
	}
	if (!sroce_hold_next(&req->hold, req->una, &psn))
		sroce_hold_purge(&req->hold);
	else if (closed && sroce_qp_can_send(qp))
		sroce_implied_nak(qp);
}

/* A READ or atomic response */
static void sroce_complete_response(struct sroce_qp *qp, const struct sroce_packet *packet)
{
	struct sroce_requester *req = &qp->req;

	if (!sroce_acknowledge(qp, packet->psn)) {
		if (sroce_psn_diff(packet->psn, req->una) < sroce_hold_ahead(qp->mtu))
			sroce_hold_packet(&req->hold, packet);
		sroce_implied_nak(qp);
		return;
	}
	sroce_complete_done(qp);
	sroce_complete_expected(qp, packet);
	if (unlikely(sroce_hold_any(&req->hold)))
		sroce_complete_held(qp);
}

/**
 * sroce_complete_packet - take an acknowledgment or a response
 * @qp: RC queue pair, locked
 * @packet: packet of an opcode with SROCE_OP_RESPONSE
 *
 * The caller then calls sroce_send_run().
 */
void sroce_complete_packet(struct sroce_qp *qp, const struct sroce_packet *packet)
{
	const struct sroce_requester *req = &qp->req;
	u8 syndrome = SROCE_ACK;
	u32 una = req->una;

	if (!sroce_qp_can_send(qp))
		return;
	/* for a packet never sent, or acknowledged long ago: a ghost, 9.7.5.1.1 */
	if (sroce_psn_diff(packet->psn, req->una) < 0 ||
	    sroce_psn_diff(packet->psn, req->psn_max) >= 0)
		return;
	if (packet->op->flags & SROCE_OP_AETH)
		syndrome = be32_to_cpu(*(const __be32 *)packet->eth) >> 24;
	if (packet->op->flags & (SROCE_OP_READ | SROCE_OP_ATOMIC))
		sroce_complete_response(qp, packet);
	else
		sroce_complete_ack(qp, packet, syndrome);
	sroce_complete_done(qp);
	if (sroce_qp_can_send(qp))
		sroce_recover_more(qp, una);
}
