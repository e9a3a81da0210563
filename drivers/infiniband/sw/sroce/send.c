// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The requester's sending side: work requests into packets (IBA volume 1, 9.7.1
 * to 9.7.3 and 9.9).  It runs in the caller of a doorbell, on an acknowledgment,
 * and in the worker when a budget was exhausted.
 *
 * A work request is copied out of the ring once, when it is begun, and gets its
 * PSNs then.  Its gather list is copied again when packets of it are repeated;
 * it has to have the same length.
 */
#include <linux/slab.h>
#include "build.h"
#include "coalesce.h"
#include "complete.h"
#include "mr.h"
#include "qp.h"
#include "raw.h"
#include "respond.h"
#include "send.h"
#include "trace.h"

/* What kind of work request may go to what kind of queue pair, 10.8.1 (table 83) */
static bool sroce_send_opcode_ok(const struct sroce_qp *qp, u32 opcode)
{
	bool kernel = !qp->ibqp.uobject;

	if (sroce_qp_is_raw(qp))
		return opcode == IB_WR_SEND;
	switch (opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
		return true;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return !sroce_qp_is_datagram(qp);
	case IB_WR_SEND_WITH_INV:
	case IB_WR_RDMA_READ:
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return sroce_qp_is_reliable(qp);
	case SROCE_WR_ATOMIC_WRITE:
	case SROCE_WR_FLUSH:
		return !kernel && sroce_qp_is_reliable(qp);
	case IB_WR_LOCAL_INV:
		return sroce_qp_is_reliable(qp);
	case IB_WR_BIND_MW:
		return !kernel && !sroce_qp_is_datagram(qp);
	case IB_WR_REG_MR:
		return kernel && qp->ibqp.qp_type == IB_QPT_RC;
	default:
		return false;
	}
}

static bool sroce_wqe_is_local(const struct sroce_swqe *wqe)
{
	return wqe->opcode == IB_WR_LOCAL_INV || wqe->opcode == IB_WR_REG_MR ||
	       wqe->opcode == IB_WR_BIND_MW;
}

static bool sroce_wqe_is_atomic(const struct sroce_swqe *wqe)
{
	return wqe->opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
	       wqe->opcode == IB_WR_ATOMIC_FETCH_AND_ADD;
}

/**
 * sroce_send_load_sgl - copy a begun work request's list out of the ring
 * @qp: queue pair, locked
 * @slot: slot of the work request, which is not inline
 * @sgl: where to
 *
 * Return: 0, or -EINVAL when it is not as it was when the request was begun.
 */
int sroce_send_load_sgl(struct sroce_qp *qp, u32 slot, struct sroce_sgl *sgl)
{
	const struct sroce_send_wqe *ring = sroce_ring_element(&qp->req.ring, slot);
	int err;

	err = sroce_sgl_load(sgl, qp->req.max_sge, (const struct sroce_sge *)ring->payload,
			     READ_ONCE(ring->data.num_sge));
	if (!err && sgl->total != qp->req.wqes[slot].length)
		err = -EINVAL;
	return err;
}

/* The length of a request's data; leaves its gather list loaded */
static int sroce_wqe_length(struct sroce_qp *qp, u32 slot, const struct sroce_send_wqe *ring,
			    struct sroce_swqe *wqe)
{
	struct sroce_requester *req = &qp->req;
	int err;

	if (wqe->opcode == SROCE_WR_ATOMIC_WRITE) {	/* its eight bytes come with it */
		wqe->flags |= IB_SEND_INLINE;
		wqe->length = sizeof(u64);
		return 0;
	}
	if (wqe->opcode == SROCE_WR_FLUSH) {	/* moves no data */
		wqe->flush_length = READ_ONCE(ring->data.length);
		return 0;
	}
	if (wqe->flags & IB_SEND_INLINE) {
		wqe->length = READ_ONCE(ring->data.length);
		return wqe->length <= req->max_inline ? 0 : -EINVAL;
	}
	err = sroce_sgl_load(req->gather, req->max_sge, (const struct sroce_sge *)ring->payload,
			     READ_ONCE(ring->data.num_sge));
	req->gather_valid = !err;
	req->gather_slot = slot;
	wqe->length = err ? 0 : req->gather->total;
	return err;
}

/* What a FLUSH asks for, as it is on the wire, or 0 for what has no place there */
static u32 sroce_feth(u32 type, u32 level)
{
	if (type > SROCE_FETH_TYPE_MASK ||
	    level > SROCE_FETH_LEVEL_MASK >> SROCE_FETH_LEVEL_SHIFT)
		return 0;
	return type | level << SROCE_FETH_LEVEL_SHIFT;
}

