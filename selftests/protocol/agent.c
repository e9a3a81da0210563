// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * agent - does with verbs what its standard input says, line by line
 *
 * usage: agent DEVICE GID_INDEX
 *
 * Each command is answered by one line: "ok" and results, or "error ERRNO". Queue
 * pairs and memory regions are named by small numbers in the order of creation.
 * Numbers may be written in C's notation. The commands:
 *
 *   gid                                    GID, in hexadecimal
 *   port                                   bad_pkey_cntr qkey_viol_cntr active_mtu
 *   pd                                     a further protection domain; later "mr" use it
 *   mr SIZE ACCESS                         number lkey rkey address
 *   dereg MR
 *   peek MR OFFSET LENGTH                  bytes, in hexadecimal
 *   poke MR OFFSET HEX
 *   qp TYPE                                number qpn (2 RC, 3 UC, 4 UD)
 *   init QP ACCESS QKEY
 *   rtr QP GID QPN PSN MTU MAX_DEST_RD_ATOMIC MIN_RNR_TIMER
 *   rts QP PSN TIMEOUT RETRY_CNT RNR_RETRY MAX_RD_ATOMIC
 *   to QP STATE
 *   state QP                               state
 *   destroy QP
 *   recv QP WR_ID LKEY ADDRESS LENGTH      (LENGTH 0: no scatter entry)
 *   send QP WR_ID OPCODE FLAGS LKEY ADDRESS LENGTH IMM RADDR RKEY COMPARE SWAP
 *   ah GID                                 (for "sendto")
 *   sendto QP WR_ID OPCODE FLAGS LKEY ADDRESS LENGTH IMM QPN QKEY
 *   poll QP s|r MS                         wr_id status opcode byte_len imm flags src_qp, or none
 *   event MS                               type of the next asynchronous event, or none
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>

#include "../common/verbs.h"

#define MOST 4096
#define DEPTH 64
#define WORDS 16

static struct device dev;
static struct ibv_pd *pd;
static struct ibv_ah *ah;
static struct ibv_mr *mrs[MOST];
static struct ibv_qp *qps[MOST];
static int n_mrs, n_qps;
static char *word[WORDS];
static int words;
static int error;		/* of the command in hand */

static uint64_t number(int i)
{
	return i < words ? strtoull(word[i], NULL, 0) : 0;
}

static struct ibv_qp *the_qp(void)
{
	uint64_t n = number(1);

	if (n >= (uint64_t)n_qps || !qps[n])
		die("no queue pair %s", word[1]);
	return qps[n];
}

static struct ibv_mr *the_mr(void)
{
	uint64_t n = number(1);

	if (n >= (uint64_t)n_mrs || !mrs[n])
		die("no memory region %s", word[1]);
	return mrs[n];
}

static union ibv_gid the_gid(int i)
{
	union ibv_gid gid = { .raw = { 0 } };

	for (int k = 0; k < 16 && i < words; k++)
		sscanf(word[i] + 2 * k, "%2hhx", &gid.raw[k]);
	return gid;
}

static void say_hex(const uint8_t *p, size_t n)
{
	printf("ok ");
	while (n--)
		printf("%02x", *p++);
	putchar('\n');
}

static void do_gid(void)
{
	say_hex(dev.gid.raw, 16);
}

static void do_port(void)
{
	error = ibv_query_port(dev.context, 1, &dev.port);
	if (!error)
		printf("ok %u %u %u\n", dev.port.bad_pkey_cntr, dev.port.qkey_viol_cntr,
		       dev.port.active_mtu);
}

static void do_pd(void)
{
	pd = ibv_alloc_pd(dev.context);
	error = pd ? 0 : errno;
}

static void do_mr(void)
{
	size_t size = number(1);
	void *memory = aligned_alloc(4096, (size + 4095) & ~4095ul);
	struct ibv_mr *mr;

	if (!memory)
		die("no memory");
	memset(memory, 0, size);
	mr = ibv_reg_mr(pd, memory, size, number(2));
	if (!mr) {
		error = errno;
		return;
	}
	mrs[n_mrs] = mr;
	printf("ok %d %u %u %llu\n", n_mrs++, mr->lkey, mr->rkey,
	       (unsigned long long)(uintptr_t)memory);
}

static void do_dereg(void)
{
	error = ibv_dereg_mr(the_mr());
	if (!error)
		mrs[number(1)] = NULL;
}

static void do_peek(void)
{
	say_hex((uint8_t *)the_mr()->addr + number(2), number(3));
}

static void do_poke(void)
{
	uint8_t *p = (uint8_t *)the_mr()->addr + number(2);

	for (const char *hex = words > 3 ? word[3] : ""; *hex; hex += 2)
		sscanf(hex, "%2hhx", p++);
}

static void do_qp(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = number(1),
		.cap = { DEPTH, DEPTH, 4, 4, 0 },
		.send_cq = ibv_create_cq(dev.context, 2 * DEPTH, NULL, NULL, 0),
		.recv_cq = ibv_create_cq(dev.context, 2 * DEPTH, NULL, NULL, 0),
	};
	struct ibv_qp *qp;

	if (!init.send_cq || !init.recv_cq)
		die("cannot create completion queues");
	qp = ibv_create_qp(pd, &init);
	if (!qp) {
		error = errno;
		return;
	}
	qps[n_qps] = qp;
	printf("ok %d %u\n", n_qps++, qp->qp_num);
}

static void do_init(void)
{
	error = qp_to_init(&dev, the_qp(), number(2), number(3));
}

