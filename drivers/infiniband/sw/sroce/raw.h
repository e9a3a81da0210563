/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Raw packet queue pairs: whole Ethernet frames, out and in */
#ifndef SROCE_RAW_H
#define SROCE_RAW_H

#include <linux/skbuff.h>
#include <linux/types.h>

struct sroce_dev;
struct sroce_qp;

bool sroce_raw_possible(const struct sroce_dev *dev);
bool sroce_raw_length_ok(const struct sroce_dev *dev, u32 length);
struct sk_buff *sroce_raw_alloc(u32 length);
bool sroce_raw_finish(const struct sroce_dev *dev, struct sk_buff *skb, bool checksums);
void sroce_raw_transmit(struct sroce_dev *dev, struct sk_buff *skb);
void sroce_raw_receive(struct sroce_qp *qp, struct sk_buff *frames, int wc_flags);

#endif /* SROCE_RAW_H */
