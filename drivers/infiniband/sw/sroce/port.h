/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The port: what the net device below says about it */
#ifndef SROCE_PORT_H
#define SROCE_PORT_H

#include <rdma/ib_verbs.h>

struct sroce_dev;

int sroce_port_check_netdev(struct net_device *netdev);
int sroce_port_bind(struct sroce_dev *dev, struct net_device *netdev);
void sroce_port_announce(struct sroce_dev *dev);
void sroce_port_unbind(struct sroce_dev *dev);
void sroce_port_orphan(struct sroce_dev *dev);
void sroce_port_address_changed(const struct net_device *netdev);
int sroce_port_notifier_init(void);
void sroce_port_notifier_exit(void);

enum ib_mtu sroce_port_mtu(struct sroce_dev *dev);
u16 sroce_port_pkey(struct sroce_dev *dev, u16 index);
bool sroce_port_pkey_match(struct sroce_dev *dev, u16 pkey, u16 *index);
bool sroce_port_has_netdev(const struct sroce_dev *dev, struct net_device *netdev);

struct net_device *sroce_get_netdev(struct ib_device *ibdev, u32 port);
int sroce_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr);
int sroce_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey);
int sroce_get_port_immutable(struct ib_device *ibdev, u32 port, struct ib_port_immutable *imm);
enum rdma_link_layer sroce_get_link_layer(struct ib_device *ibdev, u32 port);

#endif /* SROCE_PORT_H */
