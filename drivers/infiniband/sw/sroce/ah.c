// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Address handles (IBA volume 1, 11.2.2).  An address vector lives in the
 * kernel; a work request names it by number.
 */
#include <linux/if_vlan.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <net/inet_ecn.h>
#include <net/route.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/sroce-abi.h>
#include "ah.h"
#include "device.h"
#include "wire.h"

#define SROCE_HOP_LIMIT_DEFAULT	64

static LIST_HEAD(sroce_avs);			/* all address vectors, RCU */
static DEFINE_SPINLOCK(sroce_avs_lock);		/* protects changes of the list */

/**
 * sroce_ah_attr_check - can this address be used?
 * @dev: device
 * @attr: address, resolved by the core
 *
 * Return: 0 or -EINVAL.
 */
int sroce_ah_attr_check(struct sroce_dev *dev, const struct rdma_ah_attr *attr)
{
	if (!(rdma_ah_get_ah_flags(attr) & IB_AH_GRH) ||
	    rdma_ah_get_port_num(attr) != SROCE_PORT ||
	    !attr->grh.sgid_attr ||
	    attr->grh.sgid_attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP) {
		ibdev_dbg(&dev->ibdev, "address without a GRH, or its GID is not of RoCEv2\n");
		return -EINVAL;
	}
	if (ipv6_addr_v4mapped((const struct in6_addr *)&attr->grh.sgid_attr->gid) !=
	    ipv6_addr_v4mapped((const struct in6_addr *)&attr->grh.dgid)) {
		ibdev_dbg(&dev->ibdev, "one address is IPv4, the other is IPv6\n");
		return -EINVAL;
	}
	return 0;
}

static void sroce_av_fill_ipv4(struct sroce_av *av, const struct ib_global_route *grh, u8 hops)
{
	av->ip4.version = 4;
	av->ip4.ihl = 5;
	av->ip4.tos = grh->traffic_class & ~INET_ECN_MASK;
	av->ip4.frag_off = htons(IP_DF);
	av->ip4.ttl = hops;
	av->ip4.protocol = IPPROTO_UDP;
	memcpy(&av->ip4.saddr, grh->sgid_attr->gid.raw + 12, sizeof(av->ip4.saddr));
	memcpy(&av->ip4.daddr, grh->dgid.raw + 12, sizeof(av->ip4.daddr));
}

static void sroce_av_fill_ipv6(struct sroce_av *av, const struct ib_global_route *grh, u8 hops)
{
	ip6_flow_hdr(&av->ip6, grh->traffic_class & ~INET_ECN_MASK,
		     htonl(grh->flow_label & IB_GRH_FLOWLABEL_MASK));
	av->ip6.nexthdr = IPPROTO_UDP;
	av->ip6.hop_limit = hops;
	memcpy(&av->ip6.saddr, &grh->sgid_attr->gid, sizeof(av->ip6.saddr));
	memcpy(&av->ip6.daddr, &grh->dgid, sizeof(av->ip6.daddr));
}

/* The service level that rdma_cm makes of a type of service: a traffic class or a VLAN priority */
static u8 sroce_sl_of_priority(struct net_device *netdev, u32 priority)
{
	struct net_device *real = netdev;

	if (is_vlan_dev(netdev))
		real = vlan_dev_real_dev(netdev);
	if (netdev_get_num_tc(real))
		return netdev_get_prio_tc_map(real, priority);
	if (real == netdev)
		return 0;
	return (vlan_dev_get_egress_qos_mask(netdev, priority) & VLAN_PRIO_MASK) >>
	       VLAN_PRIO_SHIFT;
}

/*
 * What queueing disciplines and VLANs classify by.  A traffic class means the priority
 * that it means for a socket, and a service level itself, if it says more than that: one
 * that rdma_cm has made of the traffic class has been through the map of the VLAN or of
 * the traffic classes, through which the priority goes as well.
 */
static u32 sroce_av_priority(const struct sroce_av *av, u8 traffic_class)
{
	u32 priority = rt_tos2priority(traffic_class & ~INET_ECN_MASK);
	struct net_device *netdev;
	u8 known = 0;

	rcu_read_lock();
	netdev = rdma_read_gid_attr_ndev_rcu(av->sgid_attr);
	if (!IS_ERR_OR_NULL(netdev))
		known = sroce_sl_of_priority(netdev, priority);
	rcu_read_unlock();
	return av->sl && av->sl != known ? av->sl : priority;
}

