// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * faults - every allocation that the driver asks for in a call fails, one at a time
 *
 * usage: faults DEVICE_A GID_INDEX_A DEVICE_B GID_INDEX_B NETDEV [NAME]
 *        faults -l MODULE.ko
 *
 * The kernel's fault injection fails the nth allocation of a task (fail-nth); n counts
 * up until the call needs fewer, and then it has to succeed.  faults.sh restricts that to
 * allocations below the driver's own functions.  NETDEV carries no RDMA device yet.
 * With -l, the module is loaded that way.
 */
#define _GNU_SOURCE
#include "../errors/pair.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#define MAX_FAULTS	20000	/* no call needs so many allocations */
#define ALL_OF		100	/* of those of a call that needs many; see @step */
#define LINK_NAME	"rxe_fault"

static struct pair pair;
static const char *spare_netdev;
static int fail_nth = -1;
/* Behind the first ALL_OF allocations, only each so manyth fails; $FAULT_STEP for links */
static int step = 1;

/* The nth allocation from now on fails; 0: none does. */
static void arm(int n)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%d", n);

	/* where faults are not filtered, this may take the last one */
	for (int tries = 0; pwrite(fail_nth, text, length, 0) != length; tries++)
		if (errno != EFAULT || tries)
			die("fail-nth: %s", strerror(errno));
}

/* No more failures. Return: whether there was one */
static bool disarm(void)
{
	char text[16] = "";
	ssize_t length = pread(fail_nth, text, sizeof(text) - 1, 0);

	if (length <= 0 && errno != EFAULT)
		die("fail-nth: %s", strerror(errno));
	arm(0);
	return length > 0 && !atoi(text);
}

static bool is_shortage(int error)
{
	return error == ENOMEM || error == ENOBUFS || error == EFAULT || error == ENOSPC;
}

/*
 * One test point: @act in the face of each fault. It returns 0 or an errno; @undo takes
 * back what it did, and @prepare sets up what it needs, both without faults.
 */
static bool each_fault(bool (*prepare)(void), int (*act)(void), bool (*undo)(void))
{
	int refused = 0, faults = 0, n, error;
	bool hit;

	for (n = 1; n < MAX_FAULTS; n += n < ALL_OF ? 1 : step) {
		if (!prepare())
			return false;
		arm(n);
		error = act();
		hit = disarm();
		if (!hit)
			expect(!error, "without a fault: %s", strerror(error));
		expect(!error || is_shortage(error), "fault %d: %s", n, strerror(error));
		refused += !!error;
		faults += hit;
		if (!undo())
			return false;
		if (!hit)
			break;
	}
	expect(n < MAX_FAULTS, "still a fault to be had after %d", n);
	expect(faults, "no fault was injected");
	expect(refused, "%d faults, and none was noticed", faults);
	printf("# %d faults, %d of them refused the call\n", faults, refused);
	return true;
}

static bool nothing(void)
{
	return true;
}

/* ---------------------------------------------------------------- verbs objects */

static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static struct ibv_ah *ah;
static void *memory;
static size_t mr_bytes;
static struct ibv_qp_init_attr qp_init;

static int result(const void *object)
{
	return object ? 0 : errno;
}

static int act_cq(void)
{
	return result(cq = ibv_create_cq(pair.a.dev.context, 100, NULL, NULL, 0));
}

static bool undo_cq(void)
{
	expect(!cq || !ibv_destroy_cq(cq), "destroy completion queue: %s", strerror(errno));
	cq = NULL;
	return true;
}

static bool prepare_cq(void)
{
	expect(!act_cq(), "completion queue: %s", strerror(errno));
	return true;
}

static int act_resize_cq(void)
{
	return ibv_resize_cq(cq, 500);
}

static int act_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 100, .max_sge = 4 } };

	return result(srq = ibv_create_srq(pair.a.dev.pd, &init));
}

static bool undo_srq(void)
{
	expect(!srq || !ibv_destroy_srq(srq), "destroy SRQ: %s", strerror(errno));
	srq = NULL;
	return true;
}

