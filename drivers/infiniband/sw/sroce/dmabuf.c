// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * dma-buf: regions of memory that another driver exports.  The exporter maps its memory
 * for us, in one piece, as long as the region lives.  One that can move memory is asked
 * not to; if it must all the same (its device is reset or goes), the region is revoked.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/iosys-map.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>
#include "compat.h"
#include "dmabuf.h"
#include "mr.h"

SROCE_IMPORT_DMA_BUF;

/**
 * struct sroce_dmabuf - what a region has for it
 * @buf: the memory, with a reference
 * @attach: tells us when it must go; NULL if it never does
 * @map: where the exporter mapped it
 */
struct sroce_dmabuf {
	struct dma_buf			*buf;
	struct dma_buf_attachment	*attach;
	struct iosys_map		map;
};

/* On return nobody touches the memory, until the region is deregistered */
static void sroce_dmabuf_revoke(struct dma_buf_attachment *attach)
{
	struct sroce_mr *mr = attach->importer_priv;

	spin_lock_bh(&mr->lock);
	mr->valid = false;
	spin_unlock_bh(&mr->lock);
}

static const struct dma_buf_attach_ops sroce_dmabuf_attach_ops = {
	.allow_peer2peer = true,
	SROCE_DMABUF_INVALIDATE = sroce_dmabuf_revoke,
};

/*
 * To be pinned, memory may have to move, of which everybody is told, we too: what counts is
 * what comes after that.  Whoever tells has the reservation lock.
 */
static int sroce_dmabuf_pin(struct dma_buf_attachment *attach, struct sroce_mr *mr)
{
	int err;

	dma_resv_lock(attach->dmabuf->resv, NULL);
	err = dma_buf_pin(attach);
	spin_lock_bh(&mr->lock);
	mr->valid = !err;
	spin_unlock_bh(&mr->lock);
	dma_resv_unlock(attach->dmabuf->resv);
	return err;
}

/* Has the memory stay where it is */
static int sroce_dmabuf_attach(struct sroce_dmabuf *d, struct sroce_mr *mr)
{
	int err;

	if (!dma_buf_is_dynamic(d->buf)) {	/* it always does */
		mr->valid = true;
		return 0;
	}
	d->attach = dma_buf_dynamic_attach(d->buf, &mr->ibmr.device->dev,
					   &sroce_dmabuf_attach_ops, mr);
	if (IS_ERR(d->attach))
		return PTR_ERR(d->attach);
	err = sroce_dmabuf_pin(d->attach, mr);
	if (err)
		dma_buf_detach(d->buf, d->attach);
	return err;
}

static void sroce_dmabuf_detach(struct sroce_dmabuf *d)
{
	if (!d->attach)
		return;
	dma_resv_lock(d->buf->resv, NULL);
	dma_buf_unpin(d->attach);
	dma_resv_unlock(d->buf->resv);
	dma_buf_detach(d->buf, d->attach);
}

static int sroce_dmabuf_map(struct sroce_dmabuf *d)
{
	int err = sroce_dma_buf_vmap(d->buf, &d->map);

	if (err == -EINVAL)	/* its word for not being able to */
		err = -EOPNOTSUPP;
	if (err)
		return err;
	if (d->map.is_iomem) {
		err = -EOPNOTSUPP;
		goto err_unmap;
	}
	err = dma_buf_begin_cpu_access(d->buf, DMA_BIDIRECTIONAL);
	if (err)
		goto err_unmap;
	return 0;

err_unmap:
	sroce_dma_buf_vunmap(d->buf, &d->map);
	return err;
}

static int sroce_dmabuf_take(struct sroce_dmabuf *d, struct sroce_mr *mr, u64 offset)
{
	int err;

	if (offset > d->buf->size || mr->length > d->buf->size - offset)
		return -EINVAL;
	err = sroce_dmabuf_attach(d, mr);
	if (err)
		return err;
	err = sroce_dmabuf_map(d);
	if (err) {
		sroce_dmabuf_detach(d);
		return err;
	}
	mr->chunks[0] = d->map.vaddr + offset;
	mr->num_chunks = 1;
	return 0;
}

/**
 * sroce_dmabuf_create - make a region one of exported memory
 * @mr: region, unpublished, with its range and permissions, and room for one chunk
 * @fd: of the dma-buf, in the caller's process
 * @offset: of the region's first byte in it
 *
 * Context: process, sleeps.
 * Return: 0; -EBADF or -EINVAL for no dma-buf, -EINVAL for a range beyond its end,
 * -EOPNOTSUPP for memory that CPUs cannot reach, else what the exporter said.
 */
int sroce_dmabuf_create(struct sroce_mr *mr, int fd, u64 offset)
{
	struct sroce_dmabuf *d = kzalloc(sizeof(*d), GFP_KERNEL_ACCOUNT);
	int err;

	if (!d)
		return -ENOMEM;
	d->buf = dma_buf_get(fd);
	if (IS_ERR(d->buf)) {
		err = PTR_ERR(d->buf);
		goto err_free;
	}
	err = sroce_dmabuf_take(d, mr, offset);
	if (err)
		goto err_put;
	mr->dmabuf = d;
	return 0;

err_put:
	dma_buf_put(d->buf);
err_free:
	kfree(d);
	return err;
}

/**
 * sroce_dmabuf_destroy - the reverse of sroce_dmabuf_create()
 * @mr: region that nobody finds any more
 *
 * Context: process, sleeps.
 */
void sroce_dmabuf_destroy(struct sroce_mr *mr)
{
	struct sroce_dmabuf *d = mr->dmabuf;

	dma_buf_end_cpu_access(d->buf, DMA_BIDIRECTIONAL);
	sroce_dma_buf_vunmap(d->buf, &d->map);
	sroce_dmabuf_detach(d);
	dma_buf_put(d->buf);
	kfree(d);
	mr->dmabuf = NULL;
}
