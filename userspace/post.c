// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Work requests into the rings, and the doorbell */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "sroce.h"

struct doorbell_cmd {
	struct ib_uverbs_cmd_hdr	hdr;
	struct ib_uverbs_post_send	cmd;
};

/* Calls the kernel, which then looks at both rings of the queue pair */
static int ring_doorbell(struct sroce_qp *qp)
{
	struct ib_uverbs_post_send_resp resp;
	struct doorbell_cmd cmd = {
		.hdr = {
			.command = IB_USER_VERBS_CMD_POST_SEND,
			.in_words = sizeof(cmd) / 4,
			.out_words = sizeof(resp) / 4,
		},
		.cmd = {
			.response = (uintptr_t)&resp,
			.qp_handle = qp->ibv.qp.handle,
			.wqe_size = sizeof(struct ib_uverbs_send_wr),
		},
	};

	if (unlikely(write(qp->ibv.qp.context->cmd_fd, &cmd, sizeof(cmd)) != sizeof(cmd)))
		return errno;
	return 0;
}

static bool has_doorbell(const struct sroce_qp *qp)
{
	return to_scontext(qp->ibv.qp.context)->ext & SROCE_EXT_DOORBELL;
}

/**
 * sroce_wqe_begin - begin a send work request
 * @qp: queue pair, its send queue locked
 * @wr_id: the user's name for it
 * @opcode: enum ibv_wr_opcode
 * @flags: enum ibv_send_flags
 *
 * Return: what is left to be filled, with no data yet; NULL, and sq.err, after an
 * error: then nothing of what is being built will be posted.
 */
struct sroce_send_wqe *sroce_wqe_begin(struct sroce_qp *qp, uint64_t wr_id, uint32_t opcode,
				       uint32_t flags)
{
	struct sroce_sq *sq = &qp->sq;
	struct sroce_send_wqe *wqe;

	sq->wqe = NULL;
	if (unlikely(sq->err))
		return NULL;
	if (unlikely(!sq->ring.queue || sroce_ring_full(&sq->ring, sq->next))) {
		sq->err = ENOMEM;
		return NULL;
	}
	wqe = sroce_ring_element(&sq->ring, sq->next);
	sq->next = sroce_ring_next(&sq->ring, sq->next);
	sq->wqe = wqe;
	wqe->wr.wr_id = wr_id;
	wqe->wr.srq_num = 0;
	wqe->wr.opcode = opcode;
	wqe->wr.send_flags = flags & ~IBV_SEND_INLINE;
	if (qp->sig_all)
		wqe->wr.send_flags |= IBV_SEND_SIGNALED;
	wqe->data.length = 0;
	wqe->data.num_sge = 0;
	return wqe;
}

/**
 * sroce_wqe_set_sges - the data of the work request that is being built
 * @sq: send queue, locked
 * @sge: list
 * @num: its entries
 */
void sroce_wqe_set_sges(struct sroce_sq *sq, const struct ibv_sge *sge, size_t num)
{
	struct sroce_sge *to;
	size_t i;

	if (unlikely(!sq->wqe))
		return;
	if (unlikely(num > sq->max_sge)) {
		sq->err = EINVAL;
		return;
	}
	to = (struct sroce_sge *)sq->wqe->payload;
	for (i = 0; i < num; i++) {
		to[i].addr = sge[i].addr;
		to[i].length = sge[i].length;
		to[i].lkey = sge[i].lkey;
		sq->wqe->data.length += sge[i].length;
	}
	sq->wqe->data.num_sge = num;
}

/**
 * sroce_wqe_set_inline - the data of the work request that is being built, itself
 * @sq: send queue, locked
 * @buf: list of buffers
 * @num: its entries
 */
void sroce_wqe_set_inline(struct sroce_sq *sq, const struct ibv_data_buf *buf, size_t num)
{
	uint32_t length = 0;
	size_t i;

	if (unlikely(!sq->wqe))
		return;
	for (i = 0; i < num; i++) {
		if (unlikely(buf[i].length > sq->max_inline - length)) {
			sq->err = EINVAL;
			return;
		}
		memcpy(sq->wqe->payload + length, buf[i].addr, buf[i].length);
		length += buf[i].length;
	}
	sq->wqe->data.length = length;
	sq->wqe->wr.send_flags |= IBV_SEND_INLINE;
}

/**
 * sroce_wqe_set_mw - the operands of a memory window bind
 * @wqe: work request
 * @mw: window
 * @rkey: its key from now on
 * @info: region, range and permissions
 */
void sroce_wqe_set_mw(struct sroce_send_wqe *wqe, const struct ibv_mw *mw, uint32_t rkey,
		      const struct ibv_mw_bind_info *info)
{
	wqe->wr.wr.mw.addr = info->addr;
	wqe->wr.wr.mw.length = info->length;
	wqe->wr.wr.mw.mr_lkey = info->mr ? info->mr->lkey : 0;
	wqe->wr.wr.mw.mw_rkey = mw->rkey;
	wqe->wr.wr.mw.rkey = rkey;
	wqe->wr.wr.mw.access = info->mw_access_flags;
}

/**
 * sroce_sq_finish - post what was built since sq.err was cleared
 * @qp: queue pair, its send queue locked; unlocked on return
 *
 * Nothing is posted when there was an error.  Return: 0 or an errno.
 */
