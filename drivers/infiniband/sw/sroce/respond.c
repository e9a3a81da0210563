// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The responder: requests into memory and receive completions (IBA volume 1, 9.7.4
 * and 9.7.5; for UC 9.8, for UD 9.8.3).  What has to be answered is noted, and
 * answer.c does it.
 */
#include <linux/if_vlan.h>
#include <linux/slab.h>
#include "mr.h"
#include "qp.h"
#include "respond.h"
#include "xrc.h"

#define SROCE_UD_GRH_BYTES	40

/* Completes the work request that the message went to */
static void sroce_recv_complete(struct sroce_qp *qp, struct ib_wc *wc, bool solicited)
{
	struct sroce_responder *resp = &qp->resp;
	struct ib_cq *cq = qp->ibqp.recv_cq;

	wc->wr_id = resp->recv.wr_id;
	wc->qp = &qp->ibqp;
	wc->port_num = SROCE_PORT;
	resp->recv.valid = false;
	if (wc->status == IB_WC_WR_FLUSH_ERR)
		sroce_qp_count(qp, SROCE_CNT_RESP_CQE_FLUSH);
	else if (wc->status != IB_WC_SUCCESS)
		sroce_qp_count(qp, SROCE_CNT_RESP_CQE_ERROR);
	if (sroce_qp_is_xrc_target(qp))	/* the SRQ may be gone, and its consumer with it */
		cq = sroce_xrc_enter(qp, resp->srq_num) ? resp->xrc_srq->ibsrq.ext.cq : NULL;
	if (cq)
		sroce_qp_complete(qp, cq, wc, solicited);
}

static void sroce_recv_fail(struct sroce_qp *qp, enum ib_wc_status status)
{
	struct ib_wc wc = { .status = status, .opcode = IB_WC_RECV };

	if (qp->resp.recv.valid)
		sroce_recv_complete(qp, &wc, true);
}

/* Takes a receive work request: 0, -EAGAIN when there is none, -EINVAL for a bad one */
static int sroce_recv_take(struct sroce_qp *qp)
{
	struct sroce_responder *resp = &qp->resp;
	unsigned long flags;
	int err;

	if (resp->recv.valid)
		return 0;
	if (sroce_qp_is_xrc_target(qp)) {
		resp->srq_num = resp->xrc_srq->number;
		return sroce_srq_take(resp->xrc_srq, &resp->recv);
	}
	if (qp->ibqp.srq)
		return sroce_srq_take(to_ssrq(qp->ibqp.srq), &resp->recv);
	flags = sroce_ring_lock(&resp->rq.ring, &resp->rq.lock);
	err = sroce_rq_take(&resp->rq, &resp->recv);
	sroce_ring_unlock(&resp->rq.ring, &resp->rq.lock, flags);
	return err;
}

/**
 * sroce_respond_flush - complete all receive work requests as flushed
 * @qp: queue pair, locked, in the error state
 *
 * Those of an SRQ stay there; the consumer gets an event instead, 10.3.1.5.
 */
void sroce_respond_flush(struct sroce_qp *qp)
{
	u32 n;

	sroce_recv_fail(qp, IB_WC_WR_FLUSH_ERR);
	if (!qp->resp.rq.ring.queue)
		return;
	for (n = sroce_rq_available(&qp->resp.rq); n; n--)
		if (sroce_recv_take(qp) != -EAGAIN)
			sroce_recv_fail(qp, IB_WC_WR_FLUSH_ERR);
	/* what is posted from now on has to be flushed as well */
	if (sroce_ring_ask(&qp->resp.rq.ring, qp->resp.rq.ring.index))
		sroce_qp_work_due(qp, SROCE_WORK_NOW);
}

/*
 * The request is refused for good (9.7.5.2): the NAK goes out behind the answers
 * to earlier requests, and with it the queue pair to the error state.  What the
 * consumer is told depends on whose fault it is.
 */
