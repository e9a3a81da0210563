// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What we add to the core's ioctls: attributes in a name space of the driver's */
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/sroce-abi.h>
#include "device.h"
#include "dm.h"
#include "uverbs.h"

#define UVERBS_MODULE_NAME	sroce
#include <rdma/uverbs_named_ioctl.h>

static_assert(SROCE_ATTR_QUERY_CONTEXT_RESP == 1U << UVERBS_ID_NS_SHIFT);
static_assert(SROCE_METHOD_DM_QUERY == 1U << UVERBS_ID_NS_SHIFT);
static_assert(SROCE_ATTR_ALLOC_DM_RESP == 1U << UVERBS_ID_NS_SHIFT);

/**
 * sroce_query_ucontext - ib_device_ops.query_ucontext
 * @context: an open device, of which a process was given the file descriptor
 * @attrs: answers with struct sroce_alloc_ucontext_resp, if that is asked for
 *
 * Return: 0 or an errno.
 */
int sroce_query_ucontext(struct ib_ucontext *context, struct uverbs_attr_bundle *attrs)
{
	struct sroce_ucontext *uc = container_of(context, struct sroce_ucontext, ibuc);
	const struct sroce_alloc_ucontext_resp resp = { .ext = uc->ext };
	int err = uverbs_copy_to_struct_or_zero(attrs, SROCE_ATTR_QUERY_CONTEXT_RESP, &resp,
						sizeof(resp));

	return err == -ENOENT ? 0 : err;
}

ADD_UVERBS_ATTRIBUTES_SIMPLE(sroce_query_context, UVERBS_OBJECT_DEVICE,
			     UVERBS_METHOD_QUERY_CONTEXT,
			     UVERBS_ATTR_PTR_OUT(SROCE_ATTR_QUERY_CONTEXT_RESP,
						 UVERBS_ATTR_TYPE(struct sroce_alloc_ucontext_resp),
						 UA_OPTIONAL));

ADD_UVERBS_ATTRIBUTES_SIMPLE(sroce_alloc_dm_attrs, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC,
			     UVERBS_ATTR_PTR_OUT(SROCE_ATTR_ALLOC_DM_RESP,
						 UVERBS_ATTR_TYPE(struct sroce_mmap_info),
						 UA_OPTIONAL));

/* How to map device memory that another process has allocated, and its length */
static int UVERBS_HANDLER(SROCE_METHOD_DM_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_dm *ibdm = uverbs_attr_get_obj(attrs, SROCE_ATTR_QUERY_DM_HANDLE);
	u64 length;
	int err;

	if (IS_ERR(ibdm))
		return PTR_ERR(ibdm);
	length = ibdm->length;
	err = uverbs_copy_to(attrs, SROCE_ATTR_QUERY_DM_RESP, &to_sdm(ibdm)->mi,
			     sizeof(struct sroce_mmap_info));
	return err ?: uverbs_copy_to(attrs, SROCE_ATTR_QUERY_DM_LENGTH, &length, sizeof(length));
}

DECLARE_UVERBS_NAMED_METHOD(SROCE_METHOD_DM_QUERY,
			    UVERBS_ATTR_IDR(SROCE_ATTR_QUERY_DM_HANDLE, UVERBS_OBJECT_DM,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(SROCE_ATTR_QUERY_DM_RESP,
						UVERBS_ATTR_TYPE(struct sroce_mmap_info),
						UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(SROCE_ATTR_QUERY_DM_LENGTH,
						UVERBS_ATTR_TYPE(u64), UA_MANDATORY));

ADD_UVERBS_METHODS(sroce_dm_methods, UVERBS_OBJECT_DM, &UVERBS_METHOD(SROCE_METHOD_DM_QUERY));

const struct uapi_definition sroce_uverbs_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &sroce_query_context),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &sroce_alloc_dm_attrs),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &sroce_dm_methods),
	{},
};
