// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * provider - doorbells, timestamps, moderation and allocators of our provider
 *
 * usage: provider DEVICE_A GID_INDEX_A DEVICE_B GID_INDEX_B [NAME]
 */
#define _GNU_SOURCE
#include "../errors/pair.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Calls of the kernel that post work: the provider makes them by write() */
static int doorbells;

ssize_t write(int fd, const void *data, size_t length)
{
	const struct { uint32_t command; } *header = data;
	const uint32_t post_send = 28;	/* IB_USER_VERBS_CMD_POST_SEND */

	if (length >= sizeof(*header) && (header->command & 0xff) == post_send)
		doorbells++;
	return syscall(SYS_write, fd, data, length);
}

static int rung(void)
{
	int n = doorbells;

	doorbells = 0;
	return n;
}

static long long counter(const struct pair *p, const char *name)
{
	long long value = -1;
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/%s",
		 ibv_get_device_name(p->a.dev.context->device), name);
	file = fopen(path, "r");
	if (file) {
		if (fscanf(file, "%lld", &value) != 1)
			value = -1;
		fclose(file);
	}
	return value;
}

/* Waits until a's requester has been told that b is not ready to receive */
static bool not_ready(const struct pair *p, long long before)
{
	int64_t end = now_ms() + HANG_MS;

	while (counter(p, "rnr_nak_retry_err") <= before)
		expect(now_ms() < end, "no RNR NAK came");
	return true;
}

static bool idle_rings(struct pair *p)
{
	for (int i = 0; i < 3; i++) {
		expect(!side_recv(&p->b, i, 64), "post a receive");
		rung();
		expect(!side_send(&p->a, i, 64), "post a send");
		expect(rung() == 1, "no doorbell on an idle queue");
		if (!completes(p->a.send_cq, i, IBV_WC_SUCCESS) ||
		    !completes(p->b.recv_cq, i, IBV_WC_SUCCESS))
			return false;
	}
	return true;
}

/* While the receiver is not ready, what is posted waits: no call makes it faster */
static bool waiting_is_quiet(struct pair *p)
{
	long long before;
	int n;

	before = counter(p, "rnr_nak_retry_err");
	expect(before >= 0, "no counter rnr_nak_retry_err");
	expect(!side_send(&p->a, 0, 64), "post the first");
	if (!not_ready(p, before))
		return false;
	rung();
	for (int i = 1; i < 11; i++)
		expect(!side_send(&p->a, i, 64), "post number %d", i);
	n = rung();
	/* one or two if the timer fired just then */
	expect(n < 5, "%d doorbells for 10 requests that have to wait", n);
	for (int i = 0; i < 11; i++)
		expect(!side_recv(&p->b, i, 64), "post receive %d", i);
	expect(!rung(), "doorbell for a receive");
	for (int i = 0; i < 11; i++)
		if (!completes(p->a.send_cq, i, IBV_WC_SUCCESS) ||
		    !completes(p->b.recv_cq, i, IBV_WC_SUCCESS))
			return false;
	return idle_rings(p);
}

static bool error_state_flushes(struct pair *p)
{
	expect(!qp_to(p->a.qp, IBV_QPS_ERR), "to the error state");
	for (int i = 0; i < 3; i++) {
		expect(!side_recv(&p->a, 10 + i, 64), "post a receive");
		if (!completes(p->a.recv_cq, 10 + i, IBV_WC_WR_FLUSH_ERR))
			return false;
		expect(!side_send(&p->a, 20 + i, 64), "post a send");
		if (!completes(p->a.send_cq, 20 + i, IBV_WC_WR_FLUSH_ERR))
			return false;
	}
	return true;
}

static bool reset_begins_anew(struct pair *p)
{
	long long before = counter(p, "rnr_nak_retry_err");

	/* leave something in the queue */
	expect(!side_send(&p->a, 0, 64), "post a send");
	if (!not_ready(p, before))
		return false;
	expect(!side_send(&p->a, 1, 64), "post another");
	expect(!qp_to(p->a.qp, IBV_QPS_RESET) && !qp_to(p->b.qp, IBV_QPS_RESET), "to RESET");
	if (!pair_connect(p))
		return false;
	return idle_rings(p) && no_more(p->a.send_cq);
}