static void sroce_refuse(struct sroce_qp *qp, u8 nak, enum ib_wc_status status)
{
	struct sroce_responder *resp = &qp->resp;

	if (status != IB_WC_SUCCESS)
		sroce_recv_fail(qp, status);
	if (!sroce_qp_is_reliable(qp)) {
		if (status != IB_WC_SUCCESS)
			sroce_qp_error(qp);
		resp->message = 0;
		return;
	}
	resp->nak = nak;
	resp->nak_psn = resp->psn;
	resp->failed = true;
	if (status == IB_WC_SUCCESS)
		sroce_qp_event(qp, nak == SROCE_NAK_ACCESS ? IB_EVENT_QP_ACCESS_ERR :
				   IB_EVENT_QP_REQ_ERR);
}

static void sroce_refuse_access(struct sroce_qp *qp)
{
	sroce_qp_count(qp, SROCE_CNT_RESP_REMOTE_ACCESS);
	sroce_refuse(qp, SROCE_NAK_ACCESS, IB_WC_SUCCESS);
}

static void sroce_refuse_invalid(struct sroce_qp *qp)
{
	sroce_refuse(qp, SROCE_NAK_INVALID, IB_WC_SUCCESS);
}

/* Try the expected packet again, and all that follow it, after a time of @code */
static void sroce_nak_not_ready(struct sroce_responder *resp, u8 code)
{
	resp->nak = SROCE_RNR_NAK | code;
	resp->nak_psn = resp->psn;
	resp->nak_sent = true;
	resp->not_ready = true;
}

/* A receive work request for the message, or what its absence calls for; false then */
static bool sroce_recv_need(struct sroce_qp *qp)
{
	struct sroce_responder *resp = &qp->resp;
	int err = sroce_recv_take(qp);

	if (!err)
		return true;
	if (err == -EINVAL) {
		sroce_refuse(qp, SROCE_NAK_OPERATIONAL, IB_WC_LOC_QP_OP_ERR);
		return false;
	}
	sroce_qp_count(qp, SROCE_CNT_RNR_NAK_SENT);
	if (sroce_qp_is_reliable(qp))
		sroce_nak_not_ready(resp, qp->attr.min_rnr_timer & SROCE_VALUE_MASK);
	else
		resp->message = 0;	/* UC loses the message, 9.8.2.2.3 */
	return false;
}

/* For memory that is being brought: what the peer is asked to wait, 0.64 ms */
#define SROCE_RNR_PAGES		12

/* Memory is being brought: an RC request is to be sent again then, others are lost */
static void sroce_not_ready(struct sroce_qp *qp, const struct sroce_packet *packet)
{
	if (packet->op->flags & SROCE_OP_START || !sroce_qp_is_reliable(qp))
		qp->resp.message = 0;
	if (sroce_qp_is_reliable(qp))
		sroce_nak_not_ready(&qp->resp, SROCE_RNR_PAGES);
}

/* Puts a SEND's payload into the receive buffer; false when that failed */
static bool sroce_recv_write(struct sroce_qp *qp, const struct sroce_packet *packet, u32 offset,
			     const void *from, u32 length)
{
	struct sroce_sgl *sgl = qp->resp.recv.sgl;
	int err = 0;

	if ((u64)offset + length > sgl->total) {
		sroce_qp_count(qp, SROCE_CNT_RESP_LENGTH);
		sroce_refuse(qp, SROCE_NAK_INVALID, IB_WC_LOC_LEN_ERR);
		return false;
	}
	if (length)
		err = sroce_sgl_copy(qp->dev, sroce_qp_memory_pd(qp), sgl, offset, (void *)from,
				     length, IB_ACCESS_LOCAL_WRITE);
	if (err == -EAGAIN)
		sroce_not_ready(qp, packet);
	else if (err)
		sroce_refuse(qp, SROCE_NAK_OPERATIONAL, IB_WC_LOC_PROT_ERR);
	return !err;
}

static __be32 sroce_last_word(const struct sroce_packet *packet)
{
	return *(const __be32 *)(packet->payload - SROCE_IMM_BYTES);
}

