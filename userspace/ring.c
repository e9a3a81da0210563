// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory of rings: the kernel's, mapped; or what a parent domain's allocator gave */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "sroce.h"

/* The unit of memory that can be lent to the kernel, whatever the page size */
#define RING_ALIGN	4096ul

static size_t round_up_pow2(size_t n)
{
	size_t p = 1;

	while (p < n)
		p <<= 1;
	return p;
}

/* The size of a ring, as the kernel computes it */
static size_t ring_size(uint32_t elements, size_t element_size)
{
	size_t slots = round_up_pow2((size_t)elements + 1);
	size_t size = sizeof(struct sroce_queue) + slots * round_up_pow2(element_size);

	return (size + RING_ALIGN - 1) & ~(RING_ALIGN - 1);
}

/**
 * sroce_ring_reserve - allocate a ring's memory, where that is ours to do
 * @ring: ring, zeroed
 * @pd: domain that it is created in, or NULL
 * @type: what the allocator is told
 * @elements: how many the ring must hold
 * @element_size: bytes of one
 * @user: where to say what the kernel is to use; its length is 0 when the kernel
 *	is to allocate the memory
 *
 * Return: 0 or an errno.
 */
int sroce_ring_reserve(struct sroce_ring *ring, struct sroce_pd *pd,
		       enum sroce_resource_type type, uint32_t elements, size_t element_size,
		       struct sroce_user_ring *user)
{
	size_t size = ring_size(elements, element_size);
	void *memory;

	memset(user, 0, sizeof(*user));
	if (!pd || !pd->alloc || !(to_scontext(pd->ibv.context)->ext & SROCE_EXT_USER_RINGS))
		return 0;
	memory = pd->alloc(&pd->ibv, pd->pd_context, size, RING_ALIGN, type);
	if (memory == IBV_ALLOCATOR_USE_DEFAULT)
		return 0;
	if (!memory)
		return errno ?: ENOMEM;
	/* a child must not get the pages that the kernel has pinned */
	if (ibv_dontfork_range(memory, size)) {
		int err = errno ?: ENOMEM;

		pd->free(&pd->ibv, pd->pd_context, memory, type);
		return err;
	}
	atomic_fetch_add(&pd->uses, 1);
	ring->queue = memory;
	ring->size = size;
	ring->pd = pd;
	ring->type = type;
	user->addr = (uintptr_t)memory;
	user->length = size;
	return 0;
}

/**
 * sroce_ring_attach - begin to use a ring that the kernel has set up
 * @ring: ring
 * @context: its device
 * @mi: where it is, unless its memory is ours
 *
 * Return: 0 or an errno.
 */
int sroce_ring_attach(struct sroce_ring *ring, struct ibv_context *context,
		      const struct sroce_mmap_info *mi)
{
	if (!ring->queue) {
		void *memory = mmap(NULL, mi->size, PROT_READ | PROT_WRITE, MAP_SHARED,
				    context->cmd_fd, mi->offset);

		if (memory == MAP_FAILED)
			return errno;
		ring->queue = memory;
		ring->size = mi->size;
	}
	ring->mask = ring->queue->index_mask;
	ring->shift = ring->queue->log2_elem_size;
	ring->index = 0;
	ring->other = 0;
	return 0;
}

/**
 * sroce_ring_release - give a ring's memory back
 * @ring: ring that the kernel does not use any more; one without memory is left alone
 */
void sroce_ring_release(struct sroce_ring *ring)
{
	if (!ring->queue)
		return;
	if (ring->pd) {
		ibv_dofork_range(ring->queue, ring->size);
		ring->pd->free(&ring->pd->ibv, ring->pd->pd_context, ring->queue, ring->type);
		atomic_fetch_sub(&ring->pd->uses, 1);
	} else {
		munmap(ring->queue, ring->size);
	}
	ring->queue = NULL;
}
