/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The port's performance counters, as management datagrams and sysfs have them */
#ifndef SROCE_PMA_H
#define SROCE_PMA_H

#include <rdma/ib_mad.h>

int sroce_process_mad(struct ib_device *ibdev, int flags, u32 port, const struct ib_wc *wc,
		      const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
		      size_t *out_size, u16 *out_pkey_index);

#endif /* SROCE_PMA_H */