static bool sroce_is_solicited(const struct sroce_packet *packet)
{
	return packet->bth->flags & SROCE_BTH_SE;
}

/* The message is complete: tell the consumer if it used a receive work request */
static bool sroce_message_end(struct sroce_qp *qp, const struct sroce_packet *packet)
{
	struct sroce_responder *resp = &qp->resp;
	struct ib_wc wc = {
		.status = IB_WC_SUCCESS,
		.opcode = packet->op->flags & SROCE_OP_WRITE ?
			  IB_WC_RECV_RDMA_WITH_IMM : IB_WC_RECV,
		.byte_len = resp->offset,
		.src_qp = qp->attr.dest_qp_num,
	};

	if (packet->op->flags & SROCE_OP_IMM) {
		wc.ex.imm_data = sroce_last_word(packet);
		wc.wc_flags |= IB_WC_WITH_IMM;
	}
	if (packet->op->flags & SROCE_OP_IETH) {
		wc.ex.invalidate_rkey = be32_to_cpu(sroce_last_word(packet));
		wc.wc_flags |= IB_WC_WITH_INVALIDATE;
		if (sroce_mr_invalidate(qp, wc.ex.invalidate_rkey)) {
			sroce_refuse_access(qp);
			return false;
		}
	}
	if (resp->recv.valid)
		sroce_recv_complete(qp, &wc, sroce_is_solicited(packet));
	resp->message = 0;
	return true;
}

/* Payloads of FIRST and MIDDLE are the path MTU, of LAST at least a byte, 9.7.4.1.6 */
static bool sroce_length_ok(const struct sroce_qp *qp, const struct sroce_packet *packet)
{
	if (!(packet->op->flags & SROCE_OP_END))
		return packet->length == qp->mtu;
	if (!(packet->op->flags & SROCE_OP_START) && !packet->length)
		return false;
	return packet->length <= qp->mtu;
}

/* Does the packet continue what is under way? (9.7.4.1.2, table 48) */
static bool sroce_sequence_ok(const struct sroce_qp *qp, const struct sroce_packet *packet)
{
	if (packet->op->flags & SROCE_OP_START)
		return !qp->resp.message;
	return qp->resp.message == (packet->op->flags & (SROCE_OP_SEND | SROCE_OP_WRITE));
}

static bool sroce_respond_send(struct sroce_qp *qp, const struct sroce_packet *packet)
{
	struct sroce_responder *resp = &qp->resp;

	if (packet->op->flags & SROCE_OP_START) {
		if (!sroce_recv_need(qp))
			return false;
		resp->message = SROCE_OP_SEND;
		resp->offset = 0;
	}
	if (!sroce_recv_write(qp, packet, resp->offset, packet->payload, packet->length))
		return false;
	resp->offset += packet->length;
	return !(packet->op->flags & SROCE_OP_END) || sroce_message_end(qp, packet);
}

/* The RETH of a WRITE: may all of it be written, and is the length right? */
static bool sroce_write_start(struct sroce_qp *qp, const struct sroce_packet *packet)
{
	const struct sroce_reth *reth = packet->eth;
	struct sroce_responder *resp = &qp->resp;

	resp->va = be64_to_cpu(reth->va);
	resp->rkey = be32_to_cpu(reth->rkey);
	resp->length = be32_to_cpu(reth->length);
	resp->offset = 0;
	if (!(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_WRITE) ||
	    resp->length > SROCE_MAX_MESSAGE) {
		sroce_refuse_invalid(qp);
		return false;
	}
	if (sroce_mr_check(qp, resp->rkey, resp->va, resp->length, IB_ACCESS_REMOTE_WRITE)) {
		sroce_refuse_access(qp);
		return false;
	}
	resp->message = SROCE_OP_WRITE;
	return true;
}

