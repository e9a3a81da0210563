// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Completion notification and asynchronous events (IBA 11.4.2.2, 11.6.3). */
#include "pair.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

static struct pair *pair;

/* Take all notifications that are there, waiting for the first; how many. */
static int notified(int ms)
{
	struct side *b = &pair->b;
	struct ibv_cq *cq;
	void *context;
	int n = 0;

	while (readable(b->channel->fd, n ? 0 : ms) &&
	       !ibv_get_cq_event(b->channel, &cq, &context)) {
		ibv_ack_cq_events(cq, 1);
		n++;
	}
	return n;
}

/* A message from a to b, its completion left in b's queue. */
static bool message(bool solicited)
{
	struct ibv_sge sge = { (uintptr_t)pair->a.memory, 10, pair->a.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | (solicited ? IBV_SEND_SOLICITED : 0),
	};

	expect(!side_recv(&pair->b, 2, 10), "post receive");
	expect(!ibv_post_send(pair->a.qp, &wr, &bad), "post send");
	return completes(pair->a.send_cq, 1, IBV_WC_SUCCESS);
}

#define NOTIFIED(ms, wanted, what)						\
	do {									\
		int n = notified(ms);						\
		expect(n == (wanted), "%s: %d notifications, expected %d", what, n, wanted); \
	} while (0)

static bool notification(void)
{
	struct ibv_cq *cq;

	if (!pair_up(pair, IBV_QPT_RC))
		return false;
	cq = pair->b.recv_cq;
	if (!message(true))
		return false;
	NOTIFIED(0, 0, "never armed");
	/* armed with an entry already there: only for the next (IBA 11.4.2.2) */
	expect(!ibv_req_notify_cq(cq, 0), "arm");
	NOTIFIED(0, 0, "armed after the completion");
	if (!message(false) || !message(false))
		return false;
	NOTIFIED(HANG_MS, 1, "armed once, two completions");
	if (!message(false))
		return false;
	NOTIFIED(0, 0, "not armed again");
	expect(!ibv_req_notify_cq(cq, 0) && !ibv_req_notify_cq(cq, 0), "arm twice");
	if (!message(false))
		return false;
	NOTIFIED(HANG_MS, 1, "armed twice");
	for (int i = 0; i < 5; i++)
		if (!completes(cq, 2, IBV_WC_SUCCESS))
			return false;
	return no_more(cq);
}

static bool solicited(void)
{
	if (!pair_up(pair, IBV_QPT_RC))
		return false;
	expect(!ibv_req_notify_cq(pair->b.recv_cq, 1), "arm");
	if (!message(false))
		return false;
	NOTIFIED(0, 0, "unsolicited");
	if (!message(true))
		return false;
	NOTIFIED(HANG_MS, 1, "solicited");
	/* asking for any after asking for solicited ones only widens it, not the reverse */
	expect(!ibv_req_notify_cq(pair->b.recv_cq, 0) &&
	       !ibv_req_notify_cq(pair->b.recv_cq, 1), "arm for any, then for solicited");
	if (!message(false))
		return false;
	NOTIFIED(HANG_MS, 1, "armed for any, then for solicited");
	/* an error counts as solicited */
	expect(!ibv_req_notify_cq(pair->b.recv_cq, 1), "arm");
	expect(!side_recv(&pair->b, 3, 10), "post receive");
	expect(!qp_to(pair->b.qp, IBV_QPS_ERR), "to ERR");
	NOTIFIED(HANG_MS, 1, "flush while armed for solicited");
	return true;
}

static bool srq_limit(void)
{
	struct ibv_srq_attr attr = { .srq_limit = 4 };

	if (!pair_start(pair, IBV_QPT_RC, true) || !pair_connect(pair))
		return false;
	for (int i = 0; i < 6; i++)
		expect(!side_recv(&pair->b, i, 10), "post receive");
	expect(!ibv_modify_srq(pair->b.srq, &attr, IBV_SRQ_LIMIT), "set the limit");
	for (int i = 0; i < 6; i++) {
		struct pollfd p = { .fd = pair->b.dev.context->async_fd, .events = POLLIN };

		/* 6 - i are left: below 4 from the third message on */
		if (i == 2)
			expect(poll(&p, 1, 0) == 0, "an event while 4 are left");
		expect(!side_send(&pair->a, i, 10), "post send");
		if (!completes(pair->a.send_cq, i, IBV_WC_SUCCESS))
			return false;
		if (i == 2 && !event_is(&pair->b.dev, IBV_EVENT_SRQ_LIMIT_REACHED))
			return false;
		if (i > 2)
			expect(poll(&p, 1, 0) == 0, "a second event, though armed once");
	}
	expect(!ibv_query_srq(pair->b.srq, &attr), "query");
	expect(attr.srq_limit == 0, "limit is %u after the event, expected 0", attr.srq_limit);
	return true;
}

