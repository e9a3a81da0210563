// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What is taken away, or changed, while packets are on their way to it. */
#define _GNU_SOURCE
#include "pair.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 40

/* Random, but no longer than it takes a few messages to arrive */
static void a_moment(void)
{
	for (int n = random() % 200; n; n--)
		sched_yield();
	if (random() % 4 == 0)
		usleep(random() % 3000);
}

/* ---------------------------------------------------------------- memory regions */

/*
 * The responder's region is deregistered under incoming WRITEs or READs. Once that call
 * has returned nothing may touch the memory; the requester is told, or was quicker.
 */
static bool deregister(struct pair *p, enum ibv_wr_opcode opcode)
{
	uint8_t *memory = p->b.memory;
	struct ibv_wc wc;

	for (int round = 0; round < ROUNDS; round++) {
		uint32_t rkey;

		if (!pair_up(p, IBV_QPT_RC))
			return false;
		rkey = p->b.mr->rkey;
		memset(p->a.memory, 0x11, SIZE);
		for (int i = 0; i < DEPTH - 2; i++)
			expect(!side_post(&p->a, &p->b, opcode, i, SIZE, 0, rkey), "post");
		a_moment();
		expect(!ibv_dereg_mr(p->b.mr), "deregister: %s", strerror(errno));
		p->b.mr = NULL;
		memset(memory, 0x22, SIZE);
		for (int i = 0; i < DEPTH - 2; i++) {
			expect(poll_for(p->a.send_cq, &wc, 1, HANG_MS) == 1, "no completion %d", i);
			if (wc.status != IBV_WC_SUCCESS)
				break;
		}
		expect(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_REM_ACCESS_ERR,
		       "%s", ibv_wc_status_str(wc.status));
		for (int i = 0; i < SIZE; i++)
			expect(memory[i] == 0x22, "round %d: byte %d is %#x after deregistration",
			       round, i, memory[i]);
		if (!pair_stop(p))
			return false;
	}
	return true;
}

/* The requester's own region: under what it sends, and under what READ brings back. */
static bool deregister_local(struct pair *p, enum ibv_wr_opcode opcode)
{
	struct ibv_wc wc;

	for (int round = 0; round < ROUNDS; round++) {
		if (!pair_up(p, IBV_QPT_RC))
			return false;
		memset(p->b.memory, 0x11, SIZE);
		for (int i = 0; i < DEPTH - 2; i++)
			expect(!side_post(&p->a, &p->b, opcode, i, SIZE, 0, p->b.mr->rkey), "post");
		a_moment();
		expect(!ibv_dereg_mr(p->a.mr), "deregister: %s", strerror(errno));
		p->a.mr = NULL;
		memset(p->a.memory, 0x22, SIZE);
		for (int i = 0; i < DEPTH - 2; i++) {
			expect(poll_for(p->a.send_cq, &wc, 1, HANG_MS) == 1, "no completion %d", i);
			if (wc.status != IBV_WC_SUCCESS)
				break;
		}
		expect(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_LOC_PROT_ERR,
		       "%s", ibv_wc_status_str(wc.status));
		for (int i = 0; i < SIZE; i++)
			expect(p->a.memory[i] == 0x22, "round %d: byte %d is %#x", round, i,
			       p->a.memory[i]);
		if (!pair_stop(p))
			return false;
	}
	return true;
}

/* ---------------------------------------------------------------- queue pairs */

/* Destroyed, or reset, while its requests are sent, answered, or repeated by the timer. */
static bool destroy(struct pair *p, bool deaf)
{
	for (int round = 0; round < 3 * ROUNDS; round++) {
		if (!pair_start(p, round % 5 ? IBV_QPT_RC : IBV_QPT_UC, round % 2))
			return false;
		p->path.timeout = 1 + random() % 3;	/* at most 33 us: the timer fires all the time */
		p->path.retry_cnt = random() % 8;
		if (!pair_connect(p))
			return false;
		if (deaf)
			expect(!qp_to(p->b.qp, IBV_QPS_RESET), "the peer to RESET");
		for (int i = 0; i < DEPTH / 2; i++) {
			enum ibv_wr_opcode opcode = p->type == IBV_QPT_RC && random() % 2 ?
						    IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;

			side_recv(&p->b, i, SIZE);
			side_post(&p->a, &p->b, opcode, i, random() % SIZE, 0, p->b.mr->rkey);
			side_post(&p->b, &p->a, opcode, i, random() % SIZE, 0, p->a.mr->rkey);
		}
		a_moment();
		if (random() % 4 == 0)
			expect(!qp_to(p->a.qp, random() % 2 ? IBV_QPS_RESET : IBV_QPS_ERR),
			       "to RESET or ERR");
		/* destroys both, while the other is still at it */
		if (!pair_stop(p))
			return false;
	}
	return pair_up(p, IBV_QPT_RC) && talks(p);
}