static bool sroce_respond_write(struct sroce_qp *qp, const struct sroce_packet *packet)
{
	struct sroce_responder *resp = &qp->resp;
	bool end = packet->op->flags & SROCE_OP_END;
	u64 total;
	int err;

	if (packet->op->flags & SROCE_OP_START && !sroce_write_start(qp, packet))
		return false;
	total = (u64)resp->offset + packet->length;
	if (end ? total != resp->length : total >= resp->length) {
		sroce_refuse_invalid(qp);
		return false;
	}
	if (packet->op->flags & SROCE_OP_IMM && !sroce_recv_need(qp)) {
		/* the packet comes again, with its message */
		if (packet->op->flags & SROCE_OP_START)
			resp->message = 0;
		return false;
	}
	err = sroce_mr_copy(qp, resp->rkey, resp->va + resp->offset, (void *)packet->payload,
			    packet->length, resp->length - resp->offset, IB_ACCESS_REMOTE_WRITE);
	if (err) {
		if (err == -EAGAIN)
			sroce_not_ready(qp, packet);
		else
			sroce_refuse_access(qp);
		return false;
	}
	resp->offset = total;
	if (packet->op->flags & SROCE_OP_START)
		sroce_qp_count(qp, SROCE_CNT_WRITE_REQUESTS);
	return !end || sroce_message_end(qp, packet);
}

/* A resource for a new request, or NULL when the peer has too many under way */
static struct sroce_resource *sroce_resource_new(struct sroce_qp *qp)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_resource *res;

	if (!resp->num_resources)
		return NULL;
	res = sroce_resource(resp, resp->resource_end);
	if (res->pending && !res->again)
		return NULL;
	/* a response that was asked for again, but a new request says it arrived */
	if (resp->resource_next == resp->resource_end - resp->num_resources)
		resp->resource_next++;
	memset(res, 0, sizeof(*res));
	return res;
}

static void sroce_resource_add(struct sroce_qp *qp, struct sroce_resource *res, u32 packets)
{
	struct sroce_responder *resp = &qp->resp;

	res->first_psn = resp->psn;
	res->packets = packets;
	res->rest.end = packets;
	res->rest.stop = res->length;
	res->msn = resp->msn + 1;
	res->srq_num = resp->xrc_srq ? resp->xrc_srq->number : 0;
	res->pending = true;
	resp->resource_end++;
	resp->psn = sroce_psn_add(resp->psn, packets - 1);	/* the caller adds the last */
}

static bool sroce_respond_read(struct sroce_qp *qp, const struct sroce_packet *packet)
{
	const struct sroce_reth *reth = packet->eth;
	u32 length = be32_to_cpu(reth->length);
	struct sroce_resource *res;

	res = sroce_resource_new(qp);
	if (!res || !(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_READ) ||
	    length > SROCE_MAX_MESSAGE) {
		sroce_refuse_invalid(qp);
		return false;
	}
	res->va = be64_to_cpu(reth->va);
	res->rkey = be32_to_cpu(reth->rkey);
	res->length = length;
	if (sroce_mr_check(qp, res->rkey, res->va, length, IB_ACCESS_REMOTE_READ)) {
		sroce_refuse_access(qp);
		return false;
	}
	sroce_qp_count(qp, SROCE_CNT_READ_REQUESTS);
	sroce_resource_add(qp, res, max(1u, DIV_ROUND_UP(length, qp->mtu)));
	return true;
}

static void sroce_refuse_atomic(struct sroce_qp *qp, const struct sroce_packet *packet, int err)
{
	if (err == -EAGAIN)
		sroce_not_ready(qp, packet);
	else if (err == -EINVAL)
		sroce_refuse_invalid(qp);
	else
		sroce_refuse_access(qp);
}

