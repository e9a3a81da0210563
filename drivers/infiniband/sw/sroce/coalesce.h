/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Coalescing of doorbells: small requests of a user who does not wait go together */
#ifndef SROCE_COALESCE_H
#define SROCE_COALESCE_H

#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/types.h>

struct sroce_qp;

/**
 * struct sroce_coalesce - what is known of how a user posts
 * @timer: sends what a batch waits for in vain
 * @timing: it is running
 * @ran: when the requester last ran, while there are batches; else when the first
 *	doorbell of @streak rang
 * @wait: how long a batch may take to fill, nanoseconds
 * @batch: requests that go together; 0 when every doorbell sends
 * @full: batches that were full, in a row
 * @streak: doorbells in a row whose caller did not wait for what he had posted
 * @patience: how many of them make batches worth while
 * @completed: producer of the send CQ at the last doorbell
 * @msn: messages that had been received then
 *
 * Protected by the queue pair's lock.
 */
struct sroce_coalesce {
	struct hrtimer	timer;
	bool		timing;
	ktime_t		ran;
	u32		wait;
	u32		batch;
	u32		full;
	u32		streak;
	u32		patience;
	u32		completed;
	u32		msn;
};

void sroce_coalesce_init(struct sroce_qp *qp);
void sroce_coalesce_exit(struct sroce_qp *qp);
bool sroce_coalesce_doorbell(struct sroce_qp *qp);
bool sroce_coalesce_settle(struct sroce_qp *qp);

/**
 * sroce_coalesce_stop - no batches any more, until they seem worth while again
 * @c: a queue pair's, which is locked
 */
static inline void sroce_coalesce_stop(struct sroce_coalesce *c)
{
	c->batch = 0;
	c->streak = 0;
}

#endif /* SROCE_COALESCE_H */