static void sroce_wqe_copy_operands(const struct sroce_qp *qp, const struct sroce_send_wr *wr,
				    struct sroce_swqe *wqe)
{
	switch (wqe->opcode) {
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		wqe->remote_addr = READ_ONCE(wr->wr.atomic.remote_addr);
		wqe->rkey = READ_ONCE(wr->wr.atomic.rkey);
		wqe->compare_add = READ_ONCE(wr->wr.atomic.compare_add);
		wqe->swap = READ_ONCE(wr->wr.atomic.swap);
		break;
	case IB_WR_LOCAL_INV:
		wqe->rkey = (__force u32)wqe->imm;
		break;
	case IB_WR_REG_MR:	/* the ring is a kernel user's: no one else writes it */
		wqe->mr = (struct ib_mr *)(uintptr_t)wr->wr.reg.mr;
		wqe->rkey = wr->wr.reg.key;
		wqe->access = wr->wr.reg.access;
		break;
	case SROCE_WR_FLUSH:
		wqe->remote_addr = READ_ONCE(wr->wr.flush.remote_addr);
		wqe->rkey = READ_ONCE(wr->wr.flush.rkey);
		wqe->feth = sroce_feth(READ_ONCE(wr->wr.flush.type), READ_ONCE(wr->wr.flush.level));
		break;
	case IB_WR_BIND_MW:
		wqe->bind.addr = READ_ONCE(wr->wr.mw.addr);
		wqe->bind.length = READ_ONCE(wr->wr.mw.length);
		wqe->bind.mr_lkey = READ_ONCE(wr->wr.mw.mr_lkey);
		wqe->bind.mw_rkey = READ_ONCE(wr->wr.mw.mw_rkey);
		wqe->bind.rkey = READ_ONCE(wr->wr.mw.rkey);
		wqe->bind.access = READ_ONCE(wr->wr.mw.access);
		break;
	default:
		if (sroce_qp_is_datagram(qp)) {
			wqe->remote_qpn = READ_ONCE(wr->wr.ud.remote_qpn);
			wqe->qkey = READ_ONCE(wr->wr.ud.remote_qkey);
			wqe->ah_num = READ_ONCE(wr->wr.ud.ah_num);
			wqe->pkey_index = READ_ONCE(wr->wr.ud.pkey_index);
		} else {
			wqe->remote_addr = READ_ONCE(wr->wr.rdma.remote_addr);
			wqe->rkey = READ_ONCE(wr->wr.rdma.rkey);
		}
	}
}

/* Copies a request out of the ring; the status that it fails with, or IB_WC_SUCCESS */
static enum ib_wc_status sroce_wqe_copy(struct sroce_qp *qp, u32 slot)
{
	const struct sroce_send_wqe *ring = sroce_ring_element(&qp->req.ring, slot);
	struct sroce_swqe *wqe = &qp->req.wqes[slot];
	u32 opcode = READ_ONCE(ring->wr.opcode);

	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = READ_ONCE(ring->wr.wr_id);
	wqe->flags = READ_ONCE(ring->wr.send_flags);
	wqe->imm = READ_ONCE(ring->wr.ex.imm_data);
	wqe->srq_num = READ_ONCE(ring->wr.srq_num);
	if (!sroce_send_opcode_ok(qp, opcode))
		return IB_WC_LOC_QP_OP_ERR;
	wqe->opcode = opcode;
	sroce_wqe_copy_operands(qp, &ring->wr, wqe);
	if (sroce_wqe_is_local(wqe))
		return IB_WC_SUCCESS;
	if (opcode == SROCE_WR_FLUSH && !(wqe->feth & SROCE_FETH_TYPE_MASK))
		return IB_WC_LOC_QP_OP_ERR;	/* it would flush nothing */
	if (sroce_wqe_is_rd_atomic(wqe) &&
	    ((wqe->flags & IB_SEND_INLINE && opcode != SROCE_WR_ATOMIC_WRITE) ||
	     !qp->attr.max_rd_atomic))
		return IB_WC_LOC_QP_OP_ERR;
	if (sroce_wqe_length(qp, slot, ring, wqe))
		return IB_WC_LOC_QP_OP_ERR;
	if (sroce_wqe_is_atomic(wqe) && wqe->length != sizeof(u64))
		return IB_WC_LOC_LEN_ERR;
	if (sroce_qp_is_datagram(qp) && wqe->length > qp->mtu)
		return IB_WC_LOC_LEN_ERR;
	if (sroce_qp_is_raw(qp)) {
		wqe->packets = 1;
		return sroce_raw_length_ok(qp->dev, wqe->length) ?
		       IB_WC_SUCCESS : IB_WC_LOC_LEN_ERR;
	}
	wqe->packets = sroce_wqe_is_atomic(wqe) ? 1 : max(1u, DIV_ROUND_UP(wqe->length, qp->mtu));
	return IB_WC_SUCCESS;
}

/* Invalidations, registrations and binds are done when their turn comes, 10.6.5 */
static enum ib_wc_status sroce_wqe_local(struct sroce_qp *qp, struct sroce_swqe *wqe)
{
	int err;

