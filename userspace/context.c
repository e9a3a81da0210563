// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The device: found by its name, opened, queried */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include "sroce.h"

struct get_context_cmd {
	struct ibv_get_context		ibv;
	struct sroce_alloc_ucontext_cmd	drv;
};

struct get_context_resp {
	struct ib_uverbs_get_context_resp	ibv;
	struct sroce_alloc_ucontext_resp	drv;
};

static_assert(offsetof(struct get_context_resp, drv) ==
	      sizeof(struct ib_uverbs_get_context_resp), "the driver's part follows at once");

/* The kernel says no driver id, so that the name decides, here and in the stock provider */
static const struct verbs_match_ent sroce_match[] = {
	VERBS_NAME_MATCH("sroce", NULL),
	{},
};

static int sroce_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return ibv_cmd_query_port(context, port, attr, &cmd, sizeof(cmd));
}

static int sroce_query_device_ex(struct ibv_context *context,
				 const struct ibv_query_device_ex_input *input,
				 struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct {
		struct ib_uverbs_ex_query_device_resp	ibv;
		struct sroce_query_device_resp		drv;
	} resp;
	size_t resp_size = sizeof(resp);

	/* all of it is the kernel's: what the device can do is decided there */
	return ibv_cmd_query_device_any(context, input, attr, attr_size, &resp.ibv, &resp_size);
}

static int sroce_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	uint32_t mask = 0;

	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) {
		/* the clock of completion timestamps */
		if (clock_gettime(CLOCK_MONOTONIC, &values->raw_clock))
			return errno;
		mask |= IBV_VALUES_MASK_RAW_CLOCK;
	}
	values->comp_mask = mask;
	return 0;
}

static int sroce_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return ibv_cmd_req_notify_cq(cq, solicited_only);
}

static int sroce_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return ibv_cmd_attach_mcast(qp, gid, lid);
}

static int sroce_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return ibv_cmd_detach_mcast(qp, gid, lid);
}

static void sroce_free_context(struct ibv_context *ibv)
{
	struct sroce_context *context = to_scontext(ibv);

	verbs_uninit_context(&context->ibv);
	free(context);
}

static const struct verbs_context_ops sroce_context_ops = {
	.advise_mr = sroce_advise_mr,
	.alloc_dm = sroce_alloc_dm,
	.alloc_mw = sroce_alloc_mw,
	.alloc_parent_domain = sroce_alloc_parent_domain,
	.alloc_pd = sroce_alloc_pd,
	.alloc_td = sroce_alloc_td,
	.attach_mcast = sroce_attach_mcast,
	.bind_mw = sroce_bind_mw,
	.close_xrcd = sroce_close_xrcd,
	.create_ah = sroce_create_ah,
	.create_cq = sroce_create_cq,
	.create_cq_ex = sroce_create_cq_ex,
	.create_flow = sroce_create_flow,
	.create_qp = sroce_create_qp,
	.create_qp_ex = sroce_create_qp_ex,
	.create_rwq_ind_table = sroce_create_rwq_table,
	.create_srq = sroce_create_srq,
	.create_srq_ex = sroce_create_srq_ex,
	.create_wq = sroce_create_wq,
	.dealloc_mw = sroce_dealloc_mw,
	.dealloc_pd = sroce_dealloc_pd,
	.dealloc_td = sroce_dealloc_td,
	.dereg_mr = sroce_dereg_mr,
	.destroy_ah = sroce_destroy_ah,
	.destroy_cq = sroce_destroy_cq,
	.destroy_flow = sroce_destroy_flow,
	.destroy_qp = sroce_destroy_qp,
	.destroy_rwq_ind_table = sroce_destroy_rwq_table,
	.destroy_srq = sroce_destroy_srq,
	.destroy_wq = sroce_destroy_wq,
	.detach_mcast = sroce_detach_mcast,
	.free_context = sroce_free_context,
	.free_dm = sroce_free_dm,
	.get_srq_num = sroce_get_srq_num,
	.import_dm = sroce_import_dm,
	.import_mr = sroce_import_mr,
	.import_pd = sroce_import_pd,
	.modify_cq = sroce_modify_cq,
	.modify_qp = sroce_modify_qp,
	.modify_srq = sroce_modify_srq,
	.modify_wq = sroce_modify_wq,
	.open_qp = sroce_open_qp,
	.open_xrcd = sroce_open_xrcd,
	.poll_cq = sroce_poll_cq,
	.post_recv = sroce_post_recv,
	.post_send = sroce_post_send,
	.post_srq_recv = sroce_post_srq_recv,
	.query_device_ex = sroce_query_device_ex,
	.query_port = sroce_query_port,
#if IBVERBS_PABI_VERSION >= 65
	.query_port_speed = ibv_cmd_query_port_speed,
#endif
	.query_qp = sroce_query_qp,
	.query_rt_values = sroce_query_rt_values,
	.query_srq = sroce_query_srq,
	.reg_dm_mr = sroce_reg_dm_mr,
	.reg_dmabuf_mr = sroce_reg_dmabuf_mr,
	.reg_mr = sroce_reg_mr,
	.req_notify_cq = sroce_req_notify_cq,
	.rereg_mr = sroce_rereg_mr,
	.resize_cq = sroce_resize_cq,
	.unimport_dm = sroce_unimport_dm,
	.unimport_mr = sroce_unimport_mr,
	.unimport_pd = sroce_unimport_pd,
};

