// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "pair.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void pair_open(struct pair *p, char **names, const int *gid_indices)
{
	struct side *sides[] = { &p->a, &p->b };

	memset(p, 0, sizeof(*p));
	for (int i = 0; i < 2; i++) {
		device_open(&sides[i]->dev, names[i], gid_indices[i]);
		fcntl(sides[i]->dev.context->async_fd, F_SETFL, O_NONBLOCK);
		sides[i]->memory = aligned_alloc(4096, SIZE);
	}
}

static bool side_start(struct side *s, enum ibv_qp_type type, bool srq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = type,
		.cap = {
			.max_send_wr = DEPTH, .max_recv_wr = DEPTH,
			.max_send_sge = ENTRIES, .max_recv_sge = ENTRIES,
		},
	};
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = DEPTH, .max_sge = ENTRIES } };

	drop_events(&s->dev);
	memset(s->memory, 0, SIZE);
	s->mr = ibv_reg_mr(s->dev.pd, s->memory, SIZE, ALL_ACCESS);
	expect(s->mr, "register memory: %s", strerror(errno));
	s->channel = ibv_create_comp_channel(s->dev.context);
	expect(s->channel, "completion channel: %s", strerror(errno));
	s->send_cq = ibv_create_cq(s->dev.context, 4 * DEPTH, NULL, NULL, 0);
	s->recv_cq = ibv_create_cq(s->dev.context, 4 * DEPTH, NULL, s->channel, 0);
	expect(s->send_cq && s->recv_cq, "completion queue: %s", strerror(errno));
	if (srq) {
		s->srq = ibv_create_srq(s->dev.pd, &srq_init);
		expect(s->srq, "shared receive queue: %s", strerror(errno));
	}
	init.send_cq = s->send_cq;
	init.recv_cq = s->recv_cq;
	init.srq = s->srq;
	s->qp = ibv_create_qp(s->dev.pd, &init);
	expect(s->qp, "queue pair: %s", strerror(errno));
	s->address = (struct address) {
		.gid = s->dev.gid,
		.qpn = s->qp->qp_num,
		.psn = random() & 0xffffff,
		.qkey = 0x1234,
	};
	return true;
}

bool pair_start(struct pair *p, enum ibv_qp_type type, bool srq)
{
	p->path = default_path;
	p->type = type;
	return side_start(&p->a, type, srq) && side_start(&p->b, type, srq);
}

static bool side_connect(struct side *s, struct side *to, struct path *path)
{
	int error = qp_to_init(&s->dev, s->qp, path->access, s->address.qkey);

	expect(!error, "RESET to INIT: %s", strerror(error));
	error = qp_to_rtr(&s->dev, s->qp, &to->address, path);
	expect(!error, "INIT to RTR: %s", strerror(error));
	error = qp_to_rts(s->qp, s->address.psn, path);
	expect(!error, "RTR to RTS: %s", strerror(error));
	return true;
}

bool pair_connect(struct pair *p)
{
	return side_connect(&p->a, &p->b, &p->path) && side_connect(&p->b, &p->a, &p->path);
}

bool pair_up(struct pair *p, enum ibv_qp_type type)
{
	return pair_start(p, type, false) && pair_connect(p);
}

static bool side_stop(struct side *s)
{
	int error = 0;

	if (s->qp)
		error = ibv_destroy_qp(s->qp);
	expect(!error, "destroy queue pair: %s", strerror(error));
	s->qp = NULL;
	if (s->srq)
		error = ibv_destroy_srq(s->srq);
	expect(!error, "destroy shared receive queue: %s", strerror(error));
	s->srq = NULL;
	if (s->send_cq)
		error = ibv_destroy_cq(s->send_cq);
	if (!error && s->recv_cq)
		error = ibv_destroy_cq(s->recv_cq);
	expect(!error, "destroy completion queue: %s", strerror(error));
	s->send_cq = s->recv_cq = NULL;
	if (s->channel)
		error = ibv_destroy_comp_channel(s->channel);
	expect(!error, "destroy completion channel: %s", strerror(error));
	s->channel = NULL;
	if (s->mr)
		error = ibv_dereg_mr(s->mr);
	expect(!error, "deregister memory: %s", strerror(error));
	s->mr = NULL;
	return true;
}

bool pair_stop(struct pair *p)
{
	bool a = side_stop(&p->a);

	return side_stop(&p->b) && a;
}

int side_recv(struct side *s, uint64_t wr_id, uint32_t length)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)s->memory, .length = length, .lkey = s->mr->lkey,
	};
	struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = !!length };

	if (s->srq)
		return ibv_post_srq_recv(s->srq, &wr, &bad);
	return ibv_post_recv(s->qp, &wr, &bad);
}

int side_post(struct side *s, struct side *to, enum ibv_wr_opcode opcode, uint64_t wr_id,
	      uint32_t length, uint64_t offset, uint32_t rkey)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)s->memory, .length = length, .lkey = s->mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = !!length,
	};

	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)to->memory + offset;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)to->memory + offset;
		wr.wr.rdma.rkey = rkey;
	}
	return ibv_post_send(s->qp, &wr, &bad);
}

int side_send(struct side *s, uint64_t wr_id, uint32_t length)
{
	return side_post(s, s, IBV_WR_SEND, wr_id, length, 0, 0);
}

bool completes(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	expect(poll_for(cq, &wc, 1, HANG_MS) == 1, "no completion, expected %d: %s",
	       (int)wr_id, ibv_wc_status_str(status));
	expect(wc.wr_id == wr_id && wc.status == status,
	       "completion of %d: %s, expected %d: %s", (int)wc.wr_id,
	       ibv_wc_status_str(wc.status), (int)wr_id, ibv_wc_status_str(status));
	return true;
}

bool no_more(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	expect(ibv_poll_cq(cq, 1, &wc) == 0, "a completion too many, of %d: %s", (int)wc.wr_id,
	       ibv_wc_status_str(wc.status));
	return true;
}

bool becomes(struct ibv_qp *qp, enum ibv_qp_state state)
{
	int64_t end = now_ms() + HANG_MS;
	int now;

	while ((now = qp_state(qp)) != (int)state && now_ms() < end)
		usleep(1000);
	expect(now == (int)state, "state %d, expected %d", now, state);
	return true;
}

bool event_is(struct device *dev, enum ibv_event_type type)
{
	struct ibv_async_event event;

	expect(readable(dev->context->async_fd, 5000) &&
	       !ibv_get_async_event(dev->context, &event), "no event, expected: %s",
	       ibv_event_type_str(type));
	ibv_ack_async_event(&event);
	expect(event.event_type == type, "event: %s, expected: %s",
	       ibv_event_type_str(event.event_type), ibv_event_type_str(type));
	return true;
}

void drop_events(struct device *dev)
{
	struct ibv_async_event event;

	while (!ibv_get_async_event(dev->context, &event))
		ibv_ack_async_event(&event);
}

bool talks(struct pair *p)
{
	expect(!side_recv(&p->b, 100, 100), "post receive");
	expect(!side_send(&p->a, 101, 100), "post send");
	return completes(p->a.send_cq, 101, IBV_WC_SUCCESS) &&
	       completes(p->b.recv_cq, 100, IBV_WC_SUCCESS);
}
