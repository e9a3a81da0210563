// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The RDMA device: what it can do, and its coming and going */
#include <linux/etherdevice.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <linux/units.h>
#include <net/addrconf.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/sroce-abi.h>
#include "compat.h"
#include "address.h"
#include "ah.h"
#include "counter.h"
#include "cq.h"
#include "device.h"
#include "dm.h"
#include "flow.h"
#include "gid.h"
#include "mcast.h"
#include "mmap.h"
#include "mr.h"
#include "mw.h"
#include "parameters.h"
#include "odp.h"
#include "pma.h"
#include "port.h"
#include "qp.h"
#include "raw.h"
#include "restrack.h"
#include "ring.h"
#include "rss.h"
#include "send.h"
#include "srq.h"
#include "uverbs.h"
#include "xrc.h"

#define SROCE_VENDOR_ID		0xffffff	/* not an IEEE one */

struct sroce_pd {
	struct ib_pd		ibpd;
};

/* Extensions of the user ABI that this driver has */
#define SROCE_EXT_ALL	(SROCE_EXT_DOORBELL | SROCE_EXT_CQE | SROCE_EXT_USER_RINGS)

static LIST_HEAD(sroce_devices);		/* all that are not freed yet */
static DEFINE_MUTEX(sroce_devices_lock);	/* protects the list */

/*
 * What takes our provider: the stock one would not know how to ask for it.  Ours is
 * known by the room for an answer that it leaves, which also the core does not when
 * it asks for kernel users.
 */
static int sroce_query_extensions(const struct sroce_dev *dev, struct ib_device_attr *attr,
				  struct ib_udata *udata)
{
	struct sroce_query_device_resp resp = { .ext = SROCE_EXT_ALL };

	attr->device_cap_flags |= IB_DEVICE_XRC;
	attr->max_dm_size = SROCE_MAX_DM;
	if (sroce_raw_possible(dev)) {
		attr->rss_caps.supported_qpts = BIT(IB_QPT_RAW_PACKET);
		attr->rss_caps.max_rwq_indirection_tables = SROCE_MAX_QP;
		attr->rss_caps.max_rwq_indirection_table_size = SROCE_MAX_RWQ_TABLE;
		attr->max_wq_type_rq = SROCE_MAX_QP;
		if (SROCE_FLOW_STEERING)
			attr->device_cap_flags |= IB_DEVICE_MANAGED_FLOW_STEERING;
	}
	attr->timestamp_mask = U64_MAX;
	attr->hca_core_clock = NSEC_PER_SEC / HZ_PER_KHZ;	/* kHz: it counts nanoseconds */
	return ib_copy_to_udata(udata, &resp, sizeof(resp));
}

static int sroce_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			      struct ib_udata *udata)
{
	const size_t resp_size = sizeof(struct sroce_query_device_resp);

	if (udata && (udata->inlen || (udata->outlen && udata->outlen < resp_size)))
		return -EINVAL;
	attr->sys_image_guid = ibdev->node_guid;
	attr->vendor_id = SROCE_VENDOR_ID;
	attr->max_mr_size = U64_MAX;
	attr->page_size_cap = ~(u64)(PAGE_SIZE - 1);
	attr->max_qp = SROCE_MAX_QP;
	attr->max_qp_wr = SROCE_MAX_WR;
	attr->device_cap_flags = IB_DEVICE_BAD_PKEY_CNTR | IB_DEVICE_BAD_QKEY_CNTR |
				 IB_DEVICE_CURR_QP_STATE_MOD | IB_DEVICE_PORT_ACTIVE_EVENT |
				 IB_DEVICE_SYS_IMAGE_GUID | IB_DEVICE_RC_RNR_NAK_GEN |
				 IB_DEVICE_SRQ_RESIZE | IB_DEVICE_MEM_MGT_EXTENSIONS |
				 IB_DEVICE_MEM_WINDOW | IB_DEVICE_MEM_WINDOW_TYPE_2B |
				 SROCE_DEVICE_ATOMIC_WRITE | SROCE_DEVICE_FLUSH;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY | IBK_ALLOW_USER_UNREG;
	attr->max_send_sge = SROCE_MAX_SGE;
	attr->max_recv_sge = SROCE_MAX_SGE;
	attr->max_sge_rd = SROCE_MAX_SGE;
	attr->max_cq = SROCE_MAX_CQ;
	attr->max_cqe = SROCE_MAX_CQE;
	attr->max_mr = SROCE_MAX_MR;
	attr->max_mw = SROCE_MAX_MW;
	attr->max_pd = SROCE_MAX_PD;
	attr->max_qp_rd_atom = SROCE_MAX_RD_ATOMIC;
	attr->max_qp_init_rd_atom = SROCE_MAX_RD_ATOMIC;
	attr->max_res_rd_atom = SROCE_MAX_RD_ATOMIC * SROCE_MAX_QP;
	attr->atomic_cap = IB_ATOMIC_GLOB;
	attr->max_mcast_grp = SROCE_MAX_MCAST_GRP;
	attr->max_mcast_qp_attach = SROCE_MAX_MCAST_ATTACH;
	attr->max_total_mcast_qp_attach = SROCE_MAX_MCAST_GRP * SROCE_MAX_MCAST_ATTACH;
	attr->max_ah = SROCE_MAX_AH;
	attr->max_srq = SROCE_MAX_SRQ;
	attr->max_srq_wr = SROCE_MAX_WR;
	attr->max_srq_sge = SROCE_MAX_SGE;
	attr->max_fast_reg_page_list_len = SROCE_MAX_FAST_REG_PAGES;
	attr->max_pkeys = SROCE_PKEY_TABLE;
	attr->cq_caps.max_cq_moderation_count = U16_MAX;
	attr->cq_caps.max_cq_moderation_period = U16_MAX;
	if (sroce_raw_possible(to_sdev(ibdev))) {
		attr->max_raw_ethy_qp = SROCE_MAX_QP;
		attr->raw_packet_caps = IB_RAW_PACKET_CAP_IP_CSUM;
		attr->device_cap_flags |= IB_DEVICE_RAW_IP_CSUM;
	}
	sroce_odp_query(attr);
	attr->local_ca_ack_delay = 15;	/* 134 ms: a host may be busy */
	return udata && udata->outlen ? sroce_query_extensions(to_sdev(ibdev), attr, udata) : 0;
}

