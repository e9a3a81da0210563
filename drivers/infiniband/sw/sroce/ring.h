/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Rings: the send, receive and completion queues.  For a user's queue the ring
 * is in memory that the user maps and can write at any time: its indices are
 * masked when read, its geometry is kept in struct sroce_ring, and what is in
 * an element is copied once before it is believed.
 */
#ifndef SROCE_RING_H
#define SROCE_RING_H

#include <rdma/ib_verbs.h>
#include <rdma/sroce-abi.h>

struct ib_umem;
struct sroce_ring_map;

/**
 * struct sroce_ring - the kernel's own view of a ring
 * @queue: the shared part
 * @map: what lets the user map it, NULL for a ring that he need not map
 * @umem: the user's own memory that it is in, else NULL
 * @mask: number of elements less one
 * @index: the kernel's side of the ring (consumer of work requests, producer
 *	of completions), always masked
 * @shift: log2 of an element's size
 *
 * Whoever uses a ring has a lock of its own that protects @index.
 */
struct sroce_ring {
	struct sroce_queue	*queue;
	struct sroce_ring_map	*map;
	struct ib_umem		*umem;
	u32			mask;
	u32			index;
	u8			shift;
};

int sroce_ring_create(struct sroce_ring *ring, struct ib_udata *udata,
		      const struct sroce_user_ring *user, u32 *elements, u32 element_size,
		      struct sroce_mmap_info *mi);
u32 sroce_ring_ext(struct ib_udata *udata);
void sroce_ring_destroy(struct sroce_ring *ring);

static inline void *sroce_ring_element(const struct sroce_ring *ring, u32 index)
{
	return ring->queue->data + ((size_t)(index & ring->mask) << ring->shift);
}

static inline u32 sroce_ring_next(const struct sroce_ring *ring, u32 index)
{
	return (index + 1) & ring->mask;
}

/* Elements from index @from up to and without @to */
static inline u32 sroce_ring_distance(const struct sroce_ring *ring, u32 from, u32 to)
{
	return (to - from) & ring->mask;
}

static inline u32 sroce_ring_producer(const struct sroce_ring *ring)
{
	/* pairs with the producer's release: then its elements can be read */
	return smp_load_acquire(&ring->queue->producer_index) & ring->mask;
}

static inline u32 sroce_ring_consumer(const struct sroce_ring *ring)
{
	/* pairs with the consumer's release: then its elements can be written */
	return smp_load_acquire(&ring->queue->consumer_index) & ring->mask;
}

static inline void sroce_ring_set_producer(struct sroce_ring *ring, u32 index)
{
	/* after the elements were written */
	smp_store_release(&ring->queue->producer_index, index & ring->mask);
}

static inline void sroce_ring_set_consumer(struct sroce_ring *ring, u32 index)
{
	/* after the elements were read */
	smp_store_release(&ring->queue->consumer_index, index & ring->mask);
}

static inline bool sroce_ring_is_user(const struct sroce_ring *ring)
{
	return ring->map || ring->umem;
}

/*
 * The lock of a queue.  Kernel users post and poll with interrupts disabled, and may
 * hold locks that interrupt handlers take, so theirs is taken with interrupts disabled;
 * a user's is a lock of another class that never is, which is cheaper.
 */
static inline unsigned long sroce_ring_lock(const struct sroce_ring *ring, spinlock_t *lock)
	__acquires(lock)
{
	unsigned long flags = 0;

	if (sroce_ring_is_user(ring))
		spin_lock_bh(lock);
	else
		spin_lock_irqsave(lock, flags);
	return flags;
}

static inline void sroce_ring_unlock(const struct sroce_ring *ring, spinlock_t *lock,
				     unsigned long flags)
	__releases(lock)
{
	if (sroce_ring_is_user(ring))
		spin_unlock_bh(lock);
	else
		spin_unlock_irqrestore(lock, flags);
}

/**
 * sroce_ring_quiet - a producer need not call: the kernel will look by itself
 * @ring: ring of work requests
 */
static inline void sroce_ring_quiet(struct sroce_ring *ring)
{
	WRITE_ONCE(ring->queue->doorbell, SROCE_DOORBELL_NEVER);
}

/**
 * sroce_ring_ask - a producer has to call when it goes on from here
 * @ring: ring of work requests
 * @index: index up to which it was read
 *
 * Return: true when the producer went on meanwhile, perhaps without a call:
 * read further, and ask again.
 */
static inline bool sroce_ring_ask(struct sroce_ring *ring, u32 index)
{
	WRITE_ONCE(ring->queue->doorbell, index);
	smp_mb();	/* pairs with the producer's: it sees this, or we its index */
	return sroce_ring_producer(ring) != index;
}

#endif /* SROCE_RING_H */
