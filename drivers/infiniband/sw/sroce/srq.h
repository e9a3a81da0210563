/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Shared receive queues */
#ifndef SROCE_SRQ_H
#define SROCE_SRQ_H

#include <linux/completion.h>
#include <linux/kref.h>
#include "rq.h"

/**
 * struct sroce_srq - a shared receive queue
 * @ibsrq: the core's part
 * @rq: the queue; its lock protects what follows too
 * @limit: send an event when fewer work requests than this are left; 0: do not
 * @max_wr: as asked, or larger
 * @number: SRQ number
 * @ref: for XRC: the verbs object's, one for each queue pair at work on it
 * @gone: completed by the last reference
 * @limit_reached: the event is to be sent, as soon as no lock is held
 * @dead: being destroyed: there is no ring to look at any more
 */
struct sroce_srq {
	struct ib_srq		ibsrq;
	struct sroce_rq		rq;
	u32			limit;
	u32			max_wr;
	u32			number;
	struct kref		ref;
	struct completion	gone;
	bool			limit_reached;
	bool			dead;
};

static inline struct sroce_srq *to_ssrq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct sroce_srq, ibsrq);
}

int sroce_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata);
int sroce_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		     struct ib_udata *udata);
int sroce_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int sroce_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int sroce_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad_wr);

int sroce_srq_take(struct sroce_srq *srq, struct sroce_recv *recv);
void sroce_srq_notify(struct sroce_srq *srq);

#endif /* SROCE_SRQ_H */
