// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * dmabuf - regions of memory that the kernel exports as a dma-buf
 *
 * usage: dmabuf DEVICE_A GID_INDEX_A DEVICE_B GID_INDEX_B [NAME]
 *
 * The memory is B's.  What comes into it is looked at through the exporter's own mapping.
 */
#define _GNU_SOURCE
#include "../errors/pair.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define BUFFER	(256 * 1024)	/* bytes of a dma-buf */
#define PAGE	4096

/**
 * struct exported - a dma-buf
 * @fd: its descriptor
 * @seen: where the process sees its memory
 */
struct exported {
	int fd;
	uint8_t *seen;
};

/* An exporter: makes a dma-buf, fails the test point, or skips it where there is no such */
struct exporter {
	const char *name;
	bool (*export)(struct exported *e);
};

/* Memory of a memfd: seen through a mapping of that */
static bool export_udmabuf(struct exported *e)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = BUFFER };
	int memory, device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);

	if (device < 0) {
		tap_skip("no /dev/udmabuf in this kernel");
		return false;
	}
	memory = memfd_create("dmabuf", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	create.memfd = memory;
	if (memory < 0 || ftruncate(memory, BUFFER) || fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK)) {
		close(device);
		return fail("memfd: %s", strerror(errno));
	}
	e->fd = ioctl(device, UDMABUF_CREATE, &create);
	if (e->fd < 0)
		fail("UDMABUF_CREATE: %s", strerror(errno));
	e->seen = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	close(memory);
	close(device);
	expect(e->fd >= 0 && e->seen != MAP_FAILED, "no memory");
	return true;
}

/* Memory of a heap: seen through a mapping of the dma-buf */
static bool export_heap(struct exported *e)
{
	struct dma_heap_allocation_data data = { .len = BUFFER, .fd_flags = O_RDWR | O_CLOEXEC };
	int heap = open("/dev/dma_heap/system", O_RDONLY | O_CLOEXEC);
	int err;

	if (heap < 0) {
		tap_skip("no /dev/dma_heap/system in this kernel");
		return false;
	}
	err = ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data);
	close(heap);
	expect(!err, "DMA_HEAP_IOCTL_ALLOC: %s", strerror(errno));
	e->fd = data.fd;
	e->seen = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_SHARED, e->fd, 0);
	expect(e->seen != MAP_FAILED, "map: %s", strerror(errno));
	return true;
}

static const struct exporter exporters[] = {
	{ "udmabuf", export_udmabuf },
	{ "dma-heap", export_heap },
};

static void exported_close(struct exported *e)
{
	if (e->seen && e->seen != MAP_FAILED)
		munmap(e->seen, BUFFER);
	if (e->fd >= 0)
		close(e->fd);
	*e = (struct exported) { .fd = -1 };
}

/* Tells the exporter that this process looks at the memory, or has done so */
static bool look(const struct exported *e, uint64_t when)
{
	struct dma_buf_sync sync = { .flags = when | DMA_BUF_SYNC_RW };

	expect(!ioctl(e->fd, DMA_BUF_IOCTL_SYNC, &sync), "DMA_BUF_IOCTL_SYNC: %s",
	       strerror(errno));
	return true;
}

static uint8_t pattern(uint32_t seed, uint32_t i)
{
	return (seed * 2654435761u + i * 40503u) >> 13;
}

static void fill(uint8_t *memory, uint32_t seed, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		memory[i] = pattern(seed, i);
}

static bool holds(const uint8_t *memory, uint32_t seed, uint32_t length, const char *what)
{
	for (uint32_t i = 0; i < length; i++)
		expect(memory[i] == pattern(seed, i), "%s: byte %u is %#x, expected %#x", what, i,
		       memory[i], pattern(seed, i));
	return true;
}

/* a's request to an address of b's */
static int post(struct pair *p, enum ibv_wr_opcode opcode, uint32_t length, uint64_t remote,
		uint32_t rkey)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)p->a.memory, .length = length, .lkey = p->a.mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1,
	};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 5;
	} else {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = rkey;
	}
	return ibv_post_send(p->a.qp, &wr, &bad);
}

static bool done(struct pair *p, enum ibv_wr_opcode opcode, uint32_t length, uint64_t remote,
		 uint32_t rkey)
{
	expect(!post(p, opcode, length, remote, rkey), "post");
	return completes(p->a.send_cq, 1, IBV_WC_SUCCESS);
}