static bool last_wqe(void)
{
	if (!pair_start(pair, IBV_QPT_RC, true) || !pair_connect(pair))
		return false;
	expect(!side_recv(&pair->b, 1, 10), "post receive");
	expect(!qp_to(pair->b.qp, IBV_QPS_ERR), "to ERR");
	if (!event_is(&pair->b.dev, IBV_EVENT_QP_LAST_WQE_REACHED))
		return false;
	/* the shared queue's requests are not this queue pair's: no flush */
	return no_more(pair->b.recv_cq);
}

/* More completions than the queue has room for: an event, and no harm. */
static bool overflow(void)
{
	struct ibv_async_event event;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .cap = { DEPTH, DEPTH, 1, 1, 0 },
	};
	struct ibv_cq *small;
	bool seen = false;
	int64_t end = now_ms() + 5000;

	if (!pair_start(pair, IBV_QPT_RC, false))
		return false;
	small = ibv_create_cq(pair->b.dev.context, 2, NULL, NULL, 0);
	expect(small, "completion queue: %s", strerror(errno));
	expect(!ibv_destroy_qp(pair->b.qp), "destroy");
	init.send_cq = pair->b.send_cq;
	init.recv_cq = small;
	pair->b.qp = ibv_create_qp(pair->b.dev.pd, &init);
	expect(pair->b.qp, "queue pair: %s", strerror(errno));
	pair->b.address.qpn = pair->b.qp->qp_num;
	if (!pair_connect(pair))
		return false;
	for (int i = 0; i < DEPTH && i < small->cqe + 4; i++)
		expect(!side_recv(&pair->b, i, 10), "post receive");
	for (int i = 0; i < DEPTH && i < small->cqe + 4; i++)
		expect(!side_send(&pair->a, i, 10), "post send");
	/* the queue pair may report the loss as well, before or after */
	while (!seen && now_ms() < end) {
		if (!readable(pair->b.dev.context->async_fd, 100) ||
		    ibv_get_async_event(pair->b.dev.context, &event))
			continue;
		seen = event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == small;
		ibv_ack_async_event(&event);
	}
	expect(seen, "no event: %s", ibv_event_type_str(IBV_EVENT_CQ_ERR));
	expect(!ibv_destroy_qp(pair->b.qp), "destroy");
	pair->b.qp = NULL;
	drop_events(&pair->b.dev);
	expect(!ibv_destroy_cq(small), "destroy the completion queue");
	return true;
}

static bool established(void)
{
	int error;

	if (!pair_start(pair, IBV_QPT_RC, false))
		return false;
	error = qp_to_init(&pair->b.dev, pair->b.qp, 0, 0);
	error = error ?: qp_to_rtr(&pair->b.dev, pair->b.qp, &pair->a.address, &pair->path);
	error = error ?: qp_to_init(&pair->a.dev, pair->a.qp, 0, 0);
	error = error ?: qp_to_rtr(&pair->a.dev, pair->a.qp, &pair->b.address, &pair->path);
	error = error ?: qp_to_rts(pair->a.qp, pair->a.address.psn, &pair->path);
	expect(!error, "connect: %s", strerror(error));
	if (!talks(pair))
		return false;
	return event_is(&pair->b.dev, IBV_EVENT_COMM_EST);
}

void event_cases(struct pair *p)
{
	pair = p;
	CASE(p, notification(), "notification: once for each time that it is asked for");
	CASE(p, solicited(), "notification of solicited completions only");
	CASE(p, srq_limit(), "shared receive queue: limit event, once");
	CASE(p, last_wqe(), "shared receive queue: last WQE event when a QP errs");
	CASE(p, overflow(), "completion queue overflow: event");
	CASE(p, established(), "first packet in RTR: event");
}
