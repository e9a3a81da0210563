/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Counters of their own that queue pairs are bound to: "rdma statistic qp" */
#ifndef SROCE_COUNTER_H
#define SROCE_COUNTER_H

#include <rdma/ib_verbs.h>

struct rdma_hw_stats *sroce_counter_alloc_stats(struct rdma_counter *counter);
int sroce_counter_update_stats(struct rdma_counter *counter);
int sroce_counter_dealloc(struct rdma_counter *counter);

#endif /* SROCE_COUNTER_H */
