/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The requester's sending side */
#ifndef SROCE_SEND_H
#define SROCE_SEND_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

/* PSNs that may be under way; the largest distance that can be told from a past one */
#define SROCE_PSN_WINDOW	4194304

struct sroce_qp;
struct sroce_swqe;
struct sroce_sgl;

int sroce_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad_wr);
int sroce_send_prepare(struct sroce_qp *qp);
void sroce_send_run(struct sroce_qp *qp);
int sroce_send_load_sgl(struct sroce_qp *qp, u32 slot, struct sroce_sgl *sgl);

#endif /* SROCE_SEND_H */
