// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Streams of small messages: posted one by one, without waiting, they may be sent
 * together, but all have to arrive, in order, whenever the stream ends or pauses.
 */
#include "pair.h"

#include <errno.h>
#include <sched.h>

#define MESSAGE 8		/* bytes */
#define SIGNAL_EVERY 4
#define UNDER_WAY 12

/* Posts message number @n, a WRITE of 8 bytes that say so; with a completion if @signaled */
static int post_number(struct pair *p, uint64_t n, bool signaled)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)p->a.memory + n * MESSAGE,
		.length = MESSAGE,
		.lkey = p->a.mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = n, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
		.send_flags = signaled ? IBV_SEND_SIGNALED : 0,
	};

	*(uint64_t *)(p->a.memory + n * MESSAGE) = n;
	wr.wr.rdma.remote_addr = (uintptr_t)p->b.memory + n * MESSAGE;
	wr.wr.rdma.rkey = p->b.mr->rkey;
	return ibv_post_send(p->a.qp, &wr, &bad);
}

static bool arrived(struct pair *p, uint64_t n)
{
	return __atomic_load_n((uint64_t *)(p->b.memory + n * MESSAGE), __ATOMIC_ACQUIRE) == n;
}

static bool all_arrived(struct pair *p, uint64_t count)
{
	for (uint64_t n = 1; n <= count; n++)
		expect(arrived(p, n), "message %lu is not there", (unsigned long)n);
	expect(!*(uint64_t *)(p->b.memory + (count + 1) * MESSAGE), "more arrived than was sent");
	return true;
}

/* As many as the queue takes, polling only when it is full; then the last is waited for. */
static bool stream(struct pair *p, uint64_t count)
{
	uint64_t posted = 0, completed = 0;

	if (!pair_up(p, IBV_QPT_RC))
		return false;
	memset(p->b.memory, 0, SIZE);
	while (completed < count) {
		bool signaled = (posted + 1) % SIGNAL_EVERY == 0 || posted + 1 == count;
		struct ibv_wc wc;

		if (posted < count && posted - completed < DEPTH - 1) {
			posted++;
			expect(!post_number(p, posted, signaled),
			       "post message %lu", (unsigned long)posted);
			continue;
		}
		expect(poll_for(p->a.send_cq, &wc, 1, HANG_MS) == 1, "no completion after %lu of %lu",
		       (unsigned long)completed, (unsigned long)count);
		expect(wc.status == IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
		expect(wc.wr_id > completed, "completion of %lu after %lu",
		       (unsigned long)wc.wr_id, (unsigned long)completed);
		completed = wc.wr_id;
	}
	return all_arrived(p, count) && no_more(p->a.send_cq);
}

/*
 * Bursts, each of which is waited for where it arrives.  Completions are taken one
 * burst late, so that from the queues nobody can tell that we wait.
 */
static bool bursts(struct pair *p, unsigned int length, unsigned int count)
{
	uint64_t posted = 0;
	struct ibv_wc wc;

	if (!pair_up(p, IBV_QPT_RC))
		return false;
	memset(p->b.memory, 0, SIZE);
	for (unsigned int burst = 0; burst < count; burst++) {
		int64_t until = now_ms() + HANG_MS;

		for (unsigned int i = 1; i <= length; i++)
			expect(!post_number(p, ++posted, i == length),
			       "post message %lu", (unsigned long)posted);
		while (!arrived(p, posted)) {
			expect(now_ms() < until, "message %lu does not arrive",
			       (unsigned long)posted);
			sched_yield();
		}
		if (burst)
			expect(poll_for(p->a.send_cq, &wc, 1, HANG_MS) == 1 &&
			       wc.status == IBV_WC_SUCCESS &&
			       wc.wr_id == (uint64_t)burst * length, "completion of burst %u", burst);
	}
	return all_arrived(p, posted);
}

/* A stream whose queue pair goes to the error state: each message completes once */
static bool interrupted(struct pair *p, unsigned int count)
{
	uint64_t posted, completed = 0;
	bool flushed = false;
	struct ibv_wc wc;

	if (!pair_up(p, IBV_QPT_RC))
		return false;
	for (posted = 1; posted <= count; posted++) {
		expect(!post_number(p, posted, true), "post a message");
		if (posted > UNDER_WAY)
			expect(poll_for(p->a.send_cq, &wc, 1, HANG_MS) == 1 &&
			       wc.wr_id == ++completed, "completion of message %lu",
			       (unsigned long)completed);
	}
	expect(!qp_to(p->a.qp, IBV_QPS_ERR), "to the error state");
	while (completed++ < count) {
		expect(poll_for(p->a.send_cq, &wc, 1, HANG_MS) == 1, "message %lu never completes",
		       (unsigned long)completed);
		expect(wc.wr_id == completed, "message %lu, not %lu", (unsigned long)wc.wr_id,
		       (unsigned long)completed);
		expect(wc.status == (flushed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS) ||
		       wc.status == IBV_WC_WR_FLUSH_ERR,
		       "message %lu: %s", (unsigned long)completed, ibv_wc_status_str(wc.status));
		flushed = wc.status == IBV_WC_WR_FLUSH_ERR;
	}
	return no_more(p->a.send_cq);
}

void stream_cases(struct pair *p)
{
	for (unsigned int rest = 0; rest < 9; rest++)
		CASE(p, stream(p, 2000 + rest), "a stream of %u small messages", 2000 + rest);
	for (unsigned int length = 1; length <= 7; length += 2)
		CASE(p, bursts(p, length, 200), "bursts of %u, waited for in memory", length);
	for (unsigned int count = 100; count <= 106; count++)
		CASE(p, interrupted(p, count), "a stream of %u, then the error state", count);
}
