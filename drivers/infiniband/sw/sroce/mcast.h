/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Multicast groups */
#ifndef SROCE_MCAST_H
#define SROCE_MCAST_H

#include <rdma/ib_verbs.h>

struct net_device;
struct sroce_frame;
struct sroce_qp;

int sroce_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int sroce_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
void sroce_mcast_detach_all(struct sroce_qp *qp);
void sroce_mcast_refresh(void);
void sroce_mcast_netdev_event(struct net_device *netdev, unsigned long event);
void sroce_mcast_exit(void);
u32 sroce_mcast_find(struct sroce_frame *frame, u32 after, struct sroce_qp **qp);
void sroce_mcast_count(const struct sroce_frame *frame);

#endif /* SROCE_MCAST_H */
