// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What a hostile program can do: rings full of garbage, nonsense to the character device. */
#include "pair.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include "../../include/uapi/rdma/sroce-abi.h"

/* A guard against hangs, generous for busy machines */
#define HANG_S 240

static struct pair *pair;
static char *device_names[2];
static int gid_indices[2];

/* Fill every ring that this process shares with a device with random bytes. */
static int scribble(unsigned int percent)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long start, end;

		if (!strstr(line, "/dev/infiniband/uverbs") && !strstr(line, "infinibandevent"))
			continue;
		if (sscanf(line, "%lx-%lx rw", &start, &end) != 2)
			continue;
		n++;
		for (uint8_t *p = (uint8_t *)start; p < (uint8_t *)end; p++)
			if ((unsigned int)random() % 100 < percent)
				*p = random();
	}
	if (maps)
		fclose(maps);
	return n;
}

/* In a child: connect, scribble, and go on using it, come what may. */
static void abuse_rings(unsigned int seed)
{
	static struct pair p;
	struct ibv_wc wc;

	alarm(HANG_S);
	srandom(seed);
	pair_open(&p, device_names, gid_indices);
	if (!pair_up(&p, seed % 3 ? IBV_QPT_RC : IBV_QPT_UD) || !scribble(0))
		_exit(3);
	for (int i = 0; i < DEPTH / 2; i++) {
		side_recv(&p.b, i, 1000);
		side_send(&p.a, i, 1000);
	}
	for (int i = 0; i < 50; i++) {
		scribble(1 + random() % 100);
		side_recv(&p.b, i, 10);
		side_send(&p.a, i, 10);
		side_post(&p.a, &p.b, IBV_WR_RDMA_READ, i, 100, 0, p.b.mr->rkey);
		ibv_req_notify_cq(p.a.send_cq, 0);
		ibv_poll_cq(p.a.send_cq, 1, &wc);
		ibv_resize_cq(p.a.send_cq, 1 + random() % 100);
	}
	qp_to(p.a.qp, IBV_QPS_ERR);
	scribble(50);
	ibv_destroy_qp(p.a.qp);
	_exit(0);
}

/* ---------------------------------------------------------------- work requests that lie */

#define MAX_RINGS 16

static struct sroce_queue *rings[MAX_RINGS];
static int n_rings;
static struct pair *victims;	/* whose keys and addresses are used */
static volatile bool lying;

static void find_rings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char line[512];

	n_rings = 0;
	while (maps && fgets(line, sizeof(line), maps))
		if ((strstr(line, "/dev/infiniband/uverbs") || strstr(line, "infinibandevent")) &&
		    sscanf(line, "%lx-%lx rw", &start, &end) == 2 && n_rings < MAX_RINGS)
			rings[n_rings++] = (struct sroce_queue *)start;
	if (maps)
		fclose(maps);
}

/* Mostly good: what is nonsense is found out at once, what is nearly right gets further */
static uint32_t some_length(void)
{
	static const uint32_t lengths[] = { 0, 1, 8, 1024, 4096, 5000, SIZE, SIZE + 1, 1u << 31, ~0u };

	return random() % 3 ? lengths[random() % 10] : random() % SIZE;
}

static void lie_sge(struct sroce_sge *sge)
{
	struct side *s = random() % 4 ? &victims->a : &victims->b;

	sge->addr = (uintptr_t)s->memory + (random() % 4 ? random() % SIZE : 0) -
		    (random() % 16 ? 0 : 8);
	sge->length = some_length();
	sge->lkey = random() % 8 ? s->mr->lkey : (uint32_t)random();
}

