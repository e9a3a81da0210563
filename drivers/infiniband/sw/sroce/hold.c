// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packets that arrived before their turn: kept, so that only what is missing has to
 * be sent again, and handed on in the order of their PSNs when it has come.
 *
 * It is all a peer's doing, so it is bounded: for a queue pair, for a device and for
 * the module.  And it is never more than a convenience: the peer will send again what
 * it finds dropped.  So under memory pressure all of it goes.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include "compat.h"
#include "device.h"
#include "hold.h"

/* Bytes for a device */
#define SROCE_HOLD_DEVICE	(64l << 20)

/* Of the machine's memory, for the module: a sixteenth */
#define SROCE_HOLD_SHIFT	4

static LIST_HEAD(sroce_holds);
static DEFINE_SPINLOCK(sroce_hold_lock);	/* the list; taken before an xarray's lock */
static atomic_long_t sroce_hold_bytes;		/* memory that all held packets take */
static struct shrinker *sroce_hold_shrinker;

static void sroce_hold_charge(struct sroce_hold *hold, long bytes)
{
	atomic_long_add(bytes, &hold->dev->held);
	atomic_long_add(bytes, &sroce_hold_bytes);
}

/* May so many bytes more be kept?  Several CPUs may each exceed this by a packet */
static bool sroce_hold_room(const struct sroce_hold *hold, u32 bytes)
{
	long most = (totalram_pages() >> SROCE_HOLD_SHIFT) << PAGE_SHIFT;

	return READ_ONCE(hold->bytes) + bytes <= SROCE_HOLD_QP &&
	       atomic_long_read(&hold->dev->held) + bytes <= SROCE_HOLD_DEVICE &&
	       atomic_long_read(&sroce_hold_bytes) + bytes <= most;
}

static struct sroce_held *sroce_hold_copy(const struct sroce_packet *packet)
{
	const void *from = packet->bth;
	u32 length = packet->payload - from + packet->length;
	struct sroce_held *held;

	held = kmalloc(struct_size(held, data, length), GFP_ATOMIC | __GFP_NOWARN);
	if (!held)
		return NULL;
	memcpy(held->data, from, length);
	held->bytes = ksize(held);
	held->packet = *packet;
	held->packet.frame = NULL;
	held->packet.bth = (const struct sroce_bth *)held->data;
	held->packet.eth = held->data + (packet->eth - from);
	held->packet.payload = held->data + (packet->payload - from);
	return held;
}

static void sroce_hold_list(struct sroce_hold *hold)
{
	spin_lock_bh(&sroce_hold_lock);
	if (!hold->listed) {
		list_add_tail(&hold->node, &sroce_holds);
		hold->listed = true;
	}
	spin_unlock_bh(&sroce_hold_lock);
}

/**
 * sroce_hold_packet - keep a copy of a packet, if there is room
 * @hold: where to, its queue pair locked
 * @packet: packet of a connected service; one with its PSN may be there already
 *
 * Context: softirqs disabled.
 */
void sroce_hold_packet(struct sroce_hold *hold, const struct sroce_packet *packet)
{
	struct sroce_held *held;
	bool first;
	int err;

	if (xa_load(&hold->packets, packet->psn) || !sroce_hold_room(hold, packet->length))
		return;
	held = sroce_hold_copy(packet);
	if (!held)
		return;
	xa_lock_bh(&hold->packets);
	err = __xa_insert(&hold->packets, packet->psn, held, GFP_ATOMIC | __GFP_NOWARN);
	first = !hold->count;
	if (!err) {
		hold->count++;
		hold->bytes += held->bytes;
		sroce_hold_charge(hold, held->bytes);
	}
	xa_unlock_bh(&hold->packets);
	if (err)
		kfree(held);
	else if (first)
		sroce_hold_list(hold);
}

/* Under the xarray's lock: @held is the caller's */
static void sroce_hold_remove(struct sroce_hold *hold, struct sroce_held *held)
{
	hold->count--;
	hold->bytes -= held->bytes;
	sroce_hold_charge(hold, -(long)held->bytes);
}

/**
 * sroce_hold_take - the packet with a PSN, whose turn has come
 * @hold: where from, its queue pair locked
 * @psn: PSN
 *
 * Context: softirqs disabled.  Return: the packet, which the caller frees with
 * kfree(), or NULL.
 */