#define OFFSET	(3 * PAGE + 40)		/* of the region in the dma-buf */
#define IOVA	(0x7700000000ull + 40)	/* of its first byte */
#define LENGTH	(BUFFER - OFFSET - 60)

/* WRITE, READ and an atomic, to memory that only the dma-buf's own mapping shows */
static bool moved(struct pair *p, struct exported *e, struct ibv_mr *mr)
{
	const uint32_t sizes[] = { 1, 7, 4096, 50001, SIZE };
	uint64_t word = 0x1122334455667788ull, was;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint32_t at = i * 1013, n = sizes[i];

		fill(p->a.memory, i, n);
		if (!done(p, IBV_WR_RDMA_WRITE, n, IOVA + at, mr->rkey) ||
		    !look(e, DMA_BUF_SYNC_START) ||
		    !holds(e->seen + OFFSET + at, i, n, "written"))
			return false;
		fill(e->seen + OFFSET + at, i + 100, n);
		if (!look(e, DMA_BUF_SYNC_END) ||
		    !done(p, IBV_WR_RDMA_READ, n, IOVA + at, mr->rkey) ||
		    !holds(p->a.memory, i + 100, n, "read"))
			return false;
	}
	memcpy(e->seen + OFFSET + 8000, &word, sizeof(word));
	if (!done(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, IOVA + 8000, mr->rkey))
		return false;
	memcpy(&was, p->a.memory, sizeof(was));
	expect(was == word, "the atomic found %#llx", (unsigned long long)was);
	memcpy(&was, e->seen + OFFSET + 8000, sizeof(was));
	expect(was == word + 5, "the atomic left %#llx", (unsigned long long)was);
	return true;
}

/* SENDs out of the region and into it */
static bool sent(struct pair *p, struct exported *e, struct ibv_mr *mr)
{
	struct ibv_sge sge = { .addr = IOVA + 100, .length = 20000, .lkey = mr->lkey };
	struct ibv_recv_wr *bad_recv, recv = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 };
	struct ibv_send_wr *bad, send = {
		.wr_id = 3, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1,
	};

	expect(!ibv_post_recv(p->b.qp, &recv, &bad_recv), "post a receive");
	fill(p->a.memory, 7, 20000);
	expect(!side_send(&p->a, 1, 20000), "post a send");
	if (!completes(p->a.send_cq, 1, IBV_WC_SUCCESS) ||
	    !completes(p->b.recv_cq, 2, IBV_WC_SUCCESS) ||
	    !holds(e->seen + OFFSET + 100, 7, 20000, "received"))
		return false;
	fill(e->seen + OFFSET + 100, 8, 20000);
	expect(!side_recv(&p->a, 4, 20000), "post a receive");
	expect(!ibv_post_send(p->b.qp, &send, &bad), "post a send");
	return completes(p->b.send_cq, 3, IBV_WC_SUCCESS) &&
	       completes(p->a.recv_cq, 4, IBV_WC_SUCCESS) &&
	       holds(p->a.memory, 8, 20000, "sent");
}

/* The region keeps the memory when nobody else does */
static bool kept(struct pair *p, struct exported *e, struct ibv_mr *mr)
{
	fill(e->seen + OFFSET, 55, 5000);
	exported_close(e);
	return done(p, IBV_WR_RDMA_READ, 5000, IOVA, mr->rkey) &&
	       holds(p->a.memory, 55, 5000, "read after the dma-buf was closed");
}

