// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What a hostile program can do: rings full of garbage, nonsense to the character device. */
#include "pair.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

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

	alarm(60);
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

	alarm(60);
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

	alarm(60);
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
		       "round %d hung for 60 s", i);
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
	CASE(p, survives(abuse_write, 20), "random commands to the character device");
	CASE(p, survives(abuse_ioctl, 20), "random ioctls to the character device");
}
