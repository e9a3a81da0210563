/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Address handles and address vectors: where packets go */
#ifndef SROCE_AH_H
#define SROCE_AH_H

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/kref.h>
#include <linux/udp.h>
#include <net/dst.h>
#include <rdma/ib_verbs.h>

struct sroce_dev;

/**
 * struct sroce_av - an address vector: headers that do not change, and the route
 * @ref: of address handle, queue pair, and whoever sends by it just now
 * @rcu: frees it; look-ups by number are RCU sections
 * @dev: device
 * @pd: protection domain of the address handle, only compared
 * @list: in the list of all
 * @sgid_attr: source address, with a reference
 * @multicast: it is a group's
 * @v6: which of the headers
 * @ip4: IPv4 header but for length, ID and checksum
 * @ip6: IPv6 header but for the length
 * @udp: UDP header but for length and checksum
 * @sl: service level
 * @priority: of its frames, skb->priority
 * @ifindex: of the net device of the source address, in the namespace of @home; 0 if it
 *	was not known yet
 * @home: that namespace's cookie
 * @lock: protects @ifindex, @home, @dst, @net and @cookie
 * @dst: route, NULL when it has to be looked up
 * @net: namespace of @dst, only compared
 * @paced: that route's queueing discipline holds frames until their time
 * @cookie: tells whether the route is still good
 */
struct sroce_av {
	struct kref			ref;
	struct rcu_head			rcu;
	struct sroce_dev		*dev;
	const struct ib_pd		*pd;
	struct list_head		list;
	const struct ib_gid_attr	*sgid_attr;
	bool				multicast;
	bool				v6;
	union {
		struct iphdr		ip4;
		struct ipv6hdr		ip6;
	};
	struct udphdr			udp;
	u8				sl;
	u32				priority;
	int				ifindex;
	u64				home;
	spinlock_t			lock;	/* see above */
	struct dst_entry		*dst;
	const struct net		*net;
	bool				paced;
	u32				cookie;
};

struct sroce_ah {
	struct ib_ah			ibah;
	struct sroce_av			*av;
	struct rdma_ah_attr		attr;
	u32				number;
};

static inline struct sroce_ah *to_sah(struct ib_ah *ibah)
{
	return container_of(ibah, struct sroce_ah, ibah);
}

int sroce_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata);
int sroce_modify_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int sroce_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int sroce_destroy_ah(struct ib_ah *ibah, u32 flags);

int sroce_ah_attr_check(struct sroce_dev *dev, const struct rdma_ah_attr *attr);
struct sroce_av *sroce_av_create(struct sroce_dev *dev, const struct rdma_ah_attr *attr,
				 u32 local_qpn, u32 remote_qpn, gfp_t gfp);
struct sroce_av *sroce_av_find(struct sroce_dev *dev, const struct ib_pd *pd, u32 number);
void sroce_av_put(struct sroce_av *av);
void sroce_av_forget_routes(const struct net *net);

#endif /* SROCE_AH_H */