static void with_pair(struct pair *p, const char *name, bool (*check)(struct pair *p),
		      bool slow_receiver)
{
	if (!tap_begin("%s", name))
		return;
	if (pair_start(p, IBV_QPT_RC, false)) {
		if (slow_receiver)
			p->path.min_rnr_timer = 0;	/* 655 ms */
		if (pair_connect(p))
			check(p);
	}
	pair_stop(p);
	tap_end();
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* ---------------------------------------------------------------- timestamps */

#define WC_FLAGS (IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
		  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

static bool poll_times(struct ibv_cq_ex *cq, uint64_t wr_id, uint64_t *monotonic, uint64_t *real)
{
	struct ibv_poll_cq_attr attr = {};
	int64_t end = now_ms() + HANG_MS;
	int err;

	while ((err = ibv_start_poll(cq, &attr)) == ENOENT)
		expect(now_ms() < end, "no completion");
	expect(!err, "start_poll: %s", strerror(err));
	*monotonic = ibv_wc_read_completion_ts(cq);
	*real = ibv_wc_read_completion_wallclock_ns(cq);
	err = cq->wr_id != wr_id || cq->status != IBV_WC_SUCCESS ||
	      ibv_wc_read_opcode(cq) != IBV_WC_RDMA_WRITE;
	ibv_end_poll(cq);
	expect(!err, "another completion than that of the request");
	return true;
}

static bool timestamps(struct pair *p, struct ibv_cq_ex *cq, struct ibv_qp *qp)
{
	uint64_t before, after, real_before, real_after, monotonic = 0, real = 0;
	struct ibv_qp *own = p->a.qp;
	bool good;

	/* the pair's queue pair gives way to one with the extended CQ */
	p->a.qp = qp;
	p->a.address.qpn = qp->qp_num;
	good = pair_connect(p);
	before = clock_ns(CLOCK_MONOTONIC);
	real_before = clock_ns(CLOCK_REALTIME);
	if (good && side_post(&p->a, &p->b, IBV_WR_RDMA_WRITE, 7, 64, 0, p->b.mr->rkey))
		good = fail("post a WRITE");
	good = good && poll_times(cq, 7, &monotonic, &real);
	after = clock_ns(CLOCK_MONOTONIC);
	real_after = clock_ns(CLOCK_REALTIME);
	p->a.qp = own;
	if (!good)
		return false;
	expect(monotonic >= before && monotonic <= after, "monotonic time %llu, not in %llu..%llu",
	       (unsigned long long)monotonic, (unsigned long long)before, (unsigned long long)after);
	expect(real >= real_before && real <= real_after, "real time not that of the completion");
	return true;
}

static bool check_timestamps(struct pair *p)
{
	struct ibv_cq_init_attr_ex cq_init = { .cqe = 16, .wc_flags = WC_FLAGS };
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 }, .recv_cq = p->a.recv_cq,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(p->a.dev.context, &cq_init);
	struct ibv_qp *qp;

	expect(cq, "extended CQ: %s", strerror(errno));
	init.send_cq = ibv_cq_ex_to_cq(cq);
	qp = ibv_create_qp(p->a.dev.pd, &init);
	if (qp) {
		timestamps(p, cq, qp);
		if (ibv_destroy_qp(qp))
			fail("destroy the queue pair");
	} else {
		fail("queue pair: %s", strerror(errno));
	}
	if (ibv_destroy_cq(ibv_cq_ex_to_cq(cq)))
		fail("destroy the CQ");
	return true;
}

/* ---------------------------------------------------------------- moderation */

#define PERIOD_US 60000