	if (wqe->opcode == IB_WR_BIND_MW)
		return sroce_mw_bind(qp, &wqe->bind) ? IB_WC_MW_BIND_ERR : IB_WC_SUCCESS;
	if (wqe->opcode == IB_WR_REG_MR)
		err = sroce_mr_register(wqe->mr, qp->ibqp.pd, wqe->rkey, wqe->access);
	else
		err = sroce_mr_invalidate(qp, wqe->rkey);
	return err ? IB_WC_LOC_QP_OP_ERR : IB_WC_SUCCESS;
}

static void sroce_wqe_fail(struct sroce_swqe *wqe, enum ib_wc_status status)
{
	wqe->state = SROCE_WQE_FAILED;
	wqe->status = status;
}

/* Must this request wait for earlier ones? */
static bool sroce_wqe_must_wait(const struct sroce_qp *qp, u32 slot)
{
	const struct sroce_send_wqe *ring = sroce_ring_element(&qp->req.ring, slot);
	u32 opcode = READ_ONCE(ring->wr.opcode);

	if (READ_ONCE(ring->wr.send_flags) & IB_SEND_FENCE && qp->req.rd_atomic)
		return true;
	switch (opcode) {
	case IB_WR_RDMA_READ:
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
	case SROCE_WR_ATOMIC_WRITE:
	case SROCE_WR_FLUSH:
		return qp->req.rd_atomic && qp->req.rd_atomic >= qp->attr.max_rd_atomic;
	case IB_WR_LOCAL_INV:	/* earlier requests may have to be repeated from it */
		return qp->req.una != qp->req.psn_end;
	default:
		return false;
	}
}

/* Begins the request in slot @fresh; false when there is none or it has to wait */
static bool sroce_wqe_begin(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;
	u32 slot = req->fresh;
	struct sroce_swqe *wqe = &req->wqes[slot];
	enum ib_wc_status status;

	if (slot == sroce_ring_producer(&req->ring) || qp->state != IB_QPS_RTS ||
	    sroce_wqe_must_wait(qp, slot))
		return false;
	/* a producer that ran past what is not completed would wrap onto it */
	if (sroce_ring_next(&req->ring, slot) == req->ring.index)
		return false;
	status = sroce_wqe_copy(qp, slot);
	if (status == IB_WC_SUCCESS && sroce_wqe_is_rd_atomic(wqe) &&
	    req->rd_atomic >= qp->attr.max_rd_atomic)
		return false;	/* the user changed it behind our back: look again */
	req->fresh = sroce_ring_next(&req->ring, slot);
	wqe->first_psn = req->psn_end;
	if (status == IB_WC_SUCCESS && sroce_wqe_is_local(wqe))
		status = sroce_wqe_local(qp, wqe);
	if (status != IB_WC_SUCCESS) {
		wqe->packets = 0;
		sroce_wqe_fail(wqe, status);
	} else if (sroce_wqe_is_local(wqe)) {
		wqe->state = SROCE_WQE_DONE;
	} else {
		req->psn_end = sroce_psn_add(req->psn_end, wqe->packets);
		req->rd_atomic += sroce_wqe_is_rd_atomic(wqe);
	}
	trace_sroce_request(qp, wqe);
	return true;
}

static u8 sroce_opcode_send(const struct sroce_swqe *wqe, bool first, bool last)
{
	if (!last)
		return first ? SROCE_SEND_FIRST : SROCE_SEND_MIDDLE;
	switch (wqe->opcode) {
	case IB_WR_SEND_WITH_IMM:
		return first ? SROCE_SEND_ONLY_IMM : SROCE_SEND_LAST_IMM;
	case IB_WR_SEND_WITH_INV:
		return first ? SROCE_SEND_ONLY_INV : SROCE_SEND_LAST_INV;
	default:
		return first ? SROCE_SEND_ONLY : SROCE_SEND_LAST;
	}
}

static u8 sroce_opcode_write(const struct sroce_swqe *wqe, bool first, bool last)
{
	bool imm = wqe->opcode == IB_WR_RDMA_WRITE_WITH_IMM;

	if (!last)
		return first ? SROCE_WRITE_FIRST : SROCE_WRITE_MIDDLE;
	if (first)
		return imm ? SROCE_WRITE_ONLY_IMM : SROCE_WRITE_ONLY;
	return imm ? SROCE_WRITE_LAST_IMM : SROCE_WRITE_LAST;
}

static u8 sroce_opcode_of(const struct sroce_swqe *wqe, bool first, bool last)
{
	switch (wqe->opcode) {
	case IB_WR_RDMA_READ:
		return SROCE_READ_REQUEST;
	case IB_WR_ATOMIC_CMP_AND_SWP:
		return SROCE_COMPARE_SWAP;
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return SROCE_FETCH_ADD;
	case SROCE_WR_ATOMIC_WRITE:
		return SROCE_ATOMIC_WRITE;
	case SROCE_WR_FLUSH:
		return SROCE_FLUSH;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return sroce_opcode_write(wqe, first, last);
	default:
		return sroce_opcode_send(wqe, first, last);
	}
}