static volatile bool asking;

static void *ask_state(void *arg)
{
	struct side *s = arg;

	while (asking)
		qp_state(s->qp);
	return NULL;
}

/* Each request is sent, though another thread has the queue pair whenever it is posted. */
static bool query(struct pair *p)
{
	pthread_t thread[2];
	bool good = true;

	if (!pair_up(p, IBV_QPT_RC))
		return false;
	asking = true;
	for (int i = 0; i < 2; i++)
		expect(!pthread_create(&thread[i], NULL, ask_state, &p->a), "thread");
	for (int i = 0; good && i < 5000; i++)
		good = !side_post(&p->a, &p->b, IBV_WR_RDMA_WRITE, i, 8, 0, p->b.mr->rkey) &&
		       completes(p->a.send_cq, i, IBV_WC_SUCCESS);
	asking = false;
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	return good;
}

/* ---------------------------------------------------------------- resizing */

#define MESSAGES 3000

static void *send_messages(void *arg)
{
	struct side *s = arg;
	struct ibv_wc wc;
	int sent = 0, done = 0, n;
	bool good = true;

	while (good && done < MESSAGES) {
		while (sent < MESSAGES && sent - done < DEPTH / 2) {
			good &= !side_send(s, sent, 1 + sent % 64);
			sent++;
		}
		n = poll_for(s->send_cq, &wc, 1, HANG_MS);
		good &= n == 1 && wc.status == IBV_WC_SUCCESS && (int)wc.wr_id == done;
		done++;
	}
	return good ? s : NULL;
}

/* Each message is received once, in order, whatever becomes of the queues meanwhile. */
static bool receive_messages(struct side *s, bool cq)
{
	struct ibv_srq_attr attr;
	struct ibv_wc wc;
	int posted = 0, n;

	for (int i = 0; i < MESSAGES; i++) {
		while (posted < MESSAGES && posted - i < DEPTH / 2)
			expect(!side_recv(s, posted++, 64), "post receive");
		/* what waits in the queue has to fit into the new one */
		if (random() % 8 == 0 && cq)
			expect(!ibv_resize_cq(s->recv_cq, DEPTH + random() % 500), "resize CQ: %s",
			       strerror(errno));
		attr.max_wr = DEPTH + random() % 500;
		if (random() % 8 == 0 && !cq)
			expect(!ibv_modify_srq(s->srq, &attr, IBV_SRQ_MAX_WR), "resize SRQ: %s",
			       strerror(errno));
		n = poll_for(s->recv_cq, &wc, 1, HANG_MS);
		expect(n == 1, "message %d never came", i);
		expect(wc.status == IBV_WC_SUCCESS, "message %d: %s", i,
		       ibv_wc_status_str(wc.status));
		expect((int)wc.wr_id == i, "receive request %d, expected %d", (int)wc.wr_id, i);
		expect((int)wc.byte_len == 1 + i % 64, "message %d has %d bytes, expected %d", i,
		       wc.byte_len, 1 + i % 64);
	}
	return true;
}

static bool resize(struct pair *p, bool cq)
{
	pthread_t sender;
	void *sent;
	bool received;

	if (!pair_start(p, IBV_QPT_RC, !cq) || !pair_connect(p))
		return false;
	expect(!pthread_create(&sender, NULL, send_messages, &p->a), "thread");
	received = receive_messages(&p->b, cq);
	if (!received)
		qp_to(p->a.qp, IBV_QPS_ERR);
	pthread_join(sender, &sent);
	expect(!received || sent, "a SEND failed");
	return received && no_more(p->b.recv_cq);
}

static atomic_int taken;	/* completions, of what post_writes() posted */

static void *post_writes(void *arg)
{
	struct pair *p = arg;

	for (int i = 0; i < MESSAGES; i++) {
		while (i - atomic_load(&taken) >= DEPTH / 2)
			sched_yield();
		if (side_post(&p->a, &p->b, IBV_WR_RDMA_WRITE, i, 8, 0, p->b.mr->rkey))
			return NULL;
	}
	return p;
}

/* One thread posts, and the CQ of what it posts is resized by another, which polls it */
static bool resize_send(struct pair *p)
{
	pthread_t poster;
	bool good = true;
	void *posted;

	if (!pair_up(p, IBV_QPT_RC))
		return false;
	atomic_store(&taken, 0);
	expect(!pthread_create(&poster, NULL, post_writes, p), "thread");
	for (int i = 0; good && i < MESSAGES; i++) {
		if (random() % 4 == 0 && ibv_resize_cq(p->a.send_cq, DEPTH + random() % 500))
			good = fail("resize CQ: %s", strerror(errno));
		good = good && completes(p->a.send_cq, i, IBV_WC_SUCCESS);
		atomic_fetch_add(&taken, good ? 1 : MESSAGES);
	}
	pthread_join(poster, &posted);
	expect(!good || posted, "a WRITE was not taken");
	return good && no_more(p->a.send_cq);
}

