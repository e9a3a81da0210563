/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What we add to the core's ioctls */
#ifndef SROCE_UVERBS_H
#define SROCE_UVERBS_H

#include <rdma/uverbs_ioctl.h>

extern const struct uapi_definition sroce_uverbs_defs[];

int sroce_query_ucontext(struct ib_ucontext *context, struct uverbs_attr_bundle *attrs);

#endif /* SROCE_UVERBS_H */