static bool prepare_srq(void)
{
	expect(!act_srq(), "shared receive queue: %s", strerror(errno));
	return true;
}

static int act_resize_srq(void)
{
	struct ibv_srq_attr attr = { .max_wr = 500 };

	return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}

static int act_qp(void)
{
	qp_init = (struct ibv_qp_init_attr) {
		.qp_type = qp_init.qp_type,
		.srq = srq, .send_cq = cq, .recv_cq = cq,
		.cap = {
			.max_send_wr = 100, .max_send_sge = 4,
			.max_recv_wr = srq ? 0 : 100, .max_recv_sge = srq ? 0 : 4,
		},
	};
	return result(qp = ibv_create_qp(pair.a.dev.pd, &qp_init));
}

static bool undo_qp(void)
{
	expect(!qp || !ibv_destroy_qp(qp), "destroy queue pair: %s", strerror(errno));
	qp = NULL;
	return true;
}

static bool prepare_init(void)
{
	expect(!act_qp(), "queue pair: %s", strerror(errno));
	expect(!qp_to_init(&pair.a.dev, qp, default_path.access, 0x1234), "to INIT");
	return true;
}

static int act_rtr(void)
{
	struct address peer = { .gid = pair.b.dev.gid, .qpn = 17 };

	return qp_to_rtr(&pair.a.dev, qp, &peer, &default_path);
}

static int act_mr(void)
{
	return result(mr = ibv_reg_mr(pair.a.dev.pd, memory, mr_bytes, ALL_ACCESS));
}

static bool undo_mr(void)
{
	expect(!mr || !ibv_dereg_mr(mr), "deregister memory: %s", strerror(errno));
	mr = NULL;
	return true;
}

static int act_ah(void)
{
	return result(ah = ah_new(&pair.a.dev, &pair.b.dev.gid));
}

static bool undo_ah(void)
{
	expect(!ah || !ibv_destroy_ah(ah), "destroy address handle: %s", strerror(errno));
	ah = NULL;
	return true;
}

static union ibv_gid group = { .raw = { [10] = 0xff, [11] = 0xff, 239, 1, 2, 3 } };
static bool attached;

static int act_attach(void)
{
	int error = ibv_attach_mcast(qp, &group, 0);

	attached = !error;
	return error;
}

static bool undo_attach(void)
{
	expect(!attached || !ibv_detach_mcast(qp, &group, 0), "detach: %s", strerror(errno));
	attached = false;
	return true;
}

/* ---------------------------------------------------------------- traffic */

static bool prepare_pair(void)
{
	if (!pair_up(&pair, IBV_QPT_RC))
		return false;
	expect(!side_recv(&pair.b, 7, 100), "post receive");
	return true;
}

static int act_doorbell(void)
{
	return side_send(&pair.a, 1, 100);
}

static bool undo_pair(void)
{
	return pair_stop(&pair);
}

static enum ibv_wr_opcode opcode;
static uint32_t length;

/* A request completes whatever is short on its way; it is the driver that tries again. */
static bool completes_in_spite(void)
{
	struct ibv_wc wc;
	int n, hits = 0;

	if (!pair_up(&pair, IBV_QPT_RC))
		return false;
	/* the first doorbell allocates what the others do not */
	expect(!side_post(&pair.a, &pair.b, opcode, 0, 8, 0, pair.b.mr->rkey), "post");
	if (!completes(pair.a.send_cq, 0, IBV_WC_SUCCESS))
		return false;
	for (n = 1; n < MAX_FAULTS; n++) {
		bool hit;
		int error;

		memset(pair.a.memory, n, SIZE);
		memset(pair.b.memory, n + 1, SIZE);
		arm(n);
		error = side_post(&pair.a, &pair.b, opcode, n, length, 0, pair.b.mr->rkey);
		hit = disarm();
		expect(!error, "post: %s", strerror(error));
		expect(poll_for(pair.a.send_cq, &wc, 1, HANG_MS) == 1, "fault %d: no completion", n);
		expect(wc.status == IBV_WC_SUCCESS && wc.wr_id == (uint64_t)n,
		       "fault %d: request %d: %s", n, (int)wc.wr_id, ibv_wc_status_str(wc.status));
		expect(!memcmp(pair.a.memory, pair.b.memory, length), "fault %d: wrong bytes", n);
		hits += hit;
		if (!hit)
			break;
	}
	expect(hits, "no fault was injected");
	printf("# %d faults\n", hits);
	return true;
}

