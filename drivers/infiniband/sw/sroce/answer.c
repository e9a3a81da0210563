// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The responder's answers (IBA volume 1, 9.7.5.1 and 9.7.5.2).
 *
 * They leave in the order of the requests.  READ responses and atomics wait as
 * "resources"; an ACK, or a NAK, which says more, follows behind them.
 */
#include "answer.h"
#include "build.h"
#include "congestion.h"
#include "mr.h"
#include "qp.h"
#include "xrc.h"

static void sroce_write_aeth(void *eth, u8 syndrome, u32 msn)
{
	struct sroce_aeth *aeth = eth;

	aeth->syndrome_msn = htonl(syndrome << 24 | (msn & SROCE_PSN_MASK));
}

static void sroce_answer_init(struct sroce_qp *qp, struct sroce_build *b, u8 opcode, u32 psn)
{
	*b = (struct sroce_build) {
		.av = qp->av,
		.opcode = opcode,
		.qpn = qp->attr.dest_qp_num,
		.psn = psn,
		.pkey_index = qp->attr.pkey_index,
	};
}

/* An ACK or a NAK: 0 or -ENOMEM */
static int sroce_answer_ack(struct sroce_qp *qp, struct sroce_burst *burst, u8 syndrome, u32 psn,
			    u32 msn)
{
	struct sroce_build b;
	int err;

	sroce_answer_init(qp, &b, SROCE_ACKNOWLEDGE, psn);
	err = sroce_build_begin(qp, burst, &b);
	if (err)
		return err == -ENETUNREACH ? 0 : err;
	sroce_write_aeth(b.eth, syndrome, msn);
	sroce_build_end(qp, burst, &b);
	return 0;
}

static int sroce_answer_atomic(struct sroce_qp *qp, struct sroce_burst *burst,
			       const struct sroce_resource *res)
{
	struct sroce_build b;
	__be64 original = cpu_to_be64(res->original);
	int err;

	sroce_answer_init(qp, &b, SROCE_ATOMIC_ACKNOWLEDGE, res->first_psn);
	err = sroce_build_begin(qp, burst, &b);
	if (err)
		return err == -ENETUNREACH ? 0 : err;
	sroce_write_aeth(b.eth, SROCE_ACK_NO_CREDITS, res->msn);
	memcpy(b.eth + SROCE_AETH_BYTES, &original, sizeof(original));
	sroce_build_end(qp, burst, &b);
	return 0;
}

static u8 sroce_read_opcode(bool first, bool last)
{
	if (first)
		return last ? SROCE_READ_RESPONSE_ONLY : SROCE_READ_RESPONSE_FIRST;
	return last ? SROCE_READ_RESPONSE_LAST : SROCE_READ_RESPONSE_MIDDLE;
}

/* One packet of a READ response: 0, -ENOMEM, or -EACCES when the memory is gone */
static int sroce_answer_read(struct sroce_qp *qp, struct sroce_burst *burst,
			     const struct sroce_resource *res, const struct sroce_span *span)
{
	u32 offset = span->next * qp->mtu;
	bool last = span->next == span->end - 1;
	struct sroce_build b;
	int err;

	if (sroce_qp_is_xrc_target(qp) && !sroce_xrc_enter(qp, res->srq_num))
		return -EACCES;
	sroce_answer_init(qp, &b, sroce_read_opcode(!span->resumed, last),
			  sroce_psn_add(res->first_psn, span->next));
	b.length = min(span->stop - offset, qp->mtu);
	err = sroce_build_begin(qp, burst, &b);
	if (err)
		return err == -ENETUNREACH ? 0 : err;
	if (sroce_ops[b.opcode].flags & SROCE_OP_AETH)
		sroce_write_aeth(b.eth, SROCE_ACK_NO_CREDITS, res->msn);
	err = sroce_mr_copy(qp, res->rkey, res->va + offset, b.payload, b.length,
			    res->length - offset, IB_ACCESS_REMOTE_READ);
	if (err) {
		sroce_build_cancel(qp, burst, &b);
		return err == -EAGAIN ? -ENOMEM : -EACCES;	/* later, or never */
	}
	sroce_build_end(qp, burst, &b);
	return 0;
}

/*
 * Sends a span: as sroce_answer_read(), -EAGAIN when the budget is exhausted, or -ETIME when
 * the rate does not allow it now: then a timer goes on
 */
static int sroce_answer_span(struct sroce_qp *qp, struct sroce_burst *burst,
			     const struct sroce_resource *res, struct sroce_span *span)
{
	u32 steps = 0;
	int err;

	while (sroce_span_pending(span)) {
		if (skb_queue_len(&qp->tx) >= SROCE_TX_BUDGET || steps++ == SROCE_PACKET_BUDGET)
			return -EAGAIN;
		if (sroce_congestion_wait(qp))
			return -ETIME;
		err = sroce_answer_read(qp, burst, res, span);
		if (err)
			return err;
		span->resumed = true;
		span->next++;
	}
	span->resumed = false;
	return 0;
}