struct sroce_held *sroce_hold_take(struct sroce_hold *hold, u32 psn)
{
	struct sroce_held *held;

	xa_lock_bh(&hold->packets);
	held = __xa_erase(&hold->packets, psn);
	if (held)
		sroce_hold_remove(hold, held);
	xa_unlock_bh(&hold->packets);
	return held;
}

/**
 * sroce_hold_next - the first packet after a gap
 * @hold: where
 * @from: PSN from which on to look
 * @psn: its PSN
 *
 * Context: softirqs disabled.  Return: whether there is one within SROCE_HOLD_AHEAD.
 */
bool sroce_hold_next(struct sroce_hold *hold, u32 from, u32 *psn)
{
	u32 last = from + SROCE_HOLD_AHEAD;
	unsigned long index = from;

	if (!sroce_hold_any(hold))
		return false;
	if (!xa_find(&hold->packets, &index, min_t(u32, last, SROCE_PSN_MASK), XA_PRESENT)) {
		if (last <= SROCE_PSN_MASK)
			return false;
		index = 0;
		if (!xa_find(&hold->packets, &index, last & SROCE_PSN_MASK, XA_PRESENT))
			return false;
	}
	*psn = index;
	return true;
}

/* Drops all packets; returns the bytes */
static unsigned long sroce_hold_drop(struct sroce_hold *hold)
{
	struct sroce_held *held;
	unsigned long bytes = 0;
	unsigned long psn;

	xa_lock_bh(&hold->packets);
	xa_for_each(&hold->packets, psn, held) {
		__xa_erase(&hold->packets, psn);
		sroce_hold_remove(hold, held);
		bytes += held->bytes;
		kfree(held);
	}
	xa_unlock_bh(&hold->packets);
	return bytes;
}

/**
 * sroce_hold_purge - drop what is held
 * @hold: where, its queue pair locked or being destroyed
 */
void sroce_hold_purge(struct sroce_hold *hold)
{
	spin_lock_bh(&sroce_hold_lock);
	if (hold->listed) {
		list_del(&hold->node);
		hold->listed = false;
	}
	spin_unlock_bh(&sroce_hold_lock);
	if (sroce_hold_any(hold))
		sroce_hold_drop(hold);
}

/**
 * sroce_hold_create - prepare for packets of a queue pair
 * @hold: where they will be held
 * @dev: device that they count for
 *
 * sroce_hold_purge() undoes it.
 */
void sroce_hold_create(struct sroce_hold *hold, struct sroce_dev *dev)
{
	hold->dev = dev;
	xa_init_flags(&hold->packets, XA_FLAGS_LOCK_BH);
}

static unsigned long sroce_hold_count(struct shrinker *shrinker, struct shrink_control *sc)
{
	return (atomic_long_read(&sroce_hold_bytes) >> PAGE_SHIFT) ?: SHRINK_EMPTY;
}

/* The longest listed first: while the lock is held, nobody destroys it */
static unsigned long sroce_hold_scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	unsigned long bytes = 0;

	spin_lock_bh(&sroce_hold_lock);
	while (!list_empty(&sroce_holds) && bytes >> PAGE_SHIFT < sc->nr_to_scan) {
		struct sroce_hold *hold = list_first_entry(&sroce_holds, struct sroce_hold, node);

		list_del(&hold->node);
		hold->listed = false;
		bytes += sroce_hold_drop(hold);
	}
	spin_unlock_bh(&sroce_hold_lock);
	return bytes >> PAGE_SHIFT ?: SHRINK_STOP;
}

/**
 * sroce_hold_init - let memory pressure reach held packets
 *
 * Return: 0 or -ENOMEM.
 */
int sroce_hold_init(void)
{
	sroce_hold_shrinker = sroce_shrinker_register("sroce", sroce_hold_count, sroce_hold_scan);
	return sroce_hold_shrinker ? 0 : -ENOMEM;
}

/**
 * sroce_hold_exit - undo sroce_hold_init()
 */
void sroce_hold_exit(void)
{
	sroce_shrinker_unregister(sroce_hold_shrinker);
}