/**
 * sroce_av_create - make an address vector
 * @dev: device
 * @attr: address that sroce_ah_attr_check() accepted
 * @local_qpn: our queue pair's number
 * @remote_qpn: the peer's; both only
 *	spread flows over UDP source ports when there is no flow label
 * @gfp: how to allocate
 *
 * Context: any that @gfp allows.  Return: the vector with one reference, or NULL.
 */
struct sroce_av *sroce_av_create(struct sroce_dev *dev, const struct rdma_ah_attr *attr,
				 u32 local_qpn, u32 remote_qpn, gfp_t gfp)
{
	const struct ib_global_route *grh = &attr->grh;
	u8 hops = grh->hop_limit ?: SROCE_HOP_LIMIT_DEFAULT;
	struct sroce_av *av = kzalloc(sizeof(*av), gfp);
	unsigned long flags;

	if (!av)
		return NULL;
	kref_init(&av->ref);
	spin_lock_init(&av->lock);
	av->dev = dev;
	av->sgid_attr = grh->sgid_attr;
	rdma_hold_gid_attr(av->sgid_attr);
	av->sl = rdma_ah_get_sl(attr);
	av->priority = sroce_av_priority(av, grh->traffic_class);
	av->multicast = rdma_is_multicast_addr((struct in6_addr *)&grh->dgid);
	av->v6 = !ipv6_addr_v4mapped((const struct in6_addr *)&grh->dgid);
	if (av->v6)
		sroce_av_fill_ipv6(av, grh, hops);
	else
		sroce_av_fill_ipv4(av, grh, hops);
	av->udp.source = htons(rdma_get_udp_sport(grh->flow_label, local_qpn, remote_qpn));
	av->udp.dest = htons(SROCE_UDP_PORT);
	spin_lock_irqsave(&sroce_avs_lock, flags);
	list_add_rcu(&av->list, &sroce_avs);
	spin_unlock_irqrestore(&sroce_avs_lock, flags);
	return av;
}

static void sroce_av_free(struct kref *ref)
{
	struct sroce_av *av = container_of(ref, struct sroce_av, ref);
	unsigned long flags;

	spin_lock_irqsave(&sroce_avs_lock, flags);
	list_del_rcu(&av->list);
	spin_unlock_irqrestore(&sroce_avs_lock, flags);
	dst_release(av->dst);
	rdma_put_gid_attr(av->sgid_attr);
	kfree_rcu(av, rcu);
}

/**
 * sroce_av_put - drop a reference
 * @av: address vector or NULL
 *
 * Context: any.
 */
void sroce_av_put(struct sroce_av *av)
{
	if (!av)
		return;
	/* a namespace goes a grace period after sroce_av_forget_routes() saw no reference */
	rcu_read_lock();
	kref_put(&av->ref, sroce_av_free);
	rcu_read_unlock();
}

/**
 * sroce_av_forget_routes - drop cached routes through a namespace
 * @net: namespace of a net device that goes
 *
 * An IPv6 route must not outlive its namespace.
 * Context: process.
 */
void sroce_av_forget_routes(const struct net *net)
{
	struct sroce_av *av;

	rcu_read_lock();
	list_for_each_entry_rcu(av, &sroce_avs, list) {
		if (!kref_get_unless_zero(&av->ref))
			continue;	/* its route is being dropped */
		spin_lock_bh(&av->lock);
		if (av->net == net) {
			dst_release(av->dst);
			av->dst = NULL;
			av->net = NULL;
		}
		spin_unlock_bh(&av->lock);
		sroce_av_put(av);
	}
	rcu_read_unlock();
}

/**
 * sroce_av_find - the address vector that a work request names
 * @dev: device
 * @pd: the queue pair's protection domain; the address handle must be of it
 * @number: number
 *
 * Context: any.  Return: the vector with a reference of the caller's, or NULL.
 */
struct sroce_av *sroce_av_find(struct sroce_dev *dev, const struct ib_pd *pd, u32 number)
{
	struct sroce_av *av;

	rcu_read_lock();
	av = xa_load(&dev->ahs, number);
	if (av && (av->pd != pd || !kref_get_unless_zero(&av->ref)))
		av = NULL;
	rcu_read_unlock();
	return av;
}

