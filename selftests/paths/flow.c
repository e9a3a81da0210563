// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * flow - two queue pairs that bounce messages, by an address vector of which every field
 * can be chosen.
 *
 * usage: flow -d DEVICE -g GID_INDEX [OPTION...] [SERVER]
 *
 *   -q rc|uc|ud   service (rc)             -n COUNT   rounds (20); 0: until SIGTERM
 *   -t CLASS      traffic class (0)        -l LABEL   flow label (0)
 *   -s LEVEL      service level (0)        -h HOPS    hop limit (64)
 *   -b BYTES      of a message (1024)      -m BYTES   path MTU (1024)
 *   -T EXPONENT   transport timeout (17)   -r COUNT   retries (7)
 *   -p PORT       of the control connection (19500)
 *
 * In each round the client sends a message, over RC writes and reads as well, and the server
 * sends one back; both check what they got.  A line "qpn OWN PEER" at the beginning, "round N"
 * every so often, "N rounds" at the end.  A failed completion is named, and the exit status
 * is 2.
 */
#include "../common/verbs.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QKEY 0x11111111
#define GRH 40
#define MAX_BYTES 65536

struct hello {
	struct address address;
	uint64_t remote;
	uint32_t rkey;
};

struct end {
	struct device dev;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	struct hello own, peer;
	bool sends_first;
	int sends, receives;	/* completed, and not waited for yet */
};

static struct {
	enum ibv_qp_type type;
	unsigned long rounds, bytes;
	struct ibv_ah_attr ah;
	struct path path;
} option = { .type = IBV_QPT_RC, .rounds = 20, .bytes = 1024 };

static uint8_t memory[4][GRH + MAX_BYTES];	/* send, receive, read or write, peer's */
static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

static enum ibv_mtu mtu_of(unsigned long bytes)
{
	for (int mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++)
		if (mtu_bytes(mtu) == bytes)
			return mtu;
	die("no path MTU: %lu", bytes);
}

static void service_of(const char *name)
{
	if (!strcmp(name, "uc"))
		option.type = IBV_QPT_UC;
	else if (!strcmp(name, "ud"))
		option.type = IBV_QPT_UD;
	else if (strcmp(name, "rc"))
		die("no service: %s", name);
}

static void parse(int argc, char **argv, const char **device, int *gid, uint16_t *port)
{
	int c;

	option.path = default_path;
	option.ah.grh.hop_limit = 64;
	while ((c = getopt(argc, argv, "d:g:q:n:t:l:s:h:b:m:T:r:p:")) != -1) {
		unsigned long value = optarg ? strtoul(optarg, NULL, 0) : 0;

		switch (c) {
		case 'd': *device = optarg; break;
		case 'g': *gid = value; break;
		case 'q': service_of(optarg); break;
		case 'n': option.rounds = value; break;
		case 't': option.ah.grh.traffic_class = value; break;
		case 'l': option.ah.grh.flow_label = value; break;
		case 's': option.ah.sl = value; break;
		case 'h': option.ah.grh.hop_limit = value; break;
		case 'b': option.bytes = value; break;
		case 'm': option.path.mtu = mtu_of(value); break;
		case 'T': option.path.timeout = value; break;
		case 'r': option.path.retry_cnt = value; break;
		case 'p': *port = value; break;
		default: die("usage: see the source");
		}
	}
	if (!*device || *gid < 0 || option.bytes > MAX_BYTES)
		die("no -d DEVICE or -g GID_INDEX, or -b too large");
}

static void qp_create(struct end *e)
{
	struct ibv_qp_init_attr init = {
		.qp_type = option.type,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	e->cq = ibv_create_cq(e->dev.context, 32, NULL, NULL, 0);
	e->mr = ibv_reg_mr(e->dev.pd, memory, sizeof(memory), ALL_ACCESS);
	init.send_cq = init.recv_cq = e->cq;
	e->qp = e->cq ? ibv_create_qp(e->dev.pd, &init) : NULL;
	if (!e->mr || !e->qp)
		die("cannot create a queue pair");
	if (qp_to_init(&e->dev, e->qp, ALL_ACCESS, QKEY))
		die("cannot bring the queue pair to INIT");
	e->own = (struct hello){
		.address = { .gid = e->dev.gid, .qpn = e->qp->qp_num, .psn = 1000 },
		.remote = (uintptr_t)memory[3],
		.rkey = e->mr->rkey,
	};
}

static int to_rtr(struct end *e)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.ah_attr = option.ah,
		.path_mtu = option.path.mtu,
		.dest_qp_num = e->peer.address.qpn,
		.rq_psn = e->peer.address.psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
	};
	int mask = IBV_QP_STATE;

	if (option.type == IBV_QPT_UD) {
		e->ah = ibv_create_ah(e->dev.pd, &option.ah);
		if (!e->ah)
			die("cannot create an address handle");
		return ibv_modify_qp(e->qp, &attr, mask);
	}
	mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (option.type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(e->qp, &attr, mask);
}

