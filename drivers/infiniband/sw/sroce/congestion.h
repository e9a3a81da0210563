/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Congestion: how fast a queue pair may send, and when it tells its peer */
#ifndef SROCE_CONGESTION_H
#define SROCE_CONGESTION_H

#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/types.h>
#include "dcqcn.h"

struct sroce_dev;
struct sroce_qp;

/**
 * struct sroce_congestion - a queue pair's reaction point, and its notification point
 * @limited: there is a rate limit
 * @guessed: the round trip time is not known
 * @dcqcn: how much it may send
 * @departs: when the next packet may leave
 * @timer: fires then
 * @timing: it is running
 * @notify: a CNP is to be sent
 * @notified_at: when one was sent last
 *
 * Protected by the queue pair's lock.
 */
struct sroce_congestion {
	bool			limited;
	bool			guessed;
	struct sroce_dcqcn	dcqcn;
	ktime_t			departs;
	struct hrtimer		timer;
	bool			timing;
	bool			notify;
	ktime_t			notified_at;
};

void sroce_congestion_setup(struct sroce_dev *dev);
void sroce_congestion_init(struct sroce_qp *qp);
void sroce_congestion_exit(struct sroce_qp *qp);
void sroce_congestion_reset(struct sroce_qp *qp);
void sroce_congestion_seen(struct sroce_qp *qp);
void sroce_congestion_notify(struct sroce_qp *qp);
void sroce_congestion_notified(struct sroce_qp *qp);
u32 sroce_congestion_window(const struct sroce_qp *qp);
void sroce_congestion_full(struct sroce_qp *qp);
bool sroce_congestion_wait(struct sroce_qp *qp);
void sroce_congestion_sent(struct sroce_qp *qp, u32 bytes);
ktime_t sroce_congestion_departure(struct sroce_qp *qp);

#endif /* SROCE_CONGESTION_H */