static void *sroce_write_deth(struct sroce_qp *qp, const struct sroce_swqe *wqe, void *eth)
{
	struct sroce_deth *deth = eth;

	/* a Q_Key with its highest bit set stands for the queue pair's own, 10.2.5 */
	deth->qkey = htonl(wqe->qkey & 0x80000000 ? qp->attr.qkey : wqe->qkey);
	deth->src_qpn = htonl(qp->ibqp.qp_num);
	return deth + 1;
}

static void *sroce_write_xrceth(const struct sroce_swqe *wqe, void *eth)
{
	struct sroce_xrceth *xrceth = eth;

	xrceth->srq_num = htonl(wqe->srq_num & SROCE_SRQ_MASK);
	return xrceth + 1;
}

static void *sroce_write_reth(const struct sroce_swqe *wqe, u32 offset, u32 length, void *eth)
{
	struct sroce_reth *reth = eth;

	reth->va = cpu_to_be64(wqe->remote_addr + offset);
	reth->rkey = htonl(wqe->rkey);
	reth->length = htonl(length);
	return reth + 1;
}

static void *sroce_write_feth(const struct sroce_swqe *wqe, void *eth)
{
	struct sroce_feth *feth = eth;

	feth->what = htonl(wqe->feth);
	return feth + 1;
}

static void sroce_write_atomic_eth(const struct sroce_swqe *wqe, void *eth)
{
	bool cas = wqe->opcode == IB_WR_ATOMIC_CMP_AND_SWP;
	struct sroce_atomic_eth *atomic = eth;

	atomic->va = cpu_to_be64(wqe->remote_addr);
	atomic->rkey = htonl(wqe->rkey);
	atomic->swap_add = cpu_to_be64(cas ? wqe->swap : wqe->compare_add);
	atomic->compare = cpu_to_be64(cas ? wqe->compare_add : 0);
}

/* The extended transport headers, in the order of 9.3 */
static void sroce_write_eth(struct sroce_qp *qp, const struct sroce_swqe *wqe,
			    const struct sroce_build *b, u32 offset, u32 reth_length)
{
	const struct sroce_op *op = &sroce_ops[b->opcode];
	void *eth = b->eth;

	if (sroce_qp_is_datagram(qp))
		eth = sroce_write_deth(qp, wqe, eth);
	if (qp->ibqp.qp_type == IB_QPT_XRC_INI)
		eth = sroce_write_xrceth(wqe, eth);
	if (op->flags & SROCE_OP_FLUSH)
		eth = sroce_write_feth(wqe, eth);
	if (op->flags & SROCE_OP_RETH)
		eth = sroce_write_reth(wqe, offset, reth_length, eth);
	if (op->flags & SROCE_OP_ATOMIC_ETH)
		sroce_write_atomic_eth(wqe, eth);
	if (op->flags & SROCE_OP_IMM)
		memcpy(eth, &wqe->imm, sizeof(wqe->imm));
	if (op->flags & SROCE_OP_IETH)
		*(__be32 *)eth = htonl((__force u32)wqe->imm);
}

/*
 * Collects a packet's payload: the enum ib_wc_status that the request fails with, or
 * -EAGAIN when memory is being brought
 */
static int sroce_gather(struct sroce_qp *qp, u32 slot, u32 offset, void *to, u32 length)
{
	const struct sroce_send_wqe *ring = sroce_ring_element(&qp->req.ring, slot);
	struct sroce_requester *req = &qp->req;
	int err;

	if (!length)
		return IB_WC_SUCCESS;
	if (req->wqes[slot].flags & IB_SEND_INLINE) {
		memcpy(to, ring->payload + offset, length);
		return IB_WC_SUCCESS;
	}
	if (!req->gather_valid || req->gather_slot != slot) {
		req->gather_valid = !sroce_send_load_sgl(qp, slot, req->gather);
		req->gather_slot = slot;
		if (!req->gather_valid)
			return IB_WC_LOC_QP_OP_ERR;
	}
	err = sroce_sgl_copy(qp->dev, qp->ibqp.pd, req->gather, offset, to, length, 0);
	if (err == -EAGAIN)
		return err;
	return err ? IB_WC_LOC_PROT_ERR : IB_WC_SUCCESS;
}

/* Is there a further request whose packets will follow at once? */
static bool sroce_send_more(const struct sroce_qp *qp)
{
	const struct sroce_requester *req = &qp->req;
	const struct sroce_send_wqe *ring;
	u32 next = sroce_ring_next(&req->ring, req->next);

	if (next == sroce_ring_producer(&req->ring))
		return false;
	ring = sroce_ring_element(&req->ring, next);
	return READ_ONCE(ring->wr.opcode) <= IB_WR_RDMA_WRITE_WITH_IMM;
}

