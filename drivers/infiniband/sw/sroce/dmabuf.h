/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* dma-buf: regions of memory that another driver exports */
#ifndef SROCE_DMABUF_H
#define SROCE_DMABUF_H

#include <linux/errno.h>
#include <linux/types.h>

struct sroce_mr;

#ifdef CONFIG_DMA_SHARED_BUFFER
int sroce_dmabuf_create(struct sroce_mr *mr, int fd, u64 offset);
void sroce_dmabuf_destroy(struct sroce_mr *mr);
#else
/* In a kernel without it there are no such regions */
static inline int sroce_dmabuf_create(struct sroce_mr *mr, int fd, u64 offset)
{
	return -EOPNOTSUPP;
}

static inline void sroce_dmabuf_destroy(struct sroce_mr *mr) {}
#endif

#endif /* SROCE_DMABUF_H */