/* One byte beyond the region, which is inside the dma-buf */
static bool beyond(struct pair *p, struct exported *e, struct ibv_mr *mr)
{
	(void)e;
	expect(!post(p, IBV_WR_RDMA_WRITE, 100, IOVA + LENGTH - 99, mr->rkey), "post");
	return completes(p->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
}

static bool gone(struct pair *p, struct exported *e, struct ibv_mr *mr)
{
	struct ibv_mr *other = ibv_reg_dmabuf_mr(p->b.dev.pd, 0, PAGE, 0, e->fd, ALL_ACCESS);
	uint32_t rkey;

	(void)mr;
	expect(other, "register: %s", strerror(errno));
	rkey = other->rkey;
	if (!done(p, IBV_WR_RDMA_WRITE, 10, 0, rkey))
		return false;
	expect(!ibv_dereg_mr(other), "deregister");
	expect(!post(p, IBV_WR_RDMA_WRITE, 10, 0, rkey), "post");
	return completes(p->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
}

static bool readable_only(struct pair *p, struct exported *e, struct ibv_mr *mr)
{
	struct ibv_mr *reads = ibv_reg_dmabuf_mr(p->b.dev.pd, OFFSET, LENGTH, IOVA, e->fd,
						 IBV_ACCESS_REMOTE_READ);
	bool good;

	(void)mr;
	expect(reads, "register: %s", strerror(errno));
	good = done(p, IBV_WR_RDMA_READ, 100, IOVA, reads->rkey);
	if (good && post(p, IBV_WR_RDMA_WRITE, 100, IOVA, reads->rkey))
		good = fail("post");
	good = good && completes(p->a.send_cq, 1, IBV_WC_REM_ACCESS_ERR);
	expect(!ibv_dereg_mr(reads), "deregister");
	return good;
}

static bool refused(struct pair *p, uint64_t offset, size_t length, uint64_t iova, int fd,
		    int error, const char *what)
{
	struct ibv_mr *mr = ibv_reg_dmabuf_mr(p->b.dev.pd, offset, length, iova, fd, ALL_ACCESS);

	if (mr) {
		ibv_dereg_mr(mr);
		return fail("%s: registered", what);
	}
	expect(errno == error, "%s: %s, expected %s", what, strerror(errno), strerror(error));
	return true;
}

static bool refusals(struct pair *p, struct exported *e, struct ibv_mr *mr)
{
	int file = open("/dev/null", O_RDWR | O_CLOEXEC);
	bool good;

	(void)mr;
	good = refused(p, 0, BUFFER + 1, 0, e->fd, EINVAL, "a byte too many") &&
	       refused(p, PAGE, BUFFER, 0, e->fd, EINVAL, "a page too far") &&
	       refused(p, BUFFER + PAGE, PAGE, 0, e->fd, EINVAL, "beyond the end") &&
	       refused(p, -PAGE, 2 * PAGE, 0, e->fd, EINVAL, "an offset that wraps") &&
	       refused(p, 8, PAGE, 16, e->fd, EINVAL, "another place in the page") &&
	       refused(p, 0, PAGE, 0, file, EINVAL, "no dma-buf") &&
	       refused(p, 0, PAGE, 0, 9999, EBADF, "no file");
	close(file);
	return good && talks(p);
}

static void with_region(struct pair *p, const struct exporter *from, const char *name,
			bool (*body)(struct pair *p, struct exported *e, struct ibv_mr *mr))
{
	struct exported e = { .fd = -1 };
	struct ibv_mr *mr = NULL;

	if (!tap_begin("%s: %s", from->name, name))
		return;
	if (from->export(&e) && pair_up(p, IBV_QPT_RC)) {
		mr = ibv_reg_dmabuf_mr(p->b.dev.pd, OFFSET, LENGTH, IOVA, e.fd, ALL_ACCESS);
		if (mr)
			body(p, &e, mr);
		else
			fail("register: %s", strerror(errno));
	}
	if (mr && ibv_dereg_mr(mr))
		fail("deregister: %s", strerror(errno));
	exported_close(&e);
	pair_stop(p);
	tap_end();
}

int main(int argc, char **argv)
{
	static struct pair p;
	int gids[2];

	if (argc < 5)
		die("usage: dmabuf DEVICE_A GID_INDEX_A DEVICE_B GID_INDEX_B [NAME]");
	gids[0] = atoi(argv[2]);
	gids[1] = atoi(argv[4]);
	tap_only = argv[5];
	pair_open(&p, (char *[]) { argv[1], argv[3] }, gids);
	for (size_t i = 0; i < sizeof(exporters) / sizeof(*exporters); i++) {
		const struct exporter *from = &exporters[i];

		with_region(&p, from, "WRITE, READ and atomics, every byte", moved);
		with_region(&p, from, "SENDs from it and into it", sent);
		with_region(&p, from, "the region keeps what all others have closed", kept);
		with_region(&p, from, "a byte beyond the region is refused", beyond);
		with_region(&p, from, "nothing reaches it after deregistration", gone);
		with_region(&p, from, "a region to be read is not written", readable_only);
		with_region(&p, from, "what is no dma-buf, or not in it, is refused", refusals);
	}
	return tap_plan();
}
