// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "integrity.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct transfer batch[MAX_BATCH];
static int batch_size;

static int post_receive(struct end *e, const struct transfer *t, int index)
{
	struct ibv_sge sge[MAX_SEGMENTS + 1];
	struct ibv_recv_wr *bad, wr = { .wr_id = index, .sg_list = sge };
	uint32_t grh = e->type == IBV_QPT_UD ? GRH : 0;

	/* a WRITE with immediate needs no memory of the receive request */
	for (int i = 0; t->op != WRITE_IMM && i < t->n_remote; i++) {
		const struct segment *s = &t->remote[i];
		uint32_t before = i ? 0 : grh;

		if (before && t->flags & GRH_APART) {
			sge[wr.num_sge++] = (struct ibv_sge) {
				.addr = (uintptr_t)(e->arena.memory + s->offset - before),
				.length = before,
				.lkey = e->arena.mr[0]->lkey,
			};
			before = 0;
		}
		sge[wr.num_sge++] = (struct ibv_sge) {
			.addr = (uintptr_t)(e->arena.memory + s->offset - before),
			.length = s->length + before,
			.lkey = e->arena.mr[(i + index) % ARENA_MRS]->lkey,
		};
	}
	if (e->srq)
		return ibv_post_srq_recv(e->srq, &wr, &bad);
	return ibv_post_recv(e->qp[t->qp], &wr, &bad);
}

/* Make memory and expectation ready for the client's next transfers. */
static int prepare(struct end *e)
{
	int error = 0;

	for (int i = 0; i < batch_size && !error; i++) {
		const struct transfer *t = &batch[i];

		switch (t->op) {
		case READ:
			if (!(t->flags & REMOTE_READY))
				arena_fill(&e->arena, t->remote, t->n_remote, t->length,
					   t->seed);
			break;
		case CMP_SWAP:
		case FETCH_ADD:
			if (!(t->flags & REMOTE_READY))
				memcpy(e->arena.memory + t->remote[0].offset, &t->original, 8);
			memcpy(e->arena.wanted + t->remote[0].offset, &t->after, 8);
			break;
		default:
			arena_expect(&e->arena, t->remote, t->n_remote, t->length, t->seed);
		}
		if (takes_receive(t->op))
			error = post_receive(e, t, i);
	}
	return error;
}

/*
 * A UD receive starts with the GRH, or, over IPv4, 20 bytes of which nothing is
 * said and the IPv4 header (RoCEv2 annex, A17.4.5.2).
 */
static void check_grh(struct end *e, const struct transfer *t, const union ibv_gid *from,
		      char *fault, size_t size)
{
	uint8_t *grh = e->arena.memory + t->remote[0].offset - GRH;
	const union ibv_gid *to = &e->dev.gid;

	if (grh[20] == 0x45 && !memcmp(to->raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12)) {
		if (memcmp(grh + 20 + 12, from->raw + 12, 4) ||
		    memcmp(grh + 20 + 16, to->raw + 12, 4))
			snprintf(fault, size, "wrong addresses in the IPv4 header");
		else if (grh[20 + 9] != 17)
			snprintf(fault, size, "protocol %d in the IPv4 header", grh[29]);
	} else if (grh[0] >> 4 == 6) {
		if (memcmp(grh + 8, from->raw, 16) || memcmp(grh + 24, to->raw, 16))
			snprintf(fault, size, "wrong GIDs in the GRH");
		else if (grh[6] != 17 && grh[6] != 27)
			snprintf(fault, size, "next header %d in the GRH", grh[6]);
	} else {
		snprintf(fault, size, "GRH starts with %02x, byte 20 is %02x", grh[0], grh[20]);
	}
	memcpy(e->arena.wanted + t->remote[0].offset - GRH, grh, GRH);
}