/* A provider that says nothing gets the common ABI; one that asks, what there is of it */
static int sroce_alloc_ucontext(struct ib_ucontext *context, struct ib_udata *udata)
{
	struct sroce_ucontext *uc = container_of(context, struct sroce_ucontext, ibuc);
	struct sroce_alloc_ucontext_resp resp = {};
	struct sroce_alloc_ucontext_cmd cmd;
	int err;

	if (udata->inlen < sizeof(cmd))
		return 0;
	err = ib_copy_from_udata(&cmd, udata, sizeof(cmd));
	if (err)
		return err;
	if (cmd.reserved || udata->outlen < sizeof(resp))
		return -EINVAL;
	uc->ext = cmd.ext & SROCE_EXT_ALL;
	resp.ext = uc->ext;
	return ib_copy_to_udata(udata, &resp, sizeof(resp));
}

/* The user's mappings go with the rings, and the pages when nobody maps them */
static void sroce_dealloc_ucontext(struct ib_ucontext *context)
{
}

static void sroce_disassociate_ucontext(struct ib_ucontext *context)
{
}

static int sroce_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int sroce_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static void sroce_get_fw_str(struct ib_device *ibdev, char *str)
{
	str[0] = '\0';
}

static int sroce_enable_driver(struct ib_device *ibdev)
{
	return 0;
}

/*
 * The last thing before the core frees the device.  It is unregistered: no
 * verbs object is left, and no address.  A packet that found one of its
 * addresses before may be on its way through.
 */
static void sroce_dealloc_driver(struct ib_device *ibdev)
{
	struct sroce_dev *dev = to_sdev(ibdev);

	rtnl_lock();
	sroce_port_unbind(dev);
	rtnl_unlock();
	mutex_lock(&sroce_devices_lock);
	list_del_init(&dev->all);
	mutex_unlock(&sroce_devices_lock);
	sroce_gid_forget(dev);
	synchronize_rcu();
	cancel_work_sync(&dev->rescan);
	WARN_ON(!xa_empty(&dev->mrs) || !xa_empty(&dev->mws) || !xa_empty(&dev->ahs));
	xa_destroy(&dev->mrs);
	xa_destroy(&dev->mws);
	xa_destroy(&dev->ahs);
	WARN_ON(!xa_empty(&dev->counter_sets));
	xa_destroy(&dev->counter_sets);
	free_percpu(dev->bound_counters);
	free_percpu(dev->counters);
}