/* ---------------------------------------------------------------- links, namespaces, module */

static void put_string(struct nlmsghdr *nlh, int type, const char *text)
{
	struct nlattr *attr = (void *)((char *)nlh + NLMSG_ALIGN(nlh->nlmsg_len));

	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + strlen(text) + 1;
	strcpy((char *)attr + NLA_HDRLEN, text);
	nlh->nlmsg_len = NLMSG_ALIGN(nlh->nlmsg_len) + NLA_ALIGN(attr->nla_len);
}

/* "rdma link add" in this very task. Return: 0 or an errno */
static int act_link(void)
{
	struct {
		struct nlmsghdr nlh;
		char attrs[256];
	} m = { .nlh = {
		.nlmsg_len = NLMSG_HDRLEN,
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_NEWLINK),
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
	} };
	struct {
		struct nlmsghdr nlh;
		struct nlmsgerr error;
		char rest[512];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	int error = EPROTO;

	put_string(&m.nlh, RDMA_NLDEV_ATTR_DEV_NAME, LINK_NAME);
	put_string(&m.nlh, RDMA_NLDEV_ATTR_LINK_TYPE, "sroce");
	put_string(&m.nlh, RDMA_NLDEV_ATTR_NDEV_NAME, spare_netdev);
	if (fd < 0 || send(fd, &m, m.nlh.nlmsg_len, 0) < 0 ||
	    recv(fd, &answer, sizeof(answer), 0) < 0)
		error = errno;
	else if (answer.nlh.nlmsg_type == NLMSG_ERROR)
		error = -answer.error.error;
	close(fd);
	return error;
}

static bool link_exists(void)
{
	return !access("/sys/class/infiniband/" LINK_NAME, F_OK);
}

static bool undo_link(void)
{
	/* it may be there in spite of an error that came after all was done */
	if (!link_exists())
		return true;
	expect(!system("rdma link delete " LINK_NAME), "rdma link delete");
	expect(!link_exists(), "the link is there after it was deleted");
	return true;
}

/* In a child: the namespace goes with it. */
static int act_namespace(void)
{
	return unshare(CLONE_NEWNET) ? errno : 0;
}

static bool namespaces(void)
{
	int n, status, hits = 0;

	for (n = 1; n < MAX_FAULTS; n++) {
		pid_t child = fork();

		if (!child) {
			int error;

			fail_nth = open("/proc/thread-self/fail-nth", O_RDWR);
			arm(n);
			error = act_namespace();
			if (!disarm())
				_exit(error ? 2 : 0);
			_exit(is_shortage(error) ? 1 : 2);
		}
		expect(child > 0 && waitpid(child, &status, 0) == child, "fork");
		expect(WIFEXITED(status) && WEXITSTATUS(status) < 2, "fault %d: status %#x", n,
		       status);
		if (!WEXITSTATUS(status))
			break;
		hits++;
	}
	expect(hits, "no fault was injected");
	printf("# %d faults\n", hits);
	return true;
}

static int module_fd;

static int act_load(void)
{
	return syscall(SYS_finit_module, module_fd, "", 0) ? errno : 0;
}

static bool undo_load(void)
{
	if (!access("/sys/module/sroce", F_OK))
		expect(!syscall(SYS_delete_module, "sroce", O_NONBLOCK), "unload: %s",
		       strerror(errno));
	return true;
}

/* ---------------------------------------------------------------- main */