static bool sroce_respond_atomic(struct sroce_qp *qp, const struct sroce_packet *packet)
{
	const struct sroce_atomic_eth *eth = packet->eth;
	bool compare = (packet->opcode & SROCE_OPCODE_MASK) == SROCE_COMPARE_SWAP;
	struct sroce_resource *res;
	int err;

	res = sroce_resource_new(qp);
	if (!res || !(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_ATOMIC)) {
		sroce_refuse_invalid(qp);
		return false;
	}
	err = sroce_mr_atomic(qp, be32_to_cpu(eth->rkey), be64_to_cpu(eth->va), compare,
			      be64_to_cpu(eth->compare), be64_to_cpu(eth->swap_add),
			      &res->original);
	if (err) {
		sroce_refuse_atomic(qp, packet, err);
		return false;
	}
	sroce_qp_count(qp, SROCE_CNT_ATOMIC_REQUESTS);
	res->atomic = true;
	sroce_resource_add(qp, res, 1);
	return true;
}

/* Eight bytes at once, visible after everything before them */
static bool sroce_respond_atomic_write(struct sroce_qp *qp, const struct sroce_packet *packet)
{
	const struct sroce_reth *reth = packet->eth;
	struct sroce_resource *res = sroce_resource_new(qp);
	u64 value;
	int err;

	if (!res || !(qp->attr.qp_access_flags & IB_ACCESS_REMOTE_WRITE) ||
	    packet->length != sizeof(value) || be32_to_cpu(reth->length) != sizeof(value)) {
		sroce_refuse_invalid(qp);
		return false;
	}
	memcpy(&value, packet->payload, sizeof(value));
	err = sroce_mr_atomic_write(qp, be32_to_cpu(reth->rkey), be64_to_cpu(reth->va), value);
	if (err) {
		sroce_refuse_atomic(qp, packet, err);
		return false;
	}
	sroce_qp_count(qp, SROCE_CNT_ATOMIC_REQUESTS);
	res->empty = true;
	sroce_resource_add(qp, res, 1);
	return true;
}

static int sroce_flush_access(u32 type)
{
	return (type & SROCE_FLUSH_GLOBAL ? SROCE_ACCESS_FLUSH_GLOBAL : 0) |
	       (type & SROCE_FLUSH_PERSISTENT ? SROCE_ACCESS_FLUSH_PERSISTENT : 0);
}

/*
 * What was written before becomes visible to all, or persistent (annex A19).  Requests
 * are executed in their order, and what they wrote to persistent memory has left the
 * caches then (sroce_mr_move()): all that remains is a barrier.
 */
static bool sroce_respond_flush_memory(struct sroce_qp *qp, const struct sroce_packet *packet)
{
	const struct sroce_feth *feth = packet->eth;
	const struct sroce_reth *reth = (const void *)(feth + 1);
	struct sroce_resource *res = sroce_resource_new(qp);
	u32 what = be32_to_cpu(feth->what);
	u32 type = what & SROCE_FETH_TYPE_MASK;
	u32 level = (what & SROCE_FETH_LEVEL_MASK) >> SROCE_FETH_LEVEL_SHIFT;
	int access = sroce_flush_access(type);

	if (!res || !type || type & ~SROCE_FLUSH_TYPES || level > SROCE_FLUSH_MR ||
	    access & ~qp->attr.qp_access_flags) {
		sroce_refuse_invalid(qp);
		return false;
	}
	if (sroce_mr_flush(qp, be32_to_cpu(reth->rkey), be64_to_cpu(reth->va),
			   be32_to_cpu(reth->length), level == SROCE_FLUSH_MR, access)) {
		sroce_refuse_access(qp);
		return false;
	}
	res->empty = true;
	sroce_resource_add(qp, res, 1);
	return true;
}

/* The resource that a repeated request is about, and its number */
static struct sroce_resource *sroce_resource_find(struct sroce_qp *qp, u32 psn, bool atomic,
						  u32 *number)
{
	struct sroce_responder *resp = &qp->resp;
	u32 n = resp->num_resources;

	for (*number = resp->resource_end; n--; ) {
		struct sroce_resource *res = sroce_resource(resp, --*number);

		if (res->atomic == atomic && res->packets &&
		    sroce_psn_diff(psn, res->first_psn) >= 0 &&
		    sroce_psn_diff(psn, res->first_psn) < (s32)res->packets)
			return res;
	}
	return NULL;
}