static void do_rtr(void)
{
	struct address peer = { .gid = the_gid(2), .qpn = number(3), .psn = number(4) };
	struct path path = default_path;

	path.mtu = number(5);
	path.max_dest_rd_atomic = number(6);
	path.min_rnr_timer = number(7);
	error = qp_to_rtr(&dev, the_qp(), &peer, &path);
}

static void do_rts(void)
{
	struct path path = default_path;

	path.timeout = number(3);
	path.retry_cnt = number(4);
	path.rnr_retry = number(5);
	path.max_rd_atomic = number(6);
	error = qp_to_rts(the_qp(), number(2), &path);
}

static void do_to(void)
{
	error = qp_to(the_qp(), number(2));
}

static void do_state(void)
{
	printf("ok %d\n", qp_state(the_qp()));
}

static void do_destroy(void)
{
	struct ibv_qp *qp = the_qp();
	struct ibv_cq *send_cq = qp->send_cq, *recv_cq = qp->recv_cq;

	error = ibv_destroy_qp(qp);
	qps[number(1)] = NULL;
	if (!error)
		error = ibv_destroy_cq(send_cq);
	if (!error)
		error = ibv_destroy_cq(recv_cq);
}

static void do_recv(void)
{
	struct ibv_sge sge = { .lkey = number(3), .addr = number(4), .length = number(5) };
	struct ibv_recv_wr *bad, wr = {
		.wr_id = number(2),
		.sg_list = &sge,
		.num_sge = sge.length ? 1 : 0,
	};

	error = ibv_post_recv(the_qp(), &wr, &bad);
}

static void send_common(struct ibv_send_wr *wr, struct ibv_sge *sge)
{
	*sge = (struct ibv_sge) { .lkey = number(5), .addr = number(6), .length = number(7) };
	wr->wr_id = number(2);
	wr->opcode = number(3);
	wr->send_flags = number(4);
	wr->sg_list = sge;
	wr->num_sge = sge->length ? 1 : 0;
	wr->imm_data = htonl(number(8));
}

static void do_send(void)
{
	struct ibv_send_wr *bad, wr = { 0 };
	struct ibv_sge sge;

	send_common(&wr, &sge);
	if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = number(9);
		wr.wr.atomic.rkey = number(10);
		wr.wr.atomic.compare_add = number(11);
		wr.wr.atomic.swap = number(12);
	} else {
		wr.wr.rdma.remote_addr = number(9);
		wr.wr.rdma.rkey = number(10);
	}
	error = ibv_post_send(the_qp(), &wr, &bad);
}

static void do_ah(void)
{
	union ibv_gid gid = the_gid(1);

	ah = ah_new(&dev, &gid);
	error = ah ? 0 : errno;
}

static void do_sendto(void)
{
	struct ibv_send_wr *bad, wr = { 0 };
	struct ibv_sge sge;

	send_common(&wr, &sge);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = number(9);
	wr.wr.ud.remote_qkey = number(10);
	error = ibv_post_send(the_qp(), &wr, &bad);
}

static void do_poll(void)
{
	struct ibv_qp *qp = the_qp();
	struct ibv_wc wc;
	int n = poll_for(*word[2] == 's' ? qp->send_cq : qp->recv_cq, &wc, 1, number(3));

	if (n < 0)
		error = EIO;
	else if (!n)
		puts("ok none");
	else
		printf("ok %llu %d %d %u %u %u %u\n", (unsigned long long)wc.wr_id, wc.status,
		       wc.opcode, wc.byte_len, ntohl(wc.imm_data), wc.wc_flags, wc.src_qp);
}

static void do_event(void)
{
	struct ibv_async_event event;

	if (!readable(dev.context->async_fd, number(1)) ||
	    ibv_get_async_event(dev.context, &event)) {
		puts("ok none");
		return;
	}
	printf("ok %d\n", event.event_type);
	ibv_ack_async_event(&event);
}

static const struct {
	const char *name;
	void (*run)(void);
	bool answers;		/* prints its answer itself, unless there is an error */
} commands[] = {
	{ "gid", do_gid, true }, { "port", do_port, true }, { "pd", do_pd, false },
	{ "mr", do_mr, true }, { "dereg", do_dereg, false }, { "peek", do_peek, true },
	{ "poke", do_poke, false }, { "qp", do_qp, true }, { "init", do_init, false },
	{ "rtr", do_rtr, false }, { "rts", do_rts, false }, { "to", do_to, false },
	{ "state", do_state, true }, { "destroy", do_destroy, false },
	{ "recv", do_recv, false }, { "send", do_send, false }, { "ah", do_ah, false },
	{ "sendto", do_sendto, false }, { "poll", do_poll, true }, { "event", do_event, true },
};

static void obey(char *line)
{
	words = 0;
	for (char *w; words < WORDS && (w = strsep(&line, " \n"));)
		if (*w)
			word[words++] = w;
	for (size_t i = 0; words && i < sizeof(commands) / sizeof(*commands); i++) {
		if (strcmp(commands[i].name, word[0]))
			continue;
		error = 0;
		commands[i].run();
		if (error)
			printf("error %d\n", error);
		else if (!commands[i].answers)
			puts("ok");
		return;
	}
	die("unknown command");
}

int main(int argc, char **argv)
{
	size_t size = 0;
	char *line = NULL;

	if (argc != 3)
		die("usage: agent DEVICE GID_INDEX");
	setvbuf(stdout, NULL, _IOLBF, 0);
	device_open(&dev, argv[1], atoi(argv[2]));
	fcntl(dev.context->async_fd, F_SETFL, O_NONBLOCK);
	pd = dev.pd;
	while (getline(&line, &size, stdin) > 0)
		obey(line);
	return 0;
}