/* ---------------------------------------------------------------- processes killed */

static char *names[2];
static int gids[2];

/* Messages of 2 GB are lists of the same 64 MB again and again */
#define HUGE (64 << 20)

/* In a child: huge messages, until killed; @ready is written when they are under way. */
static void send_huge(unsigned int seed, int ready)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND,
	};
	static struct pair p;
	static uint8_t memory[HUGE];
	struct ibv_sge sge[ENTRIES];
	struct ibv_mr *mr[2];
	struct ibv_send_wr *bad, wr = { .sg_list = sge, .opcode = ops[seed % 4] };
	struct ibv_recv_wr *bad_recv, recv = { .sg_list = sge, .num_sge = ENTRIES };

	pair_open(&p, names, gids);
	if (!pair_up(&p, seed % 4 == 3 ? IBV_QPT_UC : IBV_QPT_RC))
		_exit(3);
	mr[0] = ibv_reg_mr(p.a.dev.pd, memory, HUGE, ALL_ACCESS);
	mr[1] = ibv_reg_mr(p.b.dev.pd, memory, HUGE, ALL_ACCESS);
	if (!mr[0] || !mr[1])
		_exit(3);
	wr.wr.rdma.remote_addr = (uintptr_t)memory;
	wr.wr.rdma.rkey = mr[1]->rkey;
	/* a WRITE or READ is to one place: no more than that */
	wr.num_sge = wr.opcode == IBV_WR_SEND ? ENTRIES : 1;
	for (int i = 0; i < ENTRIES; i++)
		sge[i] = (struct ibv_sge) { (uintptr_t)memory, HUGE, mr[1]->lkey };
	for (int i = 0; i < DEPTH / 2; i++)
		if (ibv_post_recv(p.b.qp, &recv, &bad_recv))
			_exit(3);
	for (int i = 0; i < ENTRIES; i++)
		sge[i].lkey = mr[0]->lkey;
	for (int i = 0; i < DEPTH / 2; i++)
		if (ibv_post_send(p.a.qp, &wr, &bad))
			_exit(3);
	if (write(ready, "", 1) != 1)
		_exit(3);
	for (;;)
		pause();
}

static bool kill_huge(struct pair *p)
{
	char byte;

	for (int round = 0; round < 12; round++) {
		int ready[2], status;
		pid_t child;

		expect(!pipe(ready), "pipe");
		child = fork();
		if (!child) {
			close(ready[0]);
			send_huge(round, ready[1]);
		}
		close(ready[1]);
		expect(read(ready[0], &byte, 1) == 1, "round %d: the child could not start", round);
		close(ready[0]);
		usleep(random() % 200000);
		expect(!kill(child, SIGKILL), "kill");
		expect(waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
		       WTERMSIG(status) == SIGKILL, "round %d: status %#x", round, status);
	}
	return pair_up(p, IBV_QPT_RC) && talks(p);
}

void race_cases(struct pair *p)
{
	names[0] = strdup(ibv_get_device_name(p->a.dev.context->device));
	names[1] = strdup(ibv_get_device_name(p->b.dev.context->device));
	gids[0] = p->a.dev.gid_index;
	gids[1] = p->b.dev.gid_index;
	if (getenv("NO_GARBAGE")) {
		if (tap_begin("things taken away under traffic")) {
			tap_skip("%s", getenv("NO_GARBAGE"));
			tap_end();
		}
		return;
	}
	CASE(p, deregister(p, IBV_WR_RDMA_WRITE), "deregistered under incoming WRITEs");
	CASE(p, deregister(p, IBV_WR_RDMA_READ), "deregistered under incoming READs");
	CASE(p, deregister_local(p, IBV_WR_RDMA_WRITE), "deregistered under outgoing WRITEs");
	CASE(p, deregister_local(p, IBV_WR_RDMA_READ), "deregistered under READ responses");
	CASE(p, destroy(p, false), "queue pairs destroyed under traffic");
	CASE(p, destroy(p, true), "queue pairs destroyed while their timers fire");
	CASE(p, query(p), "requests while the queue pair is queried");
	CASE(p, resize(p, true), "CQ resized under traffic");
	CASE(p, resize_send(p), "CQ of sends resized while another thread posts");
	CASE(p, resize(p, false), "SRQ resized under traffic");
	CASE(p, kill_huge(p), "killed in the middle of messages of 2 GB");
}
