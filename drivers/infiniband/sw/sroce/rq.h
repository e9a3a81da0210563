/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Receive work requests: the receive queue of a queue pair or of an SRQ */
#ifndef SROCE_RQ_H
#define SROCE_RQ_H

#include <rdma/ib_verbs.h>
#include "mr.h"
#include "ring.h"

/**
 * struct sroce_rq - a queue of receive work requests
 * @ring: the work requests, struct sroce_recv_wqe
 * @max_sge: entries of a scatter list at the most
 * @lock: protects the consumer's side and, for a kernel user, the producer's;
 *	taken inside a queue pair's lock
 */
struct sroce_rq {
	struct sroce_ring	ring;
	u32			max_sge;
	spinlock_t		lock;	/* see above */
};

/**
 * struct sroce_recv - a receive work request taken out of its queue
 * @valid: there is one
 * @wr_id: the user's name for it
 * @sgl: where the message goes
 */
struct sroce_recv {
	bool			valid;
	u64			wr_id;
	struct sroce_sgl	*sgl;
};

int sroce_rq_create(struct sroce_rq *rq, struct ib_udata *udata,
		    const struct sroce_user_ring *user, u32 *max_wr, u32 max_sge,
		    struct sroce_mmap_info *mi);
void sroce_rq_destroy(struct sroce_rq *rq);
u32 sroce_rq_available(struct sroce_rq *rq);
int sroce_rq_take(struct sroce_rq *rq, struct sroce_recv *recv);
int sroce_rq_post(struct sroce_rq *rq, const struct ib_recv_wr *wr);
struct sroce_sgl *sroce_sgl_alloc(u32 max_sge);

#endif /* SROCE_RQ_H */