static int get_context(struct sroce_context *context)
{
	struct get_context_resp resp = {};
	struct get_context_cmd cmd = { .drv.ext = SROCE_EXT_WANTED };
	int err;

#if IBVERBS_PABI_VERSION >= 57
	err = ibv_cmd_get_context(&context->ibv, &cmd.ibv, sizeof(cmd), NULL, &resp.ibv,
				  sizeof(resp));
#else
	err = ibv_cmd_get_context(&context->ibv, &cmd.ibv, sizeof(cmd), &resp.ibv, sizeof(resp));
#endif
	context->ext = resp.drv.ext;
	return err;
}

static struct verbs_context *sroce_alloc_context(struct ibv_device *device, int cmd_fd,
						 void *private_data)
{
	struct sroce_context *context;
	int err;

	/* every ioctl carries the driver id, and the kernel compares it */
	context = verbs_init_and_alloc_context(device, cmd_fd, context, ibv, RDMA_DRIVER_RXE);
	if (!context)
		return NULL;
	err = get_context(context);
	if (err) {
		verbs_uninit_context(&context->ibv);
		free(context);
		errno = err;
		return NULL;
	}
	verbs_set_ops(&context->ibv, &sroce_context_ops);
	return &context->ibv;
}

/* A context that was opened by another process, which got the same extensions */
static struct verbs_context *sroce_import_context(struct ibv_device *device, int cmd_fd)
{
	DECLARE_COMMAND_BUFFER(driver, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, 1);
	struct sroce_alloc_ucontext_resp resp = {};
	struct sroce_context *context;
	int err;

	context = verbs_init_and_alloc_context(device, cmd_fd, context, ibv, RDMA_DRIVER_RXE);
	if (!context)
		return NULL;
	fill_attr_out_ptr(driver, SROCE_ATTR_QUERY_CONTEXT_RESP, &resp);
	err = ibv_cmd_query_context(&context->ibv.context, driver);
	if (err) {
		verbs_uninit_context(&context->ibv);
		free(context);
		errno = err;
		return NULL;
	}
	context->ext = resp.ext;
	verbs_set_ops(&context->ibv, &sroce_context_ops);
	return &context->ibv;
}

static struct verbs_device *sroce_alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	return calloc(1, sizeof(struct verbs_device));
}

static void sroce_uninit_device(struct verbs_device *device)
{
	free(device);
}

static const struct verbs_device_ops sroce_device_ops = {
	.name = "sroce",
	.match_min_abi_version = SROCE_UVERBS_ABI_VERSION,
	.match_max_abi_version = SROCE_UVERBS_ABI_VERSION,
	.match_table = sroce_match,
	.alloc_device = sroce_alloc_device,
	.uninit_device = sroce_uninit_device,
	.alloc_context = sroce_alloc_context,
	.import_context = sroce_import_context,
};

PROVIDER_DRIVER(sroce, sroce_device_ops);