static void sroce_ah_unpublish(struct sroce_dev *dev, const struct sroce_ah *ah)
{
	unsigned long flags;

	xa_lock_irqsave(&dev->ahs, flags);
	__xa_erase(&dev->ahs, ah->number);
	xa_unlock_irqrestore(&dev->ahs, flags);
}

/**
 * sroce_create_ah - ib_device_ops.create_ah and create_user_ah
 * @ibah: allocated by the core
 * @init: address, and whether this may sleep
 * @udata: answers with struct sroce_create_ah_resp
 *
 * Context: any if it may not sleep.  Return: 0, -EINVAL, -ENOMEM, -EFAULT.
 */
int sroce_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	gfp_t gfp = init->flags & RDMA_CREATE_AH_SLEEPABLE ? GFP_KERNEL_ACCOUNT : GFP_ATOMIC;
	struct sroce_dev *dev = to_sdev(ibah->device);
	struct sroce_create_ah_resp resp = {};
	struct sroce_ah *ah = to_sah(ibah);
	unsigned long flags;
	int err;

	err = sroce_ah_attr_check(dev, init->ah_attr);
	if (err)
		return err;
	if (udata && udata->outlen < sizeof(resp))
		return -EINVAL;	/* a provider too old to name it by number */
	ah->av = sroce_av_create(dev, init->ah_attr, get_random_u32() & SROCE_QPN_MASK,
				 get_random_u32() & SROCE_QPN_MASK, gfp);
	if (!ah->av)
		return -ENOMEM;
	ah->av->pd = ibah->pd;
	ah->attr = *init->ah_attr;
	xa_lock_irqsave(&dev->ahs, flags);
	err = __xa_alloc_cyclic(&dev->ahs, &ah->number, ah->av, XA_LIMIT(1, SROCE_MAX_AH),
				&dev->ah_next, gfp);
	xa_unlock_irqrestore(&dev->ahs, flags);
	if (err < 0)
		goto err_put;
	if (udata) {
		resp.ah_num = ah->number;
		err = ib_copy_to_udata(udata, &resp, sizeof(resp));
		if (err)
			goto err_erase;
	}
	return 0;

err_erase:
	sroce_ah_unpublish(dev, ah);
err_put:
	sroce_av_put(ah->av);
	return err;
}

/**
 * sroce_modify_ah - ib_device_ops.modify_ah
 * @ibah: address handle
 * @attr: its new address
 *
 * What is being sent goes to the old address.
 * Context: any.  Return: 0, -EINVAL, -ENOMEM.
 */
int sroce_modify_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	struct sroce_dev *dev = to_sdev(ibah->device);
	struct sroce_ah *ah = to_sah(ibah);
	struct sroce_av *av;
	unsigned long flags;
	int err;

	err = sroce_ah_attr_check(dev, attr);
	if (err)
		return err;
	av = sroce_av_create(dev, attr, get_random_u32() & SROCE_QPN_MASK,
			     get_random_u32() & SROCE_QPN_MASK, GFP_ATOMIC);
	if (!av)
		return -ENOMEM;
	av->pd = ibah->pd;
	/* replaces an entry that is there: needs no memory */
	xa_lock_irqsave(&dev->ahs, flags);
	__xa_store(&dev->ahs, ah->number, av, GFP_ATOMIC);
	xa_unlock_irqrestore(&dev->ahs, flags);
	sroce_av_put(ah->av);
	ah->av = av;
	ah->attr = *attr;
	return 0;
}

/**
 * sroce_query_ah - ib_device_ops.query_ah
 * @ibah: address handle
 * @attr: where to
 *
 * Return: 0.
 */
int sroce_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	*attr = to_sah(ibah)->attr;
	attr->grh.sgid_attr = NULL;	/* the reference is the handle's */
	return 0;
}

/**
 * sroce_destroy_ah - ib_device_ops.destroy_ah
 * @ibah: address handle
 * @flags: whether this may sleep; it never does
 *
 * Context: any.  Return: 0.
 */
int sroce_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	struct sroce_ah *ah = to_sah(ibah);

	sroce_ah_unpublish(to_sdev(ibah->device), ah);
	sroce_av_put(ah->av);
	return 0;
}
