/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Extended reliable connections: a request names the SRQ that it is for */
#ifndef SROCE_XRC_H
#define SROCE_XRC_H

#include <rdma/ib_verbs.h>

struct sroce_qp;
struct sroce_srq;

/**
 * struct sroce_xrcd - an XRC domain: the SRQs that a target queue pair may serve
 * @ibxrcd: the core's part
 */
struct sroce_xrcd {
	struct ib_xrcd		ibxrcd;
};

int sroce_alloc_xrcd(struct ib_xrcd *xrcd, struct ib_udata *udata);
int sroce_dealloc_xrcd(struct ib_xrcd *xrcd, struct ib_udata *udata);

int sroce_xrc_publish(struct sroce_srq *srq);
void sroce_xrc_unpublish(struct sroce_srq *srq);
bool sroce_xrc_enter(struct sroce_qp *qp, u32 number);
void sroce_xrc_leave(struct sroce_srq *srq);

#endif /* SROCE_XRC_H */