#define FAULTS(prepare, act, undo, ...)					\
	do {								\
		if (tap_begin(__VA_ARGS__)) {				\
			(void)each_fault(prepare, act, undo);		\
			arm(0);						\
			(void)undo();	/* of a test point that failed */ \
			tap_end();					\
		}							\
	} while (0)

static void object_cases(void)
{
	static const struct { enum ibv_qp_type type; const char *name; } types[] = {
		{ IBV_QPT_RC, "RC" }, { IBV_QPT_UC, "UC" }, { IBV_QPT_UD, "UD" },
	};

	FAULTS(nothing, act_cq, undo_cq, "create a CQ");
	prepare_cq();
	FAULTS(nothing, act_resize_cq, nothing, "resize a CQ");
	FAULTS(nothing, act_srq, undo_srq, "create an SRQ");
	prepare_srq();
	FAULTS(nothing, act_resize_srq, nothing, "resize an SRQ");
	qp_init.qp_type = IBV_QPT_RC;
	FAULTS(nothing, act_qp, undo_qp, "create a queue pair with an SRQ");
	undo_srq();
	for (int i = 0; i < 3; i++) {
		qp_init.qp_type = types[i].type;
		FAULTS(nothing, act_qp, undo_qp, "create a queue pair, %s", types[i].name);
	}
	prepare_init();
	FAULTS(nothing, act_attach, undo_attach, "attach to a multicast group");
	undo_qp();
	qp_init.qp_type = IBV_QPT_RC;
	FAULTS(prepare_init, act_rtr, undo_qp, "a queue pair to RTR");
	undo_cq();
	for (mr_bytes = 1; mr_bytes <= 8u << 20; mr_bytes *= 8)
		FAULTS(nothing, act_mr, undo_mr, "register %zu bytes", mr_bytes);
	FAULTS(nothing, act_ah, undo_ah, "create an address handle");
}

static void traffic_cases(void)
{
	static const struct { enum ibv_wr_opcode opcode; const char *name; } ops[] = {
		{ IBV_WR_RDMA_WRITE, "WRITE" }, { IBV_WR_RDMA_READ, "READ" },
	};

	FAULTS(prepare_pair, act_doorbell, undo_pair, "the first doorbell");
	for (int i = 0; i < 2; i++) {
		opcode = ops[i].opcode;
		for (length = 8; length <= SIZE; length *= 16) {
			if (tap_begin("%s of %u bytes completes", ops[i].name, length)) {
				(void)completes_in_spite();
				arm(0);
				pair_stop(&pair);
				tap_end();
			}
		}
	}
}

int main(int argc, char **argv)
{
	setlinebuf(stdout);
	fail_nth = open("/proc/thread-self/fail-nth", O_RDWR);
	if (fail_nth < 0)
		die("no fail-nth: %s", strerror(errno));
	if (argc == 3 && !strcmp(argv[1], "-l")) {
		module_fd = open(argv[2], O_RDONLY);
		if (module_fd < 0)
			die("%s: %s", argv[2], strerror(errno));
		step = 3;
		FAULTS(nothing, act_load, undo_load, "load the module");
		return tap_plan();
	}
	if (argc < 6)
		die("usage: faults DEVICE_A GID_INDEX_A DEVICE_B GID_INDEX_B NETDEV [NAME]");
	spare_netdev = argv[5];
	tap_only = argv[6];
	memory = mmap(NULL, 8u << 20, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	pair_open(&pair, (char *[]) { argv[1], argv[3] }, (int []) { atoi(argv[2]), atoi(argv[4]) });
	object_cases();
	traffic_cases();
	/* hundreds are the core's, for each file in sysfs and the like */
	step = getenv("FAULT_STEP") ? atoi(getenv("FAULT_STEP")) : 7;
	FAULTS(nothing, act_link, undo_link, "rdma link add");
	step = 1;
	if (tap_begin("a net namespace")) {
		(void)namespaces();
		tap_end();
	}
	return tap_plan();
}
