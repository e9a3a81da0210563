// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * tcp_lat - what perftest's latency tests do, over TCP
 *
 * usage: tcp_lat [-e] [-n ITERATIONS] [-s BYTES] -p PORT [ADDRESS]
 *
 *   -e   sleep until there is something to read; default: poll, as perftest does
 *
 * Without ADDRESS it is the server.  The client prints one line for each round trip,
 * "NUMBER, MICROSECONDS", half of what it took, as perftest's -U does.  qperf's tcp_lat
 * reports a mean only.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Before the first one that counts */
#define WARM_UP 100

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

/* The connection: to ADDRESS, or of the one client that comes */
static int open_connection(const char *address, const char *port)
{
	const struct addrinfo hints = {
		.ai_family = address ? AF_UNSPEC : AF_INET6,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICHOST | (address ? 0 : AI_PASSIVE),
	};
	struct addrinfo *to;
	int one = 1, fd, listener;

	if (getaddrinfo(address, port, &hints, &to)) {
		fprintf(stderr, "tcp_lat: not an address: %s\n", address);
		exit(1);
	}
	fd = socket(to->ai_family, SOCK_STREAM, 0);
	if (fd < 0)
		die("socket");
	if (address) {
		if (connect(fd, to->ai_addr, to->ai_addrlen))
			die("connect");
	} else {
		listener = fd;
		setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(listener, to->ai_addr, to->ai_addrlen) || listen(listener, 1))
			die("listen");
		fd = accept(listener, NULL, NULL);
		if (fd < 0)
			die("accept");
		close(listener);
	}
	freeaddrinfo(to);
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		die("TCP_NODELAY");
	return fd;
}

static void send_all(int fd, const char *data, size_t left)
{
	while (left) {
		ssize_t n = send(fd, data, left, MSG_NOSIGNAL);

		if (n < 0)
			die("send");
		data += n;
		left -= n;
	}
}

/* False at the end of the stream */
static int receive_all(int fd, char *data, size_t left, int flags)
{
	while (left) {
		ssize_t n = recv(fd, data, left, flags);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n < 0)
			die("recv");
		if (!n)
			return 0;
		data += n;
		left -= n;
	}
	return 1;
}

static void serve(int fd, char *message, size_t size, int flags)
{
	while (receive_all(fd, message, size, flags))
		send_all(fd, message, size);
}

static void measure(int fd, char *message, size_t size, int flags, int iterations)
{
	double *us = calloc(iterations, sizeof(*us));

	if (!us)
		die("calloc");
	for (int i = -WARM_UP; i < iterations; i++) {
		double start = now_us();

		send_all(fd, message, size);
		if (!receive_all(fd, message, size, flags)) {
			fprintf(stderr, "tcp_lat: the server has gone\n");
			exit(1);
		}
		if (i >= 0)
			us[i] = (now_us() - start) / 2;
	}
	for (int i = 0; i < iterations; i++)
		printf("%d, %.3f\n", i + 1, us[i]);
	free(us);
}

int main(int argc, char **argv)
{
	int flags = MSG_DONTWAIT, iterations = 1000, option, fd;
	const char *port = NULL, *address;
	size_t size = 2;
	char *message;

	while ((option = getopt(argc, argv, "en:s:p:")) != -1) {
		switch (option) {
		case 'e': flags = 0; break;
		case 'n': iterations = atoi(optarg); break;
		case 's': size = atol(optarg); break;
		case 'p': port = optarg; break;
		default: return 2;
		}
	}
	address = argv[optind];
	message = calloc(1, size);
	if (!port || !message || iterations <= 0) {
		fprintf(stderr, "usage: tcp_lat [-e] [-n ITERATIONS] [-s BYTES] -p PORT [ADDRESS]\n");
		return 2;
	}
	fd = open_connection(address, port);
	if (address)
		measure(fd, message, size, flags, iterations);
	else
		serve(fd, message, size, flags);
	return 0;
}
