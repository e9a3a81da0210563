/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What "rdma -dd resource show" tells of our objects beyond what the core knows */
#ifndef SROCE_RESTRACK_H
#define SROCE_RESTRACK_H

#include <rdma/ib_verbs.h>

int sroce_fill_qp(struct sk_buff *msg, struct ib_qp *ibqp);
int sroce_fill_cq(struct sk_buff *msg, struct ib_cq *ibcq);
int sroce_fill_mr(struct sk_buff *msg, struct ib_mr *ibmr);
int sroce_fill_srq(struct sk_buff *msg, struct ib_srq *ibsrq);

#endif /* SROCE_RESTRACK_H */
