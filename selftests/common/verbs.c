// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "verbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

const struct path default_path = {
	.mtu = IBV_MTU_1024,
	.timeout = 17,		/* 0.5 s */
	.retry_cnt = 7,
	.rnr_retry = 7,
	.min_rnr_timer = 1,	/* 10 us */
	.max_rd_atomic = 8,
	.max_dest_rd_atomic = 8,
	.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		  IBV_ACCESS_REMOTE_ATOMIC,
};

void die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

unsigned int mtu_bytes(enum ibv_mtu mtu)
{
	return 128u << mtu;
}

void device_open(struct device *dev, const char *name, int gid_index)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	memset(dev, 0, sizeof(*dev));
	dev->gid_index = gid_index;
	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			dev->context = ibv_open_device(list[i]);
	if (!dev->context)
		die("cannot open device %s: %s", name, strerror(errno));
	ibv_free_device_list(list);
	dev->pd = ibv_alloc_pd(dev->context);
	if (!dev->pd)
		die("cannot allocate a protection domain: %s", strerror(errno));
	if (ibv_query_device(dev->context, &dev->attr))
		die("cannot query the device: %s", strerror(errno));
	if (ibv_query_port(dev->context, 1, &dev->port))
		die("cannot query the port: %s", strerror(errno));
	if (ibv_query_gid(dev->context, 1, gid_index, &dev->gid))
		die("cannot query GID %d: %s", gid_index, strerror(errno));
}

void device_close(struct device *dev)
{
	if (ibv_dealloc_pd(dev->pd))
		die("cannot free the protection domain: %s", strerror(errno));
	if (ibv_close_device(dev->context))
		die("cannot close the device: %s", strerror(errno));
}

int qp_to_init(struct device *dev, struct ibv_qp *qp, int access, uint32_t qkey)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = access,
		.qkey = qkey,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	(void)dev;
	mask |= qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	return ibv_modify_qp(qp, &attr, mask);
}

static void fill_ah(struct device *dev, struct ibv_ah_attr *ah, const union ibv_gid *gid)
{
	memset(ah, 0, sizeof(*ah));
	ah->is_global = 1;
	ah->port_num = 1;
	ah->grh.dgid = *gid;
	ah->grh.sgid_index = dev->gid_index;
	ah->grh.hop_limit = 64;
}

int qp_to_rtr(struct device *dev, struct ibv_qp *qp, const struct address *peer,
	      const struct path *path)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = path->mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = path->max_dest_rd_atomic,
		.min_rnr_timer = path->min_rnr_timer,
	};
	int mask = IBV_QP_STATE;

	if (qp->qp_type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	fill_ah(dev, &attr.ah_attr, &peer->gid);
	return ibv_modify_qp(qp, &attr, mask);
}

int qp_to_rts(struct ibv_qp *qp, uint32_t psn, const struct path *path)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = psn,
		.timeout = path->timeout,
		.retry_cnt = path->retry_cnt,
		.rnr_retry = path->rnr_retry,
		.max_rd_atomic = path->max_rd_atomic,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(qp, &attr, mask);
}

int qp_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

int qp_state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init))
		return -1;
	return attr.qp_state;
}

struct ibv_ah *ah_new(struct device *dev, const union ibv_gid *gid)
{
	struct ibv_ah_attr attr;

	fill_ah(dev, &attr, gid);
	return ibv_create_ah(dev->pd, &attr);
}

int poll_for(struct ibv_cq *cq, struct ibv_wc *wc, int n, int ms)
{
	int64_t end = now_ms() + ms;
	int have = 0, got;

	while (have < n) {
		got = ibv_poll_cq(cq, n - have, wc + have);
		if (got < 0)
			return -1;
		have += got;
		if (!got) {
			if (now_ms() >= end)
				break;
			sched_yield();
		}
	}
	return have;
}

bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static void no_delay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

int control_listen(uint16_t port)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int one = 1, fd, connection;

	fd = socket(AF_INET6, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof(any)) || listen(fd, 1))
		die("cannot listen on port %d: %s", port, strerror(errno));
	connection = accept(fd, NULL, NULL);
	if (connection < 0)
		die("cannot accept: %s", strerror(errno));
	close(fd);
	no_delay(connection);
	return connection;
}

int control_connect(const char *address, uint16_t port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *info;
	char service[8];
	int fd;

	snprintf(service, sizeof(service), "%d", port);
	if (getaddrinfo(address, service, &hints, &info))
		die("bad address %s", address);
	fd = socket(info->ai_family, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, info->ai_addr, info->ai_addrlen))
		die("cannot connect to %s port %d: %s", address, port, strerror(errno));
	freeaddrinfo(info);
	no_delay(fd);
	return fd;
}

void control_send(int fd, const void *data, size_t length)
{
	while (length) {
		ssize_t n = send(fd, data, length, MSG_NOSIGNAL);

		if (n < 0)
			die("control socket: %s", strerror(errno));
		data = (const char *)data + n;
		length -= n;
	}
}

bool control_receive(int fd, void *data, size_t length)
{
	while (length) {
		ssize_t n = recv(fd, data, length, 0);

		if (n <= 0)
			return false;
		data = (char *)data + n;
		length -= n;
	}
	return true;
}
