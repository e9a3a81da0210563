/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Packets that arrived before their turn */
#ifndef SROCE_HOLD_H
#define SROCE_HOLD_H

#include <linux/list.h>
#include <linux/xarray.h>
#include "encap.h"

struct sroce_dev;

/* Bytes for one direction of a queue pair */
#define SROCE_HOLD_QP		(16u << 20)

/* How far ahead of what is expected a packet may be to be kept, PSNs, at most */
#define SROCE_HOLD_AHEAD	65536

/**
 * struct sroce_hold - packets of one queue pair and direction, by PSN
 * @dev: device that they count for
 * @packets: struct sroce_held by PSN; its lock protects this, @count and @bytes, since
 *	memory pressure may take packets away at any time
 * @count: how many there are
 * @bytes: memory that they take
 * @node: among all that have held packets; protected by sroce_hold_lock
 * @listed: @node is in that list; likewise
 */
struct sroce_hold {
	struct sroce_dev	*dev;
	struct xarray		packets;
	u32			count;
	u32			bytes;
	struct list_head	node;
	bool			listed;
};

/**
 * struct sroce_held - a copy of a packet
 * @packet: the packet, its frame forgotten; it points into @data
 * @bytes: memory that the copy takes
 * @data: from the BTH to the end of the payload
 */
struct sroce_held {
	struct sroce_packet	packet;
	u32			bytes;
	u8			data[] __aligned(8);
};

int sroce_hold_init(void);
void sroce_hold_exit(void);
void sroce_hold_create(struct sroce_hold *hold, struct sroce_dev *dev);
void sroce_hold_packet(struct sroce_hold *hold, const struct sroce_packet *packet);
struct sroce_held *sroce_hold_take(struct sroce_hold *hold, u32 psn);
bool sroce_hold_next(struct sroce_hold *hold, u32 from, u32 *psn);
void sroce_hold_purge(struct sroce_hold *hold);

/**
 * sroce_hold_ahead - how far ahead a packet may be to be kept
 * @mtu: path MTU, bytes
 *
 * What a peer can have under way, and no more: the farther, the easier to guess for a
 * stranger who sends packets in a peer's name.
 * Return: PSNs.
 */
static inline s32 sroce_hold_ahead(u32 mtu)
{
	return min_t(u32, SROCE_HOLD_QP / mtu, SROCE_HOLD_AHEAD);
}

/**
 * sroce_hold_any - are there held packets?
 * @hold: where
 *
 * Return: whether there are, or were a moment ago.
 */
static inline bool sroce_hold_any(const struct sroce_hold *hold)
{
	return READ_ONCE(hold->count);
}

#endif /* SROCE_HOLD_H */