/*
 * Sends what a resource has to send: as sroce_answer_span(), or -EBUSY when another CPU
 * has to
 */
static int sroce_answer_resource(struct sroce_qp *qp, struct sroce_burst *burst,
				 struct sroce_resource *res)
{
	int err;

	if (res->atomic) {
		err = sroce_answer_atomic(qp, burst, res);
		res->pending = err;
		return err;
	}
	if (!sroce_stream_here(qp, &qp->resp.stream, false, SROCE_WORK_NOW))
		return -EBUSY;
	err = sroce_answer_span(qp, burst, res, &res->gap);
	if (!err)
		err = sroce_answer_span(qp, burst, res, &res->rest);
	if (!err)
		res->pending = false;
	return err;
}

/* READ memory that went away meanwhile: the key is no good any more, 9.7.5.2.4 */
static void sroce_answer_lost(struct sroce_qp *qp, struct sroce_resource *res)
{
	struct sroce_responder *resp = &qp->resp;

	resp->nak = SROCE_NAK_ACCESS;
	resp->nak_psn = sroce_psn_add(res->first_psn, res->rest.next);
	resp->failed = true;
	resp->resource_next = resp->resource_end;
	sroce_qp_event(qp, IB_EVENT_QP_ACCESS_ERR);
}

/*
 * A READ that is asked for again when its memory is no longer to be read is not answered:
 * as a rule the first answer arrived, too late, and the consumer that learnt of it has
 * invalidated the key.  A NAK would end a connection with which nothing is wrong; a
 * requester that does lack the answer runs out of retries.
 */
static int sroce_answer_resources(struct sroce_qp *qp, struct sroce_burst *burst)
{
	struct sroce_responder *resp = &qp->resp;

	while (resp->resource_next != resp->resource_end) {
		struct sroce_resource *res = sroce_resource(resp, resp->resource_next);
		int err = res->pending ? sroce_answer_resource(qp, burst, res) : 0;

		if (err == -EACCES && res->again) {
			res->pending = false;
		} else if (err == -EACCES) {
			sroce_answer_lost(qp, res);
			return 0;
		} else if (err) {
			return err;
		}
		resp->resource_next++;
	}
	return 0;
}

/*
 * What an ACK is for: the last request that was executed and that no response of its own
 * answers.  For one with such a response it would say that this need not come, 9.7.5.1.
 */
static u32 sroce_ack_psn(const struct sroce_qp *qp, u32 *msn)
{
	const struct sroce_responder *resp = &qp->resp;
	u32 n = resp->num_resources;
	u32 number = resp->resource_end;
	u32 psn = resp->psn;

	*msn = resp->msn;
	while (n--) {
		const struct sroce_resource *res = sroce_resource(resp, --number);

		if (!res->packets || sroce_psn_add(res->first_psn, res->packets) != psn)
			break;
		psn = res->first_psn;
		*msn = sroce_psn_add(res->msn, -1);
	}
	return sroce_psn_add(psn, -1);
}

/* What comes behind the resources: 0 or -ENOMEM */
static int sroce_answer_last(struct sroce_qp *qp, struct sroce_burst *burst)
{
	struct sroce_responder *resp = &qp->resp;
	u32 psn, msn = resp->msn;
	int err = 0;

	if (resp->nak) {
		err = sroce_answer_ack(qp, burst, resp->nak, resp->nak_psn, msn);
	} else if (resp->ack_due) {
		psn = sroce_ack_psn(qp, &msn);
		err = sroce_answer_ack(qp, burst, SROCE_ACK_NO_CREDITS, psn, msn);
	}
	if (err)
		return err;
	resp->nak = 0;
	resp->ack_due = false;
	return 0;
}

/**
 * sroce_answer_run - send the answers that are due
 * @qp: RC queue pair, locked
 *
 * One ACK for all that came together.  When memory or the budget is short, the
 * worker goes on.
 */
void sroce_answer_run(struct sroce_qp *qp)
{
	struct sroce_responder *resp = &qp->resp;
	struct sroce_burst burst = {};
	int err;

	if (!sroce_qp_is_reliable(qp) || !sroce_qp_can_receive(qp))
		return;
	if (resp->resource_next == resp->resource_end && !resp->nak && !resp->ack_due)
		return;
	err = sroce_answer_resources(qp, &burst);
	if (!err)
		err = sroce_answer_last(qp, &burst);
	sroce_build_flush(qp, &burst);
	if (err == -ENOMEM)
		sroce_qp_work_due(qp, SROCE_WORK_LATER);
	else if (err && err != -ETIME)
		sroce_qp_work_due(qp, SROCE_WORK_NOW);
	else if (!err && resp->failed)
		sroce_qp_error(qp);
}