/* Is the packet with this PSN one that was sent before? */
static bool sroce_send_repeats(const struct sroce_requester *req, u32 psn)
{
	return sroce_psn_diff(psn, req->psn_max) < 0;
}

/* How many packets may be under way: what a loss, and what congestion leaves */
static u32 sroce_send_window(const struct sroce_qp *qp)
{
	return min(qp->req.recovery.window, sroce_congestion_window(qp));
}

/*
 * Ask for an ACK at the end of what there is to send, often enough for the
 * window, and with the last of what is repeated.
 */
static bool sroce_send_ask(const struct sroce_qp *qp, u32 psn, bool last)
{
	const struct sroce_requester *req = &qp->req;

	if (!sroce_qp_is_reliable(qp))
		return false;
	if (last && (!sroce_send_more(qp) || sroce_send_repeats(req, psn)))
		return true;
	if (sroce_send_repeats(req, psn) && sroce_psn_add(psn, 1) == req->recovery.end)
		return true;
	return sroce_psn_diff(psn, req->psn_asked) >= (s32)(sroce_send_window(qp) / 4);
}

static struct sroce_av *sroce_send_av(struct sroce_qp *qp, const struct sroce_swqe *wqe)
{
	if (sroce_qp_is_datagram(qp))
		return sroce_av_find(qp->dev, qp->ibqp.pd, wqe->ah_num);
	kref_get(&qp->av->ref);
	return qp->av;
}

/*
 * A READ is requested whole, unless its PSNs are too many at once, or some are missing: a
 * stretch that is sent again may begin within it, but never ends there, since a part would
 * be a request of its own for a peer that did not get the whole.
 */
static u32 sroce_read_packets(const struct sroce_requester *req, const struct sroce_swqe *wqe,
			      u32 index)
{
	u32 packets = min_t(u32, wqe->packets - index, SROCE_PSN_WINDOW);

	if (sroce_send_repeats(req, req->psn)) {
		u32 end = req->psn == req->recovery.first ? req->recovery.end : req->psn_max;

		packets = min_t(u32, packets, sroce_psn_diff(end, req->psn));
	}
	return packets;
}

static u32 sroce_packet_psns(const struct sroce_requester *req, const struct sroce_swqe *wqe,
			     u32 index)
{
	return wqe->opcode == IB_WR_RDMA_READ ? sroce_read_packets(req, wqe, index) : 1;
}

/* What the RETH of packet @index says that it is about */
static u32 sroce_reth_length(const struct sroce_qp *qp, const struct sroce_swqe *wqe, u32 index)
{
	u32 remains = wqe->length - index * qp->mtu;

	if (wqe->opcode == SROCE_WR_FLUSH)
		return wqe->flush_length;
	if (wqe->opcode == IB_WR_RDMA_READ)
		return min_t(u64, remains,
			     (u64)sroce_read_packets(&qp->req, wqe, index) * qp->mtu);
	return remains;
}

/* The packet that was built is answered at once */
static void sroce_send_asked(struct sroce_qp *qp, struct sroce_swqe *wqe, u32 index)
{
	struct sroce_requester *req = &qp->req;
	u32 asked = sroce_psn_add(req->psn, sroce_packet_psns(req, wqe, index) - 1);

	if (sroce_psn_diff(asked, req->psn_asked) > 0)
		req->psn_asked = asked;
	if (sroce_send_repeats(req, req->psn)) {
		wqe->repeated = true;
		if (sroce_psn_diff(asked, req->recovery.end) >= 0)
			req->recovery.end = sroce_psn_add(asked, 1);
	}
	sroce_recover_sent(qp, req->psn, sroce_send_repeats(req, req->psn));
}

/* The frame of a raw packet queue pair's request: as sroce_send_packet() */
static int sroce_send_frame(struct sroce_qp *qp, u32 slot)
{
	struct sroce_swqe *wqe = &qp->req.wqes[slot];
	struct sk_buff *skb = sroce_raw_alloc(wqe->length);
	int status;

	if (!skb)
		return -ENOMEM;
	status = sroce_gather(qp, slot, 0, skb->data, wqe->length);
	if (status == IB_WC_SUCCESS &&
	    !sroce_raw_finish(qp->dev, skb, wqe->flags & IB_SEND_IP_CSUM))
		status = IB_WC_LOC_LEN_ERR;
	if (status == IB_WC_SUCCESS) {
		__skb_queue_tail(&qp->tx, skb);
		return 0;
	}
	kfree_skb(skb);
	if (status < 0)
		return status;
	sroce_wqe_fail(wqe, status);
	return 1;
}

