/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Addresses of net devices that the RDMA core does not follow */
#ifndef SROCE_ADDRESS_H
#define SROCE_ADDRESS_H

struct net_device;
struct sroce_dev;

void sroce_address_setup(struct sroce_dev *dev);
void sroce_address_changed(struct sroce_dev *dev, const struct net_device *netdev);
int sroce_address_init(void);
void sroce_address_exit(void);

#endif /* SROCE_ADDRESS_H */
