/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completion queues */
#ifndef SROCE_CQ_H
#define SROCE_CQ_H

#include <linux/hrtimer.h>
#include <rdma/ib_verbs.h>
#include "compat.h"
#include "ring.h"

/**
 * struct sroce_cq - a completion queue
 * @ibcq: the core's part
 * @lock: protects all below; taken inside a queue pair's lock
 * @ring: the completions: struct sroce_cqe for a user, struct ib_wc for a
 *	kernel user
 * @user: which of both
 * @timestamps: the user wants to know when they came
 * @overrun: an entry was lost; nothing is added any more
 * @armed: what a notification was requested for, 0 for none
 * @moderate_count: completions after which the consumer is notified
 * @moderate_us: or after this time, microseconds
 * @gathered: completions of which it was not notified for that reason
 * @timer: when it is, at the latest
 * @wake: the consumer is to be notified, as soon as no queue pair's lock is held
 * @report: likewise the overrun
 * @dead: being destroyed: there is no ring to look at any more
 */
struct sroce_cq {
	struct ib_cq			ibcq;
	spinlock_t			lock;	/* see above */
	struct sroce_ring		ring;
	bool				user;
	bool				timestamps;
	bool				overrun;
	enum ib_cq_notify_flags		armed;
	u16				moderate_count;
	u16				moderate_us;
	u16				gathered;
	struct hrtimer			timer;
	bool				wake;
	bool				report;
	bool				dead;
};

static inline struct sroce_cq *to_scq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct sroce_cq, ibcq);
}

int sroce_modify_cq(struct ib_cq *ibcq, u16 count, u16 period);
int sroce_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int sroce_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);
int sroce_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);

int sroce_cq_add(struct sroce_cq *cq, const struct ib_wc *wc, bool solicited);
bool sroce_cq_caught_up(struct sroce_cq *cq, u32 *seen);
void sroce_cq_notify(struct sroce_cq *cq);
void sroce_cq_forget(struct sroce_cq *cq, const struct ib_qp *qp);

#endif /* SROCE_CQ_H */