static void lie_send(struct sroce_send_wqe *wqe)
{
	struct side *to = random() % 2 ? &victims->a : &victims->b;

	wqe->wr.wr_id = random();
	wqe->wr.opcode = random() % 8 ? random() % 12 : random();
	wqe->wr.send_flags = random() % 4 ? random() % 32 : random();
	wqe->wr.ex.imm_data = random();
	if (victims->type == IBV_QPT_UD) {
		wqe->wr.wr.ud.remote_qpn = to->qp->qp_num;
		wqe->wr.wr.ud.remote_qkey = to->address.qkey;
		wqe->wr.wr.ud.ah_num = random() % 16;
	} else if (random() % 2) {
		wqe->wr.wr.rdma.remote_addr = (uintptr_t)to->memory + random() % SIZE / 8 * 8;
		wqe->wr.wr.rdma.rkey = to->mr->rkey;
	} else {
		wqe->wr.wr.atomic.remote_addr = (uintptr_t)to->memory + random() % SIZE / 8 * 8;
		wqe->wr.wr.atomic.rkey = to->mr->rkey;
	}
	wqe->data.num_sge = random() % 8 ? random() % 5 : random();
	wqe->data.length = some_length();
	for (int i = 0; i < 4; i++)
		lie_sge((struct sroce_sge *)wqe->payload + i);
}

static void lie_receive(struct sroce_recv_wqe *wqe)
{
	wqe->wr_id = random();
	wqe->data.num_sge = random() % 8 ? random() % 5 : random();
	for (int i = 0; i < 4; i++)
		lie_sge(&wqe->sge[i]);
}

static void lie_somewhere(struct sroce_queue *ring)
{
	uint32_t slot = random() & ring->index_mask;
	void *element = ring->data + ((size_t)slot << ring->log2_elem_size);

	if (1u << ring->log2_elem_size >= sizeof(struct sroce_send_wqe) + 4 * sizeof(struct sroce_sge))
		lie_send(element);
	else if (1u << ring->log2_elem_size >=
		 sizeof(struct sroce_recv_wqe) + 4 * sizeof(struct sroce_sge))
		lie_receive(element);
	if (random() % 4 == 0)
		ring->producer_index = random() % 8 ? ring->producer_index + 1 : random();
	if (random() % 64 == 0)
		ring->consumer_index = random();
}

static void *liar(void *unused)
{
	while (lying)
		lie_somewhere(rings[random() % n_rings]);
	return unused;
}

/*
 * In a child: rings whose work requests look right and change all the time, while they
 * are begun, sent, repeated and completed.
 */
static void abuse_requests(unsigned int seed)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
	static struct pair p;
	struct ibv_send_wr *bad;
	pthread_t thread;

	alarm(HANG_S);
	srandom(seed);
	pair_open(&p, device_names, gid_indices);
	if (!pair_start(&p, types[seed % 4], seed % 3 == 0))
		_exit(3);
	p.path.timeout = 4;	/* 65 us, so that much is repeated */
	for (int i = 0; i < 8; i++)
		ah_new(&p.a.dev, &p.b.dev.gid);
	if (!pair_connect(&p))
		_exit(3);
	find_rings();
	victims = &p;
	lying = true;
	if (!n_rings || pthread_create(&thread, NULL, liar, NULL))
		_exit(3);
	for (int i = 0; i < 400; i++) {
		/* nothing but a doorbell */
		ibv_post_send(p.a.qp, NULL, &bad);
		ibv_post_send(p.b.qp, NULL, &bad);
		if (i % 10 == 9 && (qp_state(p.a.qp) != IBV_QPS_RTS || qp_state(p.b.qp) != IBV_QPS_RTS)) {
			qp_to(p.a.qp, IBV_QPS_RESET);
			qp_to(p.b.qp, IBV_QPS_RESET);
			pair_connect(&p);
		}
	}
	ibv_destroy_qp(p.b.qp);
	lying = false;
	pthread_join(thread, NULL);
	_exit(0);
}

