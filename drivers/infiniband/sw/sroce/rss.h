/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Receive side scaling: frames of one raw packet queue pair divided among receive queues */
#ifndef SROCE_RSS_H
#define SROCE_RSS_H

#include <rdma/ib_verbs.h>

struct sk_buff;
struct sroce_flow_key;
struct sroce_qp;

#define SROCE_MAX_RWQ_TABLE	128
#define SROCE_RSS_KEY_BYTES	40

struct sroce_rwq_table {
	struct ib_rwq_ind_table	ibtable;
};

int sroce_rss_create(struct sroce_qp *qp, struct ib_rwq_ind_table *table, struct ib_udata *udata);
void sroce_rss_receive(struct sroce_qp *qp, const struct sroce_flow_key *key,
		       struct sk_buff *frames, int wc_flags);

struct ib_wq *sroce_create_wq(struct ib_pd *pd, struct ib_wq_init_attr *init,
			      struct ib_udata *udata);
int sroce_modify_wq(struct ib_wq *ibwq, struct ib_wq_attr *attr, u32 mask, struct ib_udata *udata);
int sroce_destroy_wq(struct ib_wq *ibwq, struct ib_udata *udata);
int sroce_create_rwq_table(struct ib_rwq_ind_table *ibtable,
			   struct ib_rwq_ind_table_init_attr *init, struct ib_udata *udata);
int sroce_destroy_rwq_table(struct ib_rwq_ind_table *ibtable);

#endif /* SROCE_RSS_H */
