/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* verbs.h - what the tests written against libibverbs share. */
#ifndef SELFTEST_VERBS_H
#define SELFTEST_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Milliseconds after which something counts as never happening. */
#define HANG_MS 60000

#define ALL_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
		    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

struct device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	int gid_index;
};

/* What one end tells the other of its queue pair. */
struct address {
	union ibv_gid gid;
	uint32_t qpn;
	uint32_t psn;
	uint32_t qkey;
};

/* The attributes of a connection that tests vary; see address_default(). */
struct path {
	enum ibv_mtu mtu;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t min_rnr_timer;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	int access;
};

extern const struct path default_path;

/**
 * device_open() - open a device by name and allocate a protection domain
 * @dev: filled in
 * @name: of the device
 * @gid_index: of its port 1
 *
 * Ends the process, with the reason on stderr, if that fails.
 */
void device_open(struct device *dev, const char *name, int gid_index);

/** device_close() - undo device_open() */
void device_close(struct device *dev);

/**
 * qp_to_init() - RESET to INIT
 * @dev: device
 * @qp: of any type; a UD queue pair gets the Q_Key
 * @access: remote access flags
 * @qkey: for UD
 *
 * Return: 0 or an errno
 */
int qp_to_init(struct device *dev, struct ibv_qp *qp, int access, uint32_t qkey);

/** qp_to_rtr() - INIT to RTR, connected to @peer. Return: 0 or an errno */
int qp_to_rtr(struct device *dev, struct ibv_qp *qp, const struct address *peer,
	      const struct path *path);

/** qp_to_rts() - RTR to RTS, sending from PSN @psn. Return: 0 or an errno */
int qp_to_rts(struct ibv_qp *qp, uint32_t psn, const struct path *path);

/** qp_to() - move to a state that needs no other attribute. Return: 0 or an errno */
int qp_to(struct ibv_qp *qp, enum ibv_qp_state state);

/** qp_state() - the state as ibv_query_qp() tells it, or -1 */
int qp_state(struct ibv_qp *qp);

/** ah_new() - address handle for a UD peer, or NULL */
struct ibv_ah *ah_new(struct device *dev, const union ibv_gid *gid);

/**
 * poll_for() - wait for completions
 * @cq: polled
 * @wc: filled in
 * @n: how many to wait for
 * @ms: at most so many milliseconds
 *
 * Return: how many came, or -1 if polling failed
 */
int poll_for(struct ibv_cq *cq, struct ibv_wc *wc, int n, int ms);

/** readable() - wait for a descriptor to become readable, at most @ms milliseconds */
bool readable(int fd, int ms);

/** now_ms() - monotonic clock, in milliseconds */
int64_t now_ms(void);

/** control_listen() - accept one TCP connection on a port; returns the socket */
int control_listen(uint16_t port);

/** control_connect() - connect to control_listen() at an address; returns the socket */
int control_connect(const char *address, uint16_t port);

/** control_send() - send all of it; ends the process if that fails */
void control_send(int fd, const void *data, size_t length);

/** control_receive() - receive just so much; false if the peer has closed */
bool control_receive(int fd, void *data, size_t length);

/** mtu_bytes() - 256 to 4096 */
unsigned int mtu_bytes(enum ibv_mtu mtu);

/** die() - print the message and end the process with status 1 */
__attribute__((format(printf, 1, 2), noreturn))
void die(const char *format, ...);

#endif