static const struct ib_device_ops sroce_ops_table = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_RXE,	/* whose user ABI this is */
	.uverbs_abi_ver = SROCE_UVERBS_ABI_VERSION,
	.uverbs_no_driver_id_binding = 1,

	.add_gid = sroce_add_gid,
	.advise_mr = sroce_advise_mr,
	.alloc_dm = sroce_alloc_dm,
	.alloc_hw_port_stats = sroce_alloc_port_stats,
	.port_groups = sroce_port_groups,
	.alloc_mr = sroce_alloc_mr,
	.alloc_mw = sroce_alloc_mw,
	.alloc_pd = sroce_alloc_pd,
	.alloc_ucontext = sroce_alloc_ucontext,
	.alloc_xrcd = sroce_alloc_xrcd,
	.attach_mcast = sroce_attach_mcast,
	.counter_alloc_stats = sroce_counter_alloc_stats,
	.counter_bind_qp = sroce_op_counter_bind,
	.counter_dealloc = sroce_counter_dealloc,
	.counter_unbind_qp = sroce_op_counter_unbind,
	.counter_update_stats = sroce_counter_update_stats,
	.create_ah = sroce_create_ah,
	.create_cq = sroce_op_create_cq,
	.create_flow = sroce_create_flow,
	.create_qp = sroce_create_qp,
	.create_rwq_ind_table = sroce_create_rwq_table,
	.create_srq = sroce_create_srq,
	.create_user_ah = sroce_create_ah,
	.create_wq = sroce_create_wq,
	.dealloc_dm = sroce_dealloc_dm,
	.dealloc_driver = sroce_dealloc_driver,
	.dealloc_mw = sroce_dealloc_mw,
	.dealloc_pd = sroce_dealloc_pd,
	.dealloc_ucontext = sroce_dealloc_ucontext,
	.dealloc_xrcd = sroce_dealloc_xrcd,
	.del_gid = sroce_del_gid,
	.dereg_mr = sroce_dereg_mr,
	.destroy_ah = sroce_destroy_ah,
	.destroy_cq = sroce_destroy_cq,
	.destroy_flow = sroce_destroy_flow,
	.destroy_qp = sroce_destroy_qp,
	.destroy_rwq_ind_table = sroce_destroy_rwq_table,
	.destroy_srq = sroce_destroy_srq,
	.destroy_wq = sroce_destroy_wq,
	.detach_mcast = sroce_detach_mcast,
	.disassociate_ucontext = sroce_disassociate_ucontext,
	.enable_driver = sroce_enable_driver,
	.fill_res_cq_entry = sroce_fill_cq,
	.fill_res_mr_entry = sroce_fill_mr,
	.fill_res_qp_entry = sroce_fill_qp,
	SROCE_OP_FILL_SRQ
	.get_dev_fw_str = sroce_get_fw_str,
	.get_dma_mr = sroce_get_dma_mr,
	.get_hw_stats = sroce_get_port_stats,
	.get_link_layer = sroce_get_link_layer,
	.get_netdev = sroce_get_netdev,
	.get_port_immutable = sroce_get_port_immutable,
	.map_mr_sg = sroce_map_mr_sg,
	.mmap = sroce_mmap,
	.mmap_free = sroce_mmap_free,
	.modify_ah = sroce_modify_ah,
	.modify_cq = sroce_modify_cq,
	.modify_qp = sroce_modify_qp,
	.modify_srq = sroce_modify_srq,
	.modify_wq = sroce_modify_wq,
	.poll_cq = sroce_poll_cq,
	.post_recv = sroce_post_recv,
	.post_send = sroce_post_send,
	.post_srq_recv = sroce_post_srq_recv,
	.process_mad = sroce_process_mad,
	.query_ah = sroce_query_ah,
	.query_device = sroce_query_device,
	.query_pkey = sroce_query_pkey,
	.query_port = sroce_query_port,
	SROCE_OP_QUERY_PORT_SPEED
	.query_qp = sroce_query_qp,
	.query_srq = sroce_query_srq,
	.query_ucontext = sroce_query_ucontext,
	.reg_dm_mr = sroce_reg_dm_mr,
	.reg_user_mr = sroce_op_reg_user_mr,
	.reg_user_mr_dmabuf = sroce_op_reg_dmabuf_mr,
	.req_notify_cq = sroce_req_notify_cq,
	.rereg_user_mr = sroce_rereg_user_mr,
	SROCE_OP_RESIZE_CQ = sroce_op_resize_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, sroce_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, sroce_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_mw, sroce_mw, ibmw),
	INIT_RDMA_OBJ_SIZE(ib_pd, sroce_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, sroce_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_rwq_ind_table, sroce_rwq_table, ibtable),
	INIT_RDMA_OBJ_SIZE(ib_srq, sroce_srq, ibsrq),
	INIT_RDMA_OBJ_SIZE(ib_xrcd, sroce_xrcd, ibxrcd),
	SROCE_COUNTER_OBJ_SIZE
	INIT_RDMA_OBJ_SIZE(ib_ucontext, sroce_ucontext, ibuc),
};

static void sroce_device_guid(struct sroce_dev *dev, const struct net_device *netdev)
{
	u8 *guid = (u8 *)&dev->ibdev.node_guid;

	if (netdev->addr_len == ETH_ALEN && is_valid_ether_addr(netdev->dev_addr))
		addrconf_addr_eui48(guid, netdev->dev_addr);
	else
		get_random_bytes(guid, sizeof(dev->ibdev.node_guid));
}

