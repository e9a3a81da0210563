/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The requester's receiving side */
#ifndef SROCE_COMPLETE_H
#define SROCE_COMPLETE_H

#include <rdma/ib_verbs.h>

struct sroce_qp;
struct sroce_packet;

void sroce_complete_packet(struct sroce_qp *qp, const struct sroce_packet *packet);
/* How long a requester waits for memory that is being brought, microseconds */
#define SROCE_PAGES_US	640

void sroce_complete_seek(struct sroce_qp *qp, u32 psn);
void sroce_complete_fail(struct sroce_qp *qp, enum ib_wc_status status);
void sroce_complete_done(struct sroce_qp *qp);
void sroce_complete_flush(struct sroce_qp *qp);

#endif /* SROCE_COMPLETE_H */