/* Widens a span, which is pending, by another */
static void sroce_span_add(struct sroce_span *span, const struct sroce_span *more)
{
	if (more->next < span->next) {
		span->next = more->next;
		span->resumed = false;
	}
	span->end = max(span->end, more->end);
	span->stop = max(span->stop, more->stop);
}

/*
 * A repeated READ may ask for a part only, but for nothing else, 9.7.4.4.1.  What was
 * never sent yet will be, in its turn; a part of what was comes before it.
 */
static bool sroce_read_again(struct sroce_qp *qp, struct sroce_resource *res,
			     const struct sroce_packet *packet)
{
	const struct sroce_reth *reth = packet->eth;
	u32 index = sroce_psn_diff(packet->psn, res->first_psn);
	u32 offset = index * qp->mtu;
	u32 length = be32_to_cpu(reth->length);
	struct sroce_span part;

	if (be64_to_cpu(reth->va) != res->va + offset || be32_to_cpu(reth->rkey) != res->rkey ||
	    length > res->length - min(offset, res->length))
		return false;
	part = (struct sroce_span) {
		.next = index,
		.end = index + max(1u, DIV_ROUND_UP(length, qp->mtu)),
		.stop = offset + length,
	};
	if (!res->pending)
		res->rest = part;
	else if (part.end > res->rest.next)
		sroce_span_add(&res->rest, &part);
	else if (sroce_span_pending(&res->gap))
		sroce_span_add(&res->gap, &part);
	else
		res->gap = part;
	return true;
}

/* A request that was executed before, 9.7.5.1.3: answer it again */
static void sroce_respond_duplicate(struct sroce_qp *qp, const struct sroce_packet *packet)
{
	bool atomic = packet->op->flags & SROCE_OP_ATOMIC;
	struct sroce_responder *resp = &qp->resp;
	struct sroce_resource *res;
	u32 number;

	sroce_qp_count(qp, SROCE_CNT_DUPLICATE_REQUEST);
	if (!(packet->op->flags & SROCE_OP_ANSWERED)) {
		resp->ack_due = true;
		return;
	}
	res = sroce_resource_find(qp, packet->psn, atomic, &number);
	if (!res || res->empty != !!(packet->op->flags & (SROCE_OP_ATOMIC_WRITE | SROCE_OP_FLUSH)))
		return;
	if (!atomic && !res->empty && !sroce_read_again(qp, res, packet))
		return;
	if (res->empty)
		res->rest.next = 0;
	if (!res->pending)
		res->again = true;
	res->pending = true;
	if ((s32)(number - resp->resource_next) < 0)
		resp->resource_next = number;
}

/* The SRQ that an XRC request is for; all packets of a message name the same one */
static bool sroce_xrc_packet(struct sroce_qp *qp, const struct sroce_packet *packet)
{
	if (qp->resp.recv.valid && packet->srq_num != qp->resp.srq_num)
		return false;
	return sroce_xrc_enter(qp, packet->srq_num);
}

static bool sroce_respond_execute(struct sroce_qp *qp, const struct sroce_packet *packet)
{
	u16 flags = packet->op->flags;

	if (sroce_qp_is_xrc_target(qp) && !sroce_xrc_packet(qp, packet)) {
		sroce_refuse_invalid(qp);
		return false;
	}
	/* no flags: an opcode that is reserved */
	if (!flags || !sroce_sequence_ok(qp, packet) || !sroce_length_ok(qp, packet)) {
		sroce_refuse_invalid(qp);
		return false;
	}
	if (flags & SROCE_OP_SEND)
		return sroce_respond_send(qp, packet);
	if (flags & SROCE_OP_WRITE)
		return sroce_respond_write(qp, packet);
	if (flags & SROCE_OP_READ)
		return sroce_respond_read(qp, packet);
	if (flags & SROCE_OP_ATOMIC_WRITE)
		return sroce_respond_atomic_write(qp, packet);
	if (flags & SROCE_OP_FLUSH)
		return sroce_respond_flush_memory(qp, packet);
	return sroce_respond_atomic(qp, packet);
}