/* Builds packet @index of a message: 0, -ENOMEM, or 1 when the request failed */
static int sroce_send_packet(struct sroce_qp *qp, struct sroce_burst *burst, u32 slot, u32 index)
{
	struct sroce_swqe *wqe = &qp->req.wqes[slot];
	bool rd_atomic = sroce_wqe_is_rd_atomic(wqe);
	bool last = rd_atomic || index == wqe->packets - 1;
	u32 offset = index * qp->mtu;
	u32 remains = wqe->length - offset;
	struct sroce_build b = {
		.av = sroce_send_av(qp, wqe),
		.opcode = sroce_opcode_of(wqe, !index, last),
		.qpn = sroce_qp_is_datagram(qp) ? wqe->remote_qpn : qp->attr.dest_qp_num,
		.psn = qp->req.psn,
		.pkey_index = qp->attr.pkey_index,
		.solicited = last && wqe->flags & IB_SEND_SOLICITED && !rd_atomic,
		.ask = sroce_send_ask(qp, qp->req.psn, last),
		.length = rd_atomic && wqe->opcode != SROCE_WR_ATOMIC_WRITE ?
			  0 : min(remains, qp->mtu),
	};
	int err, status;

	if (!b.av) {
		sroce_wqe_fail(wqe, IB_WC_LOC_QP_OP_ERR);
		return 1;
	}
	err = sroce_build_begin(qp, burst, &b);
	if (err)
		goto out;
	sroce_write_eth(qp, wqe, &b, offset, sroce_reth_length(qp, wqe, index));
	status = sroce_gather(qp, slot, offset, b.payload, b.length);
	if (unlikely(status != IB_WC_SUCCESS)) {
		sroce_build_cancel(qp, burst, &b);
		if (status > 0)
			sroce_wqe_fail(wqe, status);
		err = status < 0 ? status : 1;
		goto out;
	}
	sroce_build_end(qp, burst, &b);
	if (b.ask || rd_atomic)		/* those are answered in any case */
		sroce_send_asked(qp, wqe, index);
out:
	sroce_av_put(b.av);
	return err == -ENETUNREACH ? 0 : err;
}

/* May the next packet go now? */
static bool sroce_send_may(struct sroce_qp *qp, const struct sroce_swqe *wqe, u32 index)
{
	const struct sroce_requester *req = &qp->req;
	s32 under_way = sroce_psn_diff(req->psn, req->una);

	if (!sroce_qp_is_reliable(qp))
		return true;
	if (sroce_wqe_is_rd_atomic(wqe))
		return index && sroce_psn_diff(req->psn, req->psn_max) >= 0 ?
			!under_way : under_way < (s32)SROCE_PSN_WINDOW / 2;
	if (under_way < (s32)sroce_send_window(qp))
		return true;
	if (under_way >= (s64)sroce_congestion_window(qp))
		sroce_congestion_full(qp);
	return false;
}

/* A packet is in its frame: on to the next */
static void sroce_send_advance(struct sroce_qp *qp, struct sroce_swqe *wqe, u32 psns)
{
	struct sroce_requester *req = &qp->req;

	req->psn = sroce_psn_add(req->psn, psns);
	if (sroce_psn_diff(req->psn, req->psn_max) > 0)
		req->psn_max = req->psn;
	if (!sroce_qp_is_reliable(qp))
		req->una = req->psn;
	if (req->psn != sroce_psn_add(wqe->first_psn, wqe->packets))
		return;
	if (!sroce_qp_is_reliable(qp))
		wqe->state = SROCE_WQE_DONE;
	req->next = sroce_ring_next(&req->ring, req->next);
}

/* One step; false when there is nothing to do now */
static bool sroce_send_step(struct sroce_qp *qp, struct sroce_burst *burst)
{
	struct sroce_requester *req = &qp->req;
	struct sroce_swqe *wqe;
	u32 index;
	int err;

	/* what was missing is sent again: on to what was not sent yet */
	if (sroce_send_repeats(req, req->psn) &&
	    sroce_psn_diff(req->psn, req->recovery.end) >= 0)
		sroce_complete_seek(qp, req->psn_max);
	if (req->next == req->fresh && !sroce_wqe_begin(qp))
		return false;
	wqe = &req->wqes[req->next];
	if (wqe->state == SROCE_WQE_FAILED)
		return false;	/* nothing goes past it */
	if (!wqe->packets || wqe->state == SROCE_WQE_DONE) {
		req->next = sroce_ring_next(&req->ring, req->next);
		return true;
	}
	index = sroce_psn_diff(req->psn, wqe->first_psn) & SROCE_PSN_MASK;
	if (WARN_ON_ONCE(index >= wqe->packets))
		return false;
	if (!sroce_send_may(qp, wqe, index) ||
	    (!sroce_qp_is_datagram(qp) && !sroce_qp_is_raw(qp) && sroce_congestion_wait(qp)))
		return false;
	if (sroce_qp_is_raw(qp))
		err = sroce_send_frame(qp, req->next);
	else
		err = sroce_send_packet(qp, burst, req->next, index);
	if (err == -EAGAIN && sroce_qp_is_reliable(qp)) {
		sroce_recover_wait(qp, SROCE_PAGES_US);
		return false;
	}
	if (err) {
		if (err < 0)
			sroce_qp_work_due(qp, SROCE_WORK_LATER);
		return false;
	}
	sroce_send_advance(qp, wqe, sroce_packet_psns(req, wqe, index));
	return true;
}