static bool check_moderation(struct pair *p)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = 8, .cq_period = PERIOD_US },
	};
	uint64_t sent, told;
	struct ibv_cq *cq;
	void *context;
	int err;

	if (!pair_connect(p))
		return false;
	err = ibv_modify_cq(p->b.recv_cq, &attr);
	expect(!err, "modify the CQ: %s", strerror(err));
	expect(!ibv_req_notify_cq(p->b.recv_cq, 0), "request notification");
	expect(!side_recv(&p->b, 1, 64) && !side_recv(&p->b, 2, 64), "post receives");
	sent = clock_ns(CLOCK_MONOTONIC);
	expect(!side_send(&p->a, 1, 64), "post a send");
	if (!completes(p->a.send_cq, 1, IBV_WC_SUCCESS) ||
	    !completes(p->b.recv_cq, 1, IBV_WC_SUCCESS))
		return false;
	expect(readable(p->b.channel->fd, HANG_MS), "no event for a single completion");
	told = clock_ns(CLOCK_MONOTONIC);
	expect(!ibv_get_cq_event(p->b.channel, &cq, &context), "take the event");
	ibv_ack_cq_events(cq, 1);
	expect(told - sent >= PERIOD_US * 1000ull, "told after %llu us, period %u us",
	       (unsigned long long)(told - sent) / 1000, PERIOD_US);
	/* an error is told at once, by a CQ that would wait for more */
	attr.moderate.cq_period = 0xffff;
	attr.moderate.cq_count = 0xffff;
	err = ibv_modify_cq(p->b.recv_cq, &attr);
	expect(!err, "modify the CQ again: %s", strerror(err));
	expect(!ibv_req_notify_cq(p->b.recv_cq, 0), "request notification");
	expect(!qp_to(p->b.qp, IBV_QPS_ERR), "to the error state");
	expect(readable(p->b.channel->fd, HANG_MS), "no event for an error");
	expect(!ibv_get_cq_event(p->b.channel, &cq, &context), "take the event");
	ibv_ack_cq_events(cq, 1);
	return true;
}

/* ---------------------------------------------------------------- allocators */

static int allocated, freed;

static void *get_memory(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
			uint64_t type)
{
	(void)pd;
	(void)type;
	if (context != &allocated)
		fail("another pd_context");
	allocated++;
	return aligned_alloc(alignment, size);
}

static void put_memory(struct ibv_pd *pd, void *context, void *memory, uint64_t type)
{
	(void)pd;
	(void)context;
	(void)type;
	freed++;
	free(memory);
}

static bool check_allocators(struct pair *p)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = p->a.dev.pd, .alloc = get_memory, .free = put_memory,
		.pd_context = &allocated,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
	};
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .cap = { DEPTH, DEPTH, 4, 4, 64 },
		.send_cq = p->a.send_cq, .recv_cq = p->a.recv_cq,
	};
	struct ibv_pd *parent = ibv_alloc_parent_domain(p->a.dev.context, &attr);
	struct ibv_qp *own = p->a.qp, *qp;

	expect(parent, "parent domain: %s", strerror(errno));
	expect(ibv_dealloc_pd(p->a.dev.pd) == EBUSY, "domain below a parent domain freed");
	qp = ibv_create_qp(parent, &init);
	expect(qp, "queue pair: %s", strerror(errno));
	expect(allocated == 2, "%d allocations, expected one for each queue", allocated);
	expect(ibv_dealloc_pd(parent) == EBUSY, "parent domain freed while its memory is in use");
	p->a.qp = qp;
	p->a.address.qpn = qp->qp_num;
	if (pair_connect(p))
		idle_rings(p);
	p->a.qp = own;
	expect(!ibv_destroy_qp(qp), "destroy the queue pair");
	expect(freed == 2, "%d of 2 allocations freed", freed);
	expect(!ibv_dealloc_pd(parent), "free the parent domain");
	return true;
}

int main(int argc, char **argv)
{
	static struct pair p;
	int gids[2];

	if (argc < 5)
		die("usage: provider DEVICE_A GID_INDEX_A DEVICE_B GID_INDEX_B [NAME]");
	gids[0] = atoi(argv[2]);
	gids[1] = atoi(argv[4]);
	tap_only = argv[5];
	pair_open(&p, (char *[]) { argv[1], argv[3] }, gids);
	with_pair(&p, "an idle queue needs its doorbell", idle_rings, false);
	with_pair(&p, "a queue that waits needs none", waiting_is_quiet, true);
	with_pair(&p, "what is posted in the error state is flushed at once", error_state_flushes,
		  false);
	with_pair(&p, "RESET forgets what was posted", reset_begins_anew, true);
	if (tap_begin("timestamps are those of the completion")) {
		if (pair_start(&p, IBV_QPT_RC, false))
			check_timestamps(&p);
		pair_stop(&p);
		tap_end();
	}
	if (tap_begin("a moderated CQ tells of completions late, of errors at once")) {
		if (pair_start(&p, IBV_QPT_RC, false))
			check_moderation(&p);
		pair_stop(&p);
		tap_end();
	}
	if (tap_begin("a parent domain's allocator gives the queues' memory")) {
		if (pair_start(&p, IBV_QPT_RC, false))
			check_allocators(&p);
		pair_stop(&p);
		tap_end();
	}
	return tap_plan();
}