/* The expected packet is missing: one NAK for a gap, 9.7.5.2.2 */
static void sroce_nak_gap(struct sroce_responder *resp)
{
	if (resp->nak_sent)
		return;
	resp->nak = SROCE_NAK_PSN;
	resp->nak_psn = resp->psn;
	resp->nak_sent = true;
}

/*
 * A packet from beyond a gap.  Behind one that found the receiver not ready nothing is
 * kept: the requester sends it all again (9.7.5.2.8).
 */
static void sroce_respond_ahead(struct sroce_qp *qp, const struct sroce_packet *packet)
{
	struct sroce_responder *resp = &qp->resp;

	sroce_qp_count(qp, SROCE_CNT_OUT_OF_SEQUENCE);
	if (!resp->not_ready &&
	    sroce_psn_diff(packet->psn, resp->psn) < sroce_hold_ahead(qp->mtu))
		sroce_hold_packet(&resp->hold, packet);
	sroce_nak_gap(resp);
}

/* The packet that is expected; false when it was not taken */
static bool sroce_respond_expected(struct sroce_qp *qp, const struct sroce_packet *packet)
{
	struct sroce_responder *resp = &qp->resp;

	resp->nak_sent = false;
	resp->not_ready = false;
	resp->nak = 0;
	if (!sroce_respond_execute(qp, packet))
		return false;
	resp->psn = sroce_psn_add(resp->psn, 1);
	if (packet->op->flags & SROCE_OP_END)
		resp->msn = (resp->msn + 1) & SROCE_PSN_MASK;
	if (packet->bth->psn & cpu_to_be32(SROCE_BTH_ACKREQ) &&
	    !(packet->op->flags & SROCE_OP_ANSWERED))
		resp->ack_due = true;
	return true;
}

/*
 * The turn may have come of what was held, up to the next gap.  As long as none of it is
 * taken, it is still the gap that was reported: what is missing may be right behind.
 */
static void sroce_respond_held(struct sroce_qp *qp)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_held *held;
	bool closed = false;
	u32 psn;

	while ((held = sroce_hold_take(&resp->hold, resp->psn))) {
		bool taken = sroce_respond_expected(qp, &held->packet);

		kfree(held);
		if (!taken)
			return;
		closed = true;
	}
	resp->ack_due = true;	/* the requester waits for it, to go on from here */
	if (!sroce_hold_next(&resp->hold, resp->psn, &psn))
		sroce_hold_purge(&resp->hold);
	else if (closed)
		sroce_nak_gap(resp);
}

static void sroce_respond_rc(struct sroce_qp *qp, const struct sroce_packet *packet)
{
	struct sroce_responder *resp = &qp->resp;
	s32 ahead = sroce_psn_diff(packet->psn, resp->psn);

	if (ahead > 0)
		sroce_respond_ahead(qp, packet);
	else if (ahead < 0)
		sroce_respond_duplicate(qp, packet);
	else if (sroce_respond_expected(qp, packet) && unlikely(sroce_hold_any(&resp->hold)))
		sroce_respond_held(qp);
}

/* UC: a message with a gap is lost; reception goes on with the next, 9.8.2.2 */
static void sroce_respond_uc(struct sroce_qp *qp, const struct sroce_packet *packet)
{
	struct sroce_responder *resp = &qp->resp;
	bool start = packet->op->flags & SROCE_OP_START;

	if (packet->psn != resp->psn || (start && resp->message)) {
		if (packet->psn != resp->psn)
			sroce_qp_count(qp, SROCE_CNT_OUT_OF_SEQUENCE);
		resp->message = 0;
	}
	resp->psn = sroce_psn_add(packet->psn, 1);
	if (!sroce_sequence_ok(qp, packet) || !sroce_length_ok(qp, packet)) {
		resp->message = 0;
		return;
	}
	if (packet->op->flags & SROCE_OP_SEND)
		sroce_respond_send(qp, packet);
	else
		sroce_respond_write(qp, packet);
}