static void post_receive(struct end *e)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)memory[1], .length = sizeof(memory[1]), .lkey = e->mr->lkey,
	};
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(e->qp, &wr, &bad))
		die("cannot post a receive request");
}

static void connect_ends(struct end *e, int fd)
{
	control_send(fd, &e->own, sizeof(e->own));
	if (!control_receive(fd, &e->peer, sizeof(e->peer)))
		die("the peer has gone");
	option.ah.is_global = 1;
	option.ah.port_num = 1;
	option.ah.grh.dgid = e->peer.address.gid;
	option.ah.grh.sgid_index = e->dev.gid_index;
	if (to_rtr(e) || qp_to_rts(e->qp, e->own.address.psn, &option.path))
		die("cannot bring the queue pair up");
	post_receive(e);
	printf("qpn 0x%x 0x%x\n", e->qp->qp_num, e->peer.address.qpn);
	fflush(stdout);
	control_send(fd, "r", 1);
	if (!control_receive(fd, &(char){ 0 }, 1))
		die("the peer has gone");
}

/* Waits for completions of a kind, *done of which there are already; notes those of the other */
static bool wait_for(struct end *e, int *done, int wanted)
{
	struct ibv_wc wc;

	while (*done < wanted) {
		int n = poll_for(e->cq, &wc, 1, 500);

		if (n < 0)
			die("cannot poll");
		if (!n && stop)
			return false;
		if (!n)
			continue;
		if (wc.status) {
			printf("status %d: %s\n", wc.status, ibv_wc_status_str(wc.status));
			exit(2);
		}
		if (wc.opcode & IBV_WC_RECV)
			e->receives++;
		else
			e->sends++;
	}
	*done -= wanted;
	return true;
}

static void post(struct end *e, enum ibv_wr_opcode opcode, void *local)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)local, .length = option.bytes, .lkey = e->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.opcode = opcode, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1,
	}, *bad;

	if (option.type == IBV_QPT_UD) {
		wr.wr.ud.ah = e->ah;
		wr.wr.ud.remote_qpn = e->peer.address.qpn;
		wr.wr.ud.remote_qkey = QKEY;
	} else {
		wr.wr.rdma.remote_addr = e->peer.remote;
		wr.wr.rdma.rkey = e->peer.rkey;
	}
	if (ibv_post_send(e->qp, &wr, &bad))
		die("cannot post a send request");
}

/* Writes, reads back and compares; then sends */
static bool send_round(struct end *e, unsigned long n)
{
	memset(memory[0], n * 7 + 1, option.bytes);
	if (option.type == IBV_QPT_RC && e->sends_first) {
		post(e, IBV_WR_RDMA_WRITE, memory[0]);
		post(e, IBV_WR_RDMA_READ, memory[2]);
		if (!wait_for(e, &e->sends, 2))
			return false;
		if (memcmp(memory[0], memory[2], option.bytes))
			die("round %lu: read other than was written", n);
	}
	post(e, IBV_WR_SEND, memory[0]);
	return wait_for(e, &e->sends, 1);
}

static bool receive_round(struct end *e, unsigned long n)
{
	const uint8_t *got = memory[1] + (option.type == IBV_QPT_UD ? GRH : 0);

	if (!wait_for(e, &e->receives, 1))
		return false;
	for (unsigned long i = 0; i < option.bytes; i++)
		if (got[i] != (uint8_t)(n * 7 + 1))
			die("round %lu: byte %lu is wrong", n, i);
	post_receive(e);
	return true;
}

static bool round_trip(struct end *e, unsigned long n)
{
	if (e->sends_first)
		return send_round(e, n) && receive_round(e, n);
	return receive_round(e, n) && send_round(e, n);
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	uint16_t port = 19500;
	int fd, gid = -1;
	unsigned long n;
	struct end e = {};

	parse(argc, argv, &device, &gid, &port);
	signal(SIGTERM, on_signal);
	device_open(&e.dev, device, gid);
	qp_create(&e);
	e.sends_first = optind < argc;
	fd = e.sends_first ? control_connect(argv[optind], port) : control_listen(port);
	connect_ends(&e, fd);
	for (n = 0; (!option.rounds || n < option.rounds) && !stop; n++) {
		if (!round_trip(&e, n))
			break;
		if (n % 50 == 0) {
			printf("round %lu\n", n);
			fflush(stdout);
		}
	}
	printf("%lu rounds\n", n);
	return 0;
}