static void finish(struct end *e, const struct request *q, struct reply *r,
		   const struct address *peer)
{
	int64_t end = now_ms() + q->finish.ms;

	r->finish.receives = poll_for(e->recv_cq, r->finish.wc, q->finish.receives,
				      q->finish.ms);
	if (r->finish.receives < 0)
		r->error = EIO;
	for (int i = 0; i < r->finish.receives && e->type == IBV_QPT_UD; i++) {
		struct ibv_wc *wc = &r->finish.wc[i];

		if (wc->status == IBV_WC_SUCCESS && wc->wr_id < MAX_BATCH)
			check_grh(e, &batch[wc->wr_id], &peer->gid, r->finish.grh_fault,
				  sizeof(r->finish.grh_fault));
	}
	/* nothing more must come */
	if (r->finish.receives == q->finish.receives && r->finish.receives < MAX_BATCH &&
	    ibv_poll_cq(e->recv_cq, 1, &r->finish.wc[r->finish.receives]) == 1)
		r->finish.receives++;
	do {
		r->finish.mismatch = arena_compare(&e->arena, q->finish.used);
	} while (r->finish.mismatch.count && q->finish.uc_writes && now_ms() < end);
	/* one fault, one report */
	if (r->finish.mismatch.count)
		memcpy(e->arena.memory, e->arena.wanted, q->finish.used);
}

static int count_events(struct end *e, int ms)
{
	struct ibv_cq *cq;
	void *context;
	int n = 0;

	while (readable(e->channel->fd, n ? 0 : ms)) {
		if (ibv_get_cq_event(e->channel, &cq, &context))
			break;
		ibv_ack_cq_events(cq, 1);
		n++;
	}
	return n;
}

static int bind_window(struct end *e, const struct segment *where, uint32_t *rkey)
{
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;
	int error;

	if (e->arena.demand)	/* there are none of such regions */
		return EOPNOTSUPP;
	e->mw = ibv_alloc_mw(e->dev.pd, IBV_MW_TYPE_2);
	if (!e->mw)
		return errno;
	wr.bind_mw.mw = e->mw;
	wr.bind_mw.rkey = ibv_inc_rkey(e->mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info) {
		.mr = e->arena.mr[0],
		.addr = (uintptr_t)(e->arena.memory + where->offset),
		.length = where->length,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	error = ibv_post_send(e->qp[0], &wr, &bad);
	if (error)
		return error;
	if (poll_for(e->send_cq, &wc, 1, HANG_MS) != 1 || wc.status != IBV_WC_SUCCESS)
		return EIO;
	*rkey = wr.bind_mw.rkey;
	return 0;
}

void serve(struct end *e, int control)
{
	struct address peer[MAX_QPS];
	struct request q;

	while (control_receive(control, &q, sizeof(q))) {
		struct reply r = { .error = 0 };

		atomic_fetch_add(&e->arena.moves, 1);
		switch (q.kind) {
		case SETUP:
			r.error = end_setup(e, q.setup.type, q.setup.n_qps, q.setup.srq);
			memcpy(r.setup.address, e->address, sizeof(e->address));
			r.setup.memory = (uintptr_t)e->arena.memory;
			for (int i = 0; i < ARENA_MRS; i++)
				r.setup.rkey[i] = e->arena.mr[i]->rkey;
			r.setup.max_sge = e->srq && e->dev.attr.max_srq_sge < e->max_sge ?
					  e->dev.attr.max_srq_sge : e->max_sge;
			break;
		case CONNECT:
			memcpy(peer, q.connect.peer, sizeof(peer));
			r.error = end_connect(e, peer, &q.connect.path);
			break;
		case PREPARE:
			batch_size = q.prepare.n;
			if (!control_receive(control, batch, batch_size * sizeof(*batch)))
				return;
			r.error = prepare(e);
			break;
		case FINISH:
			finish(e, &q, &r, peer);
			break;
		case ARM:
			r.error = ibv_req_notify_cq(e->recv_cq, q.arm.solicited_only);
			break;
		case EVENTS:
			r.events.count = count_events(e, q.events.ms);
			break;
		case BIND:
			r.error = bind_window(e, &q.bind.where, &r.bind.rkey);
			break;
		case TEARDOWN:
			r.error = end_teardown(e);
			break;
		}
		control_send(control, &r, sizeof(r));
	}
}