static bool sroce_qkey_ok(const struct sroce_qp *qp, const struct sroce_deth *deth)
{
	return be32_to_cpu(deth->qkey) == qp->attr.qkey;
}

/* A datagram: 40 bytes of GRH and the payload, 9.8.3 and 11.4.1.2 */
static void sroce_respond_datagram(struct sroce_qp *qp, const struct sroce_packet *packet)
{
	const struct sroce_deth *deth = packet->eth;
	struct ib_wc wc = {
		.status = IB_WC_SUCCESS,
		.opcode = IB_WC_RECV,
		.byte_len = SROCE_UD_GRH_BYTES + packet->length,
		.src_qp = be32_to_cpu(deth->src_qpn) & SROCE_QPN_MASK,
		.wc_flags = IB_WC_GRH | IB_WC_WITH_NETWORK_HDR_TYPE,
		.network_hdr_type = packet->frame->v6 ? RDMA_NETWORK_IPV6 : RDMA_NETWORK_IPV4,
	};
	union rdma_network_hdr grh;

	if (!sroce_qkey_ok(qp, deth)) {
		sroce_qp_count(qp, SROCE_CNT_RCV_BAD_QKEY);
		return;
	}
	if (packet->length > ib_mtu_enum_to_int(IB_MTU_4096) || !sroce_recv_need(qp))
		return;
	sroce_frame_grh(packet->frame, &grh);
	if (!sroce_recv_write(qp, packet, 0, &grh, sizeof(grh)) ||
	    !sroce_recv_write(qp, packet, sizeof(grh), packet->payload, packet->length))
		return;
	if (packet->op->flags & SROCE_OP_IMM) {
		wc.ex.imm_data = sroce_last_word(packet);
		wc.wc_flags |= IB_WC_WITH_IMM;
	}
	if (packet->frame->vlan_id < VLAN_N_VID) {
		wc.vlan_id = packet->frame->vlan_id;
		wc.wc_flags |= IB_WC_WITH_VLAN;
	}
	sroce_recv_complete(qp, &wc, sroce_is_solicited(packet));
}

/**
 * sroce_respond_frame - take a frame for a raw packet queue pair
 * @qp: queue pair, locked, that can receive
 * @frame: the frame
 * @length: its length, bytes
 * @wc_flags: for the completion
 *
 * Without a receive work request it is lost; one that it does not fit into completes with
 * an error, and the queue pair goes to the error state.
 */
void sroce_respond_frame(struct sroce_qp *qp, const void *frame, u32 length, int wc_flags)
{
	const struct sroce_packet whole = { .op = &sroce_ops[SROCE_SEND_ONLY] };
	struct ib_wc wc = {
		.status = IB_WC_SUCCESS,
		.opcode = IB_WC_RECV,
		.byte_len = length,
		.wc_flags = wc_flags,
	};

	if (!qp->resp.failed && sroce_recv_need(qp) &&
	    sroce_recv_write(qp, &whole, 0, frame, length))
		sroce_recv_complete(qp, &wc, false);
}

static void sroce_established(struct sroce_qp *qp)
{
	if (qp->state != IB_QPS_RTR || qp->comm_est || sroce_qp_is_datagram(qp))
		return;
	qp->comm_est = true;
	sroce_qp_event(qp, IB_EVENT_COMM_EST);
}

/**
 * sroce_respond_packet - take a request
 * @qp: queue pair, locked, that can receive
 * @packet: packet of the queue pair's service, from its peer
 *
 * The caller then calls sroce_answer_run().
 */
void sroce_respond_packet(struct sroce_qp *qp, const struct sroce_packet *packet)
{
	if (qp->resp.failed)
		return;
	sroce_established(qp);
	switch (qp->ibqp.qp_type) {
	case IB_QPT_RC:
	case IB_QPT_XRC_TGT:
		sroce_respond_rc(qp, packet);
		break;
	case IB_QPT_UC:
		sroce_respond_uc(qp, packet);
		break;
	default:
		sroce_respond_datagram(qp, packet);
	}
}