static void sroce_device_setup(struct sroce_dev *dev, struct net_device *netdev)
{
	struct ib_device *ibdev = &dev->ibdev;

	INIT_LIST_HEAD(&dev->all);
	sroce_address_setup(dev);
	INIT_LIST_HEAD(&dev->flows);
	xa_init_flags(&dev->mrs, XA_FLAGS_ALLOC);
	xa_init_flags(&dev->mws, XA_FLAGS_ALLOC);
	xa_init_flags(&dev->ahs, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->counter_sets, XA_FLAGS_ALLOC1);
	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = num_possible_cpus();
	ibdev->local_dma_lkey = 0;
	ibdev->dev.parent = netdev->dev.parent;
	ibdev->uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_POST_SEND) |
				  BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ);
	strscpy(ibdev->node_desc, "sroce", sizeof(ibdev->node_desc));
	sroce_device_guid(dev, netdev);
	sroce_congestion_setup(dev);
	if (IS_ENABLED(CONFIG_INFINIBAND_USER_ACCESS))
		ibdev->driver_def = sroce_uverbs_defs;
	ib_set_device_ops(ibdev, &sroce_ops_table);
}

static int sroce_device_bind(struct sroce_dev *dev, struct net_device *netdev)
{
	int err;

	rtnl_lock();
	if (netdev->reg_state == NETREG_REGISTERED)
		err = sroce_port_bind(dev, netdev);
	else
		err = -ENODEV;
	rtnl_unlock();
	return err;
}

/* @net is held until the device is registered; from then on the core follows it */
static int sroce_device_create_in(struct net *net, const char *name, struct net_device *netdev)
{
	struct sroce_dev *dev;
	int err;

	dev = sroce_ib_alloc_device(sroce_dev, ibdev, net);
	if (!dev)
		return -ENOMEM;
	sroce_ib_device_set_net(&dev->ibdev, net);
	sroce_device_setup(dev, netdev);
	dev->counters = alloc_percpu(struct sroce_counters);
	dev->bound_counters = alloc_percpu(struct sroce_counters);
	if (!dev->counters || !dev->bound_counters) {
		err = -ENOMEM;
		goto err_dealloc;
	}
	err = sroce_device_bind(dev, netdev);
	if (err)
		goto err_dealloc;
	mutex_lock(&sroce_devices_lock);
	list_add_tail(&dev->all, &sroce_devices);
	mutex_unlock(&sroce_devices_lock);
	/* as soon as it is registered somebody may delete it: keep the memory */
	get_device(&dev->ibdev.dev);
	err = ib_register_device(&dev->ibdev, name, NULL);
	if (err == -ENFILE)	/* the core's word for a name in use */
		err = -EEXIST;
	if (err)
		goto err_put;
	rtnl_lock();
	/* what happened meanwhile */
	if (rtnl_dereference(dev->netdev)) {
		sroce_port_announce(dev);
		sroce_address_changed(dev, netdev);
	} else {
		sroce_port_orphan(dev);
	}
	rtnl_unlock();
	put_device(&dev->ibdev.dev);
	return 0;

err_put:
	put_device(&dev->ibdev.dev);
err_dealloc:
	ib_dealloc_device(&dev->ibdev);	/* calls sroce_dealloc_driver() */
	return err;
}

/**
 * sroce_device_create - make an RDMA device over a net device
 * @name: its name, without a per cent sign
 * @netdev: net device that the caller holds
 *
 * Unless the RDMA subsystem shares its devices among all net namespaces, the
 * device is in that of the net device.
 * Context: process.  Return: 0; an errno of sroce_port_check_netdev(); -EEXIST
 * for a name in use; -ENODEV when the namespace is on its way out; -ENOMEM.
 */
int sroce_device_create(const char *name, struct net_device *netdev)
{
	struct net *net;
	int err;

	rcu_read_lock();
	net = maybe_get_net(dev_net(netdev));
	rcu_read_unlock();
	if (!net)
		return -ENODEV;
	err = sroce_device_create_in(net, name, netdev);
	put_net(net);
	return err;
}

static struct sroce_dev *sroce_device_first(void)
{
	struct sroce_dev *dev;

	mutex_lock(&sroce_devices_lock);
	dev = list_first_entry_or_null(&sroce_devices, struct sroce_dev, all);
	if (dev)
		get_device(&dev->ibdev.dev);
	mutex_unlock(&sroce_devices_lock);
	return dev;
}

/**
 * sroce_device_remove_all - unregister all devices, and wait for those that
 * someone else is unregistering
 *
 * ib_unregister_driver() would take the in-tree driver's devices too.
 * Context: process, sleeps, when no device can be created any more.
 */
void sroce_device_remove_all(void)
{
	struct sroce_dev *dev;

	while ((dev = sroce_device_first())) {
		ib_unregister_device(&dev->ibdev);
		put_device(&dev->ibdev.dev);
	}
}