/* In a child: commands of the write() interface with random contents. */
static void abuse_write(unsigned int seed)
{
	struct {
		struct ib_uverbs_cmd_hdr header;
		uint8_t body[256];
	} command;
	uint8_t response[1024];
	char path[128];
	int fd;

	alarm(HANG_S);
	srandom(seed);
	snprintf(path, sizeof(path), "/dev/infiniband/%s", pair->a.dev.context->device->dev_name);
	fd = open(path, O_RDWR);
	if (fd < 0)
		_exit(3);
	for (int i = 0; i < 300; i++) {
		size_t length = sizeof(command.header) + 4 * (random() % 64);
		uint64_t to = (uintptr_t)response;

		for (size_t k = 0; k < sizeof(command.body); k++)
			command.body[k] = random() % 4 ? 0 : random();
		command.header = (struct ib_uverbs_cmd_hdr) {
			/* not those that take memory without bound */
			.command = i == 0 ? IB_USER_VERBS_CMD_GET_CONTEXT :
				   random() % (IB_USER_VERBS_CMD_OPEN_QP + 1),
			.in_words = length / 4,
			.out_words = random() % 32,
		};
		memcpy(command.body, &to, sizeof(to));
		if (write(fd, &command, length) < 0 && errno == EPERM)
			break;
	}
	_exit(0);
}

/* In a child: ioctls with random attributes. */
static void abuse_ioctl(unsigned int seed)
{
	struct {
		struct ib_uverbs_ioctl_hdr header;
		struct ib_uverbs_attr attr[8];
	} command;
	uint8_t data[256];

	alarm(HANG_S);
	srandom(seed);
	for (int i = 0; i < 500; i++) {
		int n = random() % 9;

		memset(&command, 0, sizeof(command));
		command.header = (struct ib_uverbs_ioctl_hdr) {
			.length = sizeof(command.header) + n * sizeof(command.attr[0]),
			.object_id = random() % 20,
			.method_id = random() % 10,
			.num_attrs = n,
			.driver_id = random() % 4 ? 11 : random() % 30,
		};
		for (int k = 0; k < n; k++)
			command.attr[k] = (struct ib_uverbs_attr) {
				.attr_id = random() % 4 ? random() % 20 : 0x1000 + random() % 4,
				.len = random() % 128,
				.flags = random() % 2,
				.data = random() % 2 ? (uintptr_t)data : (uint64_t)random() % 100,
			};
		ioctl(pair->a.dev.context->cmd_fd, RDMA_VERBS_IOCTL, &command);
		for (int k = 0; k < 256; k++)
			data[k] = random();
	}
	_exit(0);
}

static bool survives(void (*abuse)(unsigned int seed), int rounds)
{
	int status, ran = 0;

	if (getenv("NO_GARBAGE")) {
		tap_skip("%s", getenv("NO_GARBAGE"));
		return true;
	}

	for (int i = 0; i < rounds; i++) {
		pid_t child = fork();

		if (!child) {
			/* what the library makes of it is the child's own affair */
			if (!freopen("/dev/null", "w", stderr))
				_exit(3);
			abuse(i + 1);
		}
		expect(child > 0 && waitpid(child, &status, 0) == child, "fork");
		expect(!(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM),
		       "round %d hung for %d s", i, HANG_S);
		ran += !(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	}
	expect(ran, "no round could be set up");
	/* others are not disturbed */
	for (int i = 0; i < 3; i++) {
		if (!pair_up(pair, IBV_QPT_RC) || !talks(pair) || !pair_stop(pair))
			return false;
	}
	return true;
}

void garbage_cases(struct pair *p)
{
	pair = p;
	device_names[0] = strdup(ibv_get_device_name(p->a.dev.context->device));
	device_names[1] = strdup(ibv_get_device_name(p->b.dev.context->device));
	gid_indices[0] = p->a.dev.gid_index;
	gid_indices[1] = p->b.dev.gid_index;
	ibv_fork_init();
	CASE(p, survives(abuse_rings, 30), "rings full of garbage harm nobody else");
	CASE(p, survives(abuse_requests, 40), "work requests that change all the time");
	CASE(p, survives(abuse_write, 20), "random commands to the character device");
	CASE(p, survives(abuse_ioctl, 20), "random ioctls to the character device");
}