/*
 * Datagrams may overtake each other; all others are sent by one CPU at a time.
 * What another CPU may not send now is sent on the ACK that is due, since the last
 * packet under way asks for one; the worker does it if that does not come soon.
 */
static bool sroce_send_here(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;

	if (sroce_qp_is_datagram(qp))
		return true;
	if (qp->ibqp.qp_type == IB_QPT_UC || sroce_qp_is_raw(qp))
		return sroce_stream_here(qp, &req->stream, false, SROCE_WORK_NOW);
	return sroce_stream_here(qp, &req->stream,
				 req->una == req->psn_max || req->psn != req->psn_max,
				 SROCE_WORK_LATER);
}

/* Does nothing follow because the next request failed before it sent anything? */
static bool sroce_send_failed(const struct sroce_requester *req)
{
	return req->next != req->fresh && req->wqes[req->next].state == SROCE_WQE_FAILED;
}

/*
 * Nothing follows for now, whatever was expected: the last packet has to ask for an
 * ACK.  When its frame is complete already, it is sent again.
 */
static void sroce_send_ask_last(struct sroce_qp *qp, struct sroce_burst *burst)
{
	struct sroce_requester *req = &qp->req;
	u32 last = sroce_psn_add(req->psn, -1);

	if (!sroce_qp_is_reliable(qp) || req->una == req->psn || req->psn_asked == last)
		return;
	if (burst->skb && burst->packets) {
		sroce_build_ask(burst);
		req->psn_asked = last;
		sroce_recover_sent(qp, last, req->recovery.active);
	} else if (sroce_send_failed(req)) {
		sroce_complete_seek(qp, last);
		req->recovery.end = req->psn_max;
		sroce_send_step(qp, burst);
	}
}

/*
 * Says whether a user's provider has to ring when it posts.  As long as there is
 * something that waits, for an ACK, a timer or the worker, we look again without
 * being called; after that it depends on how he posts.  True when more was posted
 * meanwhile, perhaps silently.
 */
static bool sroce_send_settle(struct sroce_qp *qp)
{
	struct sroce_requester *req = &qp->req;

	if (!qp->ibqp.uobject)
		return false;
	if (req->next != sroce_ring_producer(&req->ring)) {
		sroce_ring_quiet(&req->ring);
		return false;
	}
	return sroce_coalesce_settle(qp);
}

/**
 * sroce_send_run - send what can be sent, complete what is complete
 * @qp: queue pair, locked
 *
 * In an error state, flushes instead.
 */
void sroce_send_run(struct sroce_qp *qp)
{
	struct sroce_burst burst = {};
	u32 steps = 0;

	if (!qp->req.wqes || qp->dead)
		return;
	if (qp->state == IB_QPS_ERR || qp->state == IB_QPS_SQE) {
		sroce_complete_flush(qp);
		return;
	}
	if ((qp->state != IB_QPS_RTS && qp->state != IB_QPS_SQD) || qp->req.rnr_wait)
		return;
	while (sroce_send_here(qp) && sroce_send_step(qp, &burst)) {
		if (skb_queue_len(&qp->tx) >= SROCE_TX_BUDGET || ++steps == SROCE_PACKET_BUDGET) {
			sroce_qp_work_due(qp, SROCE_WORK_NOW);
			break;
		}
	}
	sroce_send_ask_last(qp, &burst);
	sroce_build_flush(qp, &burst);
	sroce_complete_done(qp);
	sroce_recover_watch(qp);
	if (sroce_send_settle(qp))
		sroce_qp_work_due(qp, SROCE_WORK_NOW);
}

/**
 * sroce_send_prepare - make room for begun work requests
 * @qp: queue pair, not locked
 *
 * For a kernel user when the queue pair is created, since it may post in any
 * context; for a user at the first doorbell, so that an idle one costs little.
 * Context: process, sleeps.  Return: 0 or -ENOMEM.
 */
int sroce_send_prepare(struct sroce_qp *qp)
{
	struct sroce_swqe *wqes;

	if (likely(READ_ONCE(qp->req.wqes)))
		return 0;
	wqes = kvcalloc(qp->req.ring.mask + 1, sizeof(*wqes), GFP_KERNEL_ACCOUNT);
	if (!wqes)
		return -ENOMEM;
	spin_lock_bh(&qp->lock);
	if (!qp->req.wqes) {
		qp->req.wqes = wqes;
		wqes = NULL;
	}
	spin_unlock_bh(&qp->lock);
	kvfree(wqes);
	return 0;
}

