// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * group - a member of a multicast group, or a sender to it, with verbs only.
 *
 * usage: group DEVICE GID_INDEX GROUP           joins; prints a line for each message
 *        group DEVICE GID_INDEX GROUP COUNT     sends COUNT messages
 *
 * A member says "member" when it is one, and goes on until it is killed.
 */
#include "../common/verbs.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QKEY 0x11111111
#define GRH 40
#define MESSAGE 1024
#define DEPTH 64

static uint8_t buffer[DEPTH][GRH + MESSAGE];

/* What message number n consists of; it begins with the number */
static void message(uint8_t *bytes, uint32_t n)
{
	uint32_t be = htonl(n);

	for (int i = 0; i < MESSAGE; i++)
		bytes[i] = (uint8_t)(n * 7 + i);
	memcpy(bytes, &be, sizeof(be));
}

static void group_gid(const char *text, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (inet_pton(AF_INET6, text, gid) == 1)
		return;
	gid->raw[10] = gid->raw[11] = 0xff;
	if (inet_pton(AF_INET, text, gid->raw + 12) != 1)
		die("not an address: %s", text);
}

static struct ibv_qp *datagram_qp(struct device *dev, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD, .send_cq = cq, .recv_cq = cq,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(dev->pd, &init);

	if (!qp)
		die("cannot create a queue pair");
	if (qp_to_init(dev, qp, 0, QKEY) || qp_to(qp, IBV_QPS_RTR) ||
	    qp_to_rts(qp, 0, &default_path))
		die("cannot bring the queue pair up");
	return qp;
}

static void post_receive(struct ibv_qp *qp, struct ibv_mr *mr, int slot)
{
	struct ibv_sge sge = { (uintptr_t)buffer[slot], GRH + MESSAGE, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(qp, &wr, &bad))
		die("cannot post a receive request");
}

static void receive(struct ibv_qp *qp, struct ibv_cq *cq, struct ibv_mr *mr,
		    const union ibv_gid *group)
{
	uint8_t expected[MESSAGE];
	struct ibv_wc wc;
	uint32_t n;

	for (int i = 0; i < DEPTH; i++)
		post_receive(qp, mr, i);
	if (ibv_attach_mcast(qp, group, 0))
		die("cannot attach");
	printf("member\n");
	while (1) {
		int got = poll_for(cq, &wc, 1, HANG_MS);

		if (got < 0)
			die("cannot poll");
		if (!got)
			continue;
		if (wc.status)
			die("completion: %s", ibv_wc_status_str(wc.status));
		memcpy(&n, buffer[wc.wr_id] + GRH, sizeof(n));
		n = ntohl(n);
		message(expected, n);
		if (wc.byte_len != GRH + MESSAGE ||
		    memcmp(buffer[wc.wr_id] + GRH, expected, MESSAGE))
			die("message %u: %u bytes, or wrong ones", n, wc.byte_len);
		printf("message %u\n", n);
		post_receive(qp, mr, wc.wr_id);
	}
}

static void send_all(struct device *dev, struct ibv_qp *qp, struct ibv_cq *cq, struct ibv_mr *mr,
		     const union ibv_gid *group, uint32_t count)
{
	struct ibv_ah *ah = ah_new(dev, group);
	struct ibv_wc wc;

	if (!ah)
		die("cannot create an address handle");
	for (uint32_t n = 0; n < count; n++) {
		struct ibv_sge sge = { (uintptr_t)buffer[0], MESSAGE, mr->lkey };
		struct ibv_send_wr wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.ud = { .ah = ah, .remote_qpn = 0xffffff, .remote_qkey = QKEY },
		}, *bad;

		message(buffer[0], n);
		if (ibv_post_send(qp, &wr, &bad))
			die("cannot post a send request");
		if (poll_for(cq, &wc, 1, HANG_MS) != 1 || wc.status)
			die("message %u was not sent", n);
	}
}

int main(int argc, char **argv)
{
	struct device dev;
	union ibv_gid group;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 4)
		die("usage: group DEVICE GID_INDEX GROUP [COUNT]");
	device_open(&dev, argv[1], atoi(argv[2]));
	group_gid(argv[3], &group);
	cq = ibv_create_cq(dev.context, 2 * DEPTH, NULL, NULL, 0);
	mr = ibv_reg_mr(dev.pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	if (!cq || !mr)
		die("cannot create a completion queue or a memory region");
	qp = datagram_qp(&dev, cq);
	if (argc > 4)
		send_all(&dev, qp, cq, mr, &group, atoi(argv[4]));
	else
		receive(qp, cq, mr, &group);
	return 0;
}
