/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Multicast groups */
#ifndef SROCE_MCAST_H
#define SROCE_MCAST_H

#include <linux/in6.h>
#include <rdma/ib_verbs.h>

struct sroce_qp;
struct net;

int sroce_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int sroce_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
void sroce_mcast_detach_all(struct sroce_qp *qp);
u32 sroce_mcast_find(const struct net *net, const struct in6_addr *addr, u32 after,
		     struct sroce_qp **qp);

#endif /* SROCE_MCAST_H */
