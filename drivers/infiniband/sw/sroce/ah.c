// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Address handles (IBA volume 1, 11.2.2).  An address vector lives in the
 * kernel; a work request names it by number.
 */
#include <linux/random.h>
#include <linux/slab.h>
#include <net/inet_ecn.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/sroce-abi.h>
#include "ah.h"
#include "device.h"
#include "wire.h"

#define SROCE_HOP_LIMIT_DEFAULT	64

static LIST_HEAD(sroce_avs);			/* all address vectors */
static DEFINE_SPINLOCK(sroce_avs_lock);		/* protects the list; outside @lock of each */

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

/**
 * sroce_av_create - make an address vector
 * @dev: device
 * @attr: address that sroce_ah_attr_check() accepted
 * @local_qpn: our queue pair's number
 * @remote_qpn: the peer's; both only
 *	spread flows over UDP source ports when there is no flow label
 * @gfp: how to allocate
 *
 * Return: the vector with one reference, or NULL.
 */
struct sroce_av *sroce_av_create(struct sroce_dev *dev, const struct rdma_ah_attr *attr,
				 u32 local_qpn, u32 remote_qpn, gfp_t gfp)
{
	const struct ib_global_route *grh = &attr->grh;
	u8 hops = grh->hop_limit ?: SROCE_HOP_LIMIT_DEFAULT;
	struct sroce_av *av = kzalloc(sizeof(*av), gfp);

	if (!av)
		return NULL;
	kref_init(&av->ref);
	spin_lock_init(&av->lock);
	av->dev = dev;
	av->sgid_attr = grh->sgid_attr;
	rdma_hold_gid_attr(av->sgid_attr);
	av->sl = rdma_ah_get_sl(attr);
	av->v6 = !ipv6_addr_v4mapped((const struct in6_addr *)&grh->dgid);
	if (av->v6)
		sroce_av_fill_ipv6(av, grh, hops);
	else
		sroce_av_fill_ipv4(av, grh, hops);
	av->udp.source = htons(rdma_get_udp_sport(grh->flow_label, local_qpn, remote_qpn));
	av->udp.dest = htons(SROCE_UDP_PORT);
	spin_lock_bh(&sroce_avs_lock);
	list_add(&av->list, &sroce_avs);
	spin_unlock_bh(&sroce_avs_lock);
	return av;
}

static void sroce_av_free(struct kref *ref)
{
	struct sroce_av *av = container_of(ref, struct sroce_av, ref);

	spin_lock_bh(&sroce_avs_lock);
	list_del(&av->list);
	spin_unlock_bh(&sroce_avs_lock);
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
	if (av)
		kref_put(&av->ref, sroce_av_free);
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

	spin_lock_bh(&sroce_avs_lock);
	list_for_each_entry(av, &sroce_avs, list) {
		spin_lock(&av->lock);
		if (av->net == net) {
			dst_release(av->dst);
			av->dst = NULL;
			av->net = NULL;
		}
		spin_unlock(&av->lock);
	}
	spin_unlock_bh(&sroce_avs_lock);
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

/**
 * sroce_create_ah - ib_device_ops.create_ah and create_user_ah
 * @ibah: allocated by the core
 * @init: address, and whether this may sleep
 * @udata: answers with struct sroce_create_ah_resp
 *
 * Return: 0, -EINVAL, -ENOMEM, -EFAULT.
 */
int sroce_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	gfp_t gfp = init->flags & RDMA_CREATE_AH_SLEEPABLE ? GFP_KERNEL : GFP_ATOMIC;
	struct sroce_dev *dev = to_sdev(ibah->device);
	struct sroce_create_ah_resp resp = {};
	struct sroce_ah *ah = to_sah(ibah);
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
	err = xa_alloc_cyclic_bh(&dev->ahs, &ah->number, ah->av, XA_LIMIT(1, SROCE_MAX_AH),
				 &dev->ah_next, gfp);
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
	xa_erase_bh(&dev->ahs, ah->number);
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
 * Return: 0, -EINVAL, -ENOMEM.
 */
int sroce_modify_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	struct sroce_dev *dev = to_sdev(ibah->device);
	struct sroce_ah *ah = to_sah(ibah);
	struct sroce_av *av;
	int err;

	err = sroce_ah_attr_check(dev, attr);
	if (err)
		return err;
	av = sroce_av_create(dev, attr, get_random_u32() & SROCE_QPN_MASK,
			     get_random_u32() & SROCE_QPN_MASK, GFP_KERNEL);
	if (!av)
		return -ENOMEM;
	av->pd = ibah->pd;
	/* replaces an entry that is there: needs no memory */
	xa_store_bh(&dev->ahs, ah->number, av, GFP_ATOMIC);
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
 * Return: 0.
 */
int sroce_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	struct sroce_ah *ah = to_sah(ibah);

	xa_erase_bh(&to_sdev(ibah->device)->ahs, ah->number);
	sroce_av_put(ah->av);
	return 0;
}
