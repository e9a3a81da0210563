/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The responder */
#ifndef SROCE_RESPOND_H
#define SROCE_RESPOND_H

#include <linux/types.h>

struct sroce_qp;
struct sroce_packet;

void sroce_respond_packet(struct sroce_qp *qp, const struct sroce_packet *packet);
void sroce_respond_frame(struct sroce_qp *qp, const void *frame, u32 length, int wc_flags);
void sroce_respond_flush(struct sroce_qp *qp);

#endif /* SROCE_RESPOND_H */