int sroce_sq_finish(struct sroce_qp *qp)
{
	struct sroce_sq *sq = &qp->sq;
	int err = sq->err;
	bool ring;

	sq->wqe = NULL;
	if (unlikely(err)) {
		sq->next = sq->ring.index;
		sroce_lock_drop(&sq->lock);
		return err;
	}
	ring = sroce_ring_produce(&sq->ring, sq->next, has_doorbell(qp));
	sroce_lock_drop(&sq->lock);
	return ring ? ring_doorbell(qp) : 0;
}

static void set_inline_sges(struct sroce_sq *sq, const struct ibv_sge *sge, int num)
{
	struct ibv_data_buf buf[num ?: 1];
	int i;

	for (i = 0; i < num; i++) {
		buf[i].addr = (void *)(uintptr_t)sge[i].addr;
		buf[i].length = sge[i].length;
	}
	sroce_wqe_set_inline(sq, buf, num);
}

static void set_operands(struct sroce_qp *qp, struct sroce_send_wqe *wqe, struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wqe->wr.wr.atomic.remote_addr = wr->wr.atomic.remote_addr;
		wqe->wr.wr.atomic.compare_add = wr->wr.atomic.compare_add;
		wqe->wr.wr.atomic.swap = wr->wr.atomic.swap;
		wqe->wr.wr.atomic.rkey = wr->wr.atomic.rkey;
		break;
	case IBV_WR_BIND_MW:
		sroce_wqe_set_mw(wqe, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
		/* as other devices have it, that is its key from here on */
		wr->bind_mw.mw->rkey = wr->bind_mw.rkey;
		break;
	default:
		if (qp->ibv.qp.qp_type == IBV_QPT_UD) {
			wqe->wr.wr.ud.remote_qpn = wr->wr.ud.remote_qpn;
			wqe->wr.wr.ud.remote_qkey = wr->wr.ud.remote_qkey;
			wqe->wr.wr.ud.pkey_index = 0;
			wqe->wr.wr.ud.ah_num = to_sah(wr->wr.ud.ah)->number;
		} else {
			wqe->wr.wr.rdma.remote_addr = wr->wr.rdma.remote_addr;
			wqe->wr.wr.rdma.rkey = wr->wr.rdma.rkey;
		}
	}
}

static bool is_local(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_BIND_MW || opcode == IBV_WR_LOCAL_INV;
}

/* Adds one work request; sq.err tells */
static void build_one(struct sroce_qp *qp, struct ibv_send_wr *wr)
{
	struct sroce_send_wqe *wqe;

	if (unlikely(wr->num_sge < 0 || (qp->ibv.qp.qp_type == IBV_QPT_UD && !wr->wr.ud.ah))) {
		qp->sq.err = EINVAL;
		return;
	}
	wqe = sroce_wqe_begin(qp, wr->wr_id, wr->opcode, wr->send_flags);
	if (unlikely(!wqe))
		return;
	wqe->wr.ex.imm_data = wr->imm_data;
	set_operands(qp, wqe, wr);
	if (qp->ibv.qp.qp_type == IBV_QPT_XRC_SEND)
		wqe->wr.srq_num = wr->qp_type.xrc.remote_srqn;
	if (is_local(wr->opcode))
		return;
	if (wr->send_flags & IBV_SEND_INLINE || wr->opcode == IBV_WR_ATOMIC_WRITE)
		set_inline_sges(&qp->sq, wr->sg_list, wr->num_sge);
	else
		sroce_wqe_set_sges(&qp->sq, wr->sg_list, wr->num_sge);
}

int sroce_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct sroce_qp *qp = to_sqp(ibv);
	struct sroce_sq *sq = &qp->sq;
	uint32_t good;
	int err, rung;

	*bad = wr;
	if (unlikely(ibv->state < IBV_QPS_RTS))
		return EINVAL;
	sroce_lock_take(&sq->lock);
	sq->err = 0;
	for (; wr; wr = wr->next) {
		*bad = wr;
		good = sq->next;
		build_one(qp, wr);
		if (unlikely(sq->err)) {	/* those before it are posted */
			sq->next = good;
			break;
		}
	}
	err = sq->err;
	sq->err = 0;
	rung = sroce_sq_finish(qp);
	return err ?: rung;
}

int sroce_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct sroce_qp *qp = to_sqp(ibv);
	bool ring;
	int err;

	if (unlikely(ibv->state == IBV_QPS_RESET || !qp->rq.ring.queue)) {
		*bad = wr;
		return EINVAL;
	}
	err = sroce_rq_post(&qp->rq, wr, bad, has_doorbell(qp), &ring);
	/* in the error state they are to complete at once */
	if (unlikely(ring))
		ring_doorbell(qp);
	return err;
}

/* A type 1 window: the provider chooses the key */
int sroce_bind_mw(struct ibv_qp *ibv, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = {
			.mw = mw,
			.rkey = ibv_inc_rkey(mw->rkey),
			.bind_info = bind->bind_info,
		},
	};
	struct ibv_send_wr *bad;
	int err;

	err = sroce_post_send(ibv, &wr, &bad);
	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	return err;
}