static int sroce_post_inline(struct sroce_send_wqe *to, const struct ib_send_wr *wr, u32 max)
{
	u8 *at = to->payload;
	u32 total = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		total += wr->sg_list[i].length;
		if (total > max)
			return -EINVAL;
		memcpy(at, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		at += wr->sg_list[i].length;
	}
	to->data.length = total;
	return 0;
}

static void sroce_post_sges(struct sroce_send_wqe *to, const struct ib_send_wr *wr)
{
	struct sroce_sge *sge = (struct sroce_sge *)to->payload;
	u32 total = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		sge[i].addr = wr->sg_list[i].addr;
		sge[i].length = wr->sg_list[i].length;
		sge[i].lkey = wr->sg_list[i].lkey;
		total += sge[i].length;
	}
	to->data.length = total;
}

static void sroce_post_operands(struct sroce_qp *qp, struct sroce_send_wr *to,
				const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		to->wr.atomic.remote_addr = atomic_wr(wr)->remote_addr;
		to->wr.atomic.rkey = atomic_wr(wr)->rkey;
		to->wr.atomic.compare_add = atomic_wr(wr)->compare_add;
		to->wr.atomic.swap = atomic_wr(wr)->swap;
		break;
	case IB_WR_REG_MR:
		to->wr.reg.mr = (uintptr_t)reg_wr(wr)->mr;
		to->wr.reg.key = reg_wr(wr)->key;
		to->wr.reg.access = reg_wr(wr)->access;
		break;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
		to->wr.rdma.remote_addr = rdma_wr(wr)->remote_addr;
		to->wr.rdma.rkey = rdma_wr(wr)->rkey;
		break;
	default:
		if (sroce_qp_is_datagram(qp)) {
			to->wr.ud.remote_qpn = ud_wr(wr)->remote_qpn;
			to->wr.ud.remote_qkey = ud_wr(wr)->remote_qkey;
			to->wr.ud.pkey_index = ud_wr(wr)->pkey_index;
			to->wr.ud.ah_num = to_sah(ud_wr(wr)->ah)->number;
		}
	}
}

/* Puts a kernel user's work request into the ring; the caller holds post_lock */
static int sroce_post_one(struct sroce_qp *qp, const struct ib_send_wr *wr)
{
	struct sroce_ring *ring = &qp->req.ring;
	u32 producer = sroce_ring_producer(ring);
	struct sroce_send_wqe *to;

	if (!sroce_send_opcode_ok(qp, wr->opcode) ||
	    wr->num_sge < 0 || wr->num_sge > qp->req.max_sge)
		return -EINVAL;
	if (sroce_ring_next(ring, producer) == sroce_ring_consumer(ring))
		return -ENOMEM;
	to = sroce_ring_element(ring, producer);
	to->wr.wr_id = wr->wr_id;
	to->wr.opcode = wr->opcode;
	to->wr.send_flags = wr->send_flags;
	to->wr.ex.imm_data = wr->ex.imm_data;
	to->data.num_sge = wr->num_sge;
	sroce_post_operands(qp, &to->wr, wr);
	if (wr->send_flags & IB_SEND_INLINE) {
		int err = sroce_post_inline(to, wr, qp->req.max_inline);

		if (err)
			return err;
	} else {
		sroce_post_sges(to, wr);
	}
	sroce_ring_set_producer(ring, producer + 1);
	return 0;
}

static int sroce_post_chain(struct sroce_qp *qp, const struct ib_send_wr *wr,
			    const struct ib_send_wr **bad_wr)
{
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&qp->req.post_lock, flags);
	for (; wr; wr = wr->next) {
		err = sroce_post_one(qp, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	spin_unlock_irqrestore(&qp->req.post_lock, flags);
	return err;
}

/**
 * sroce_post_send - ib_device_ops.post_send
 * @ibqp: queue pair
 * @wr: a kernel user's chain of work requests; a user has put its into the
 *	ring, and this call is only the doorbell
 * @bad_wr: the first that was not posted
 *
 * Context: any but hard interrupts.  Return: 0, -EINVAL for a request or a state
 * that does not allow it, -ENOMEM when the queue is full.
 */
int sroce_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad_wr)
{
	struct sroce_qp *qp = to_sqp(ibqp);
	int err;

	err = READ_ONCE(qp->state) < IB_QPS_RTS || !qp->req.ring.queue ?
	      -EINVAL : sroce_send_prepare(qp);
	if (err) {
		if (bad_wr)
			*bad_wr = wr;
		return err;
	}
	if (!ibqp->uobject)
		err = sroce_post_chain(qp, wr, bad_wr);
	if (unlikely(irqs_disabled())) {	/* softirqs cannot run: the worker sends */
		sroce_qp_kick(qp);
		return err;
	}
	sroce_qp_ring(qp);
	return err;
}
