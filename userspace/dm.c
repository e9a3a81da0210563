// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Device memory: mapped, and copied by the CPU */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include "sroce.h"

#define DM_ALIGN	4u	/* as hardware has it */

static int dm_check(const struct sroce_dm *dm, uint64_t offset, size_t length)
{
	if ((offset | length) & (DM_ALIGN - 1))
		return EINVAL;
	return offset <= dm->length && length <= dm->length - offset ? 0 : EFAULT;
}

static int dm_copy_to(struct ibv_dm *ibv, uint64_t offset, const void *from, size_t length)
{
	struct sroce_dm *dm = to_sdm(ibv);
	int err = dm_check(dm, offset, length);

	if (!err)
		memcpy(dm->memory + offset, from, length);
	return err;
}

static int dm_copy_from(void *to, struct ibv_dm *ibv, uint64_t offset, size_t length)
{
	struct sroce_dm *dm = to_sdm(ibv);
	int err = dm_check(dm, offset, length);

	if (!err)
		memcpy(to, dm->memory + offset, length);
	return err;
}

static int dm_map(struct sroce_dm *dm, struct ibv_context *context,
		  const struct sroce_mmap_info *mi, uint64_t length)
{
	void *memory = mmap(NULL, mi->size, PROT_READ | PROT_WRITE, MAP_SHARED, context->cmd_fd,
			    mi->offset);

	if (memory == MAP_FAILED)
		return errno;
	dm->memory = memory;
	dm->size = mi->size;
	dm->length = length;
	dm->ibv.dm.context = context;
	dm->ibv.dm.memcpy_to_dm = dm_copy_to;
	dm->ibv.dm.memcpy_from_dm = dm_copy_from;
	return 0;
}

struct ibv_dm *sroce_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, 1);
	struct sroce_mmap_info mi = {};
	struct sroce_dm *dm;
	int err;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	fill_attr_out_ptr(cmd, SROCE_ATTR_ALLOC_DM_RESP, &mi);
	err = ibv_cmd_alloc_dm(context, attr, &dm->ibv, cmd);
	if (!err) {
		err = dm_map(dm, context, &mi, attr->length);
		if (err)
			ibv_cmd_free_dm(&dm->ibv);
	}
	if (err) {
		free(dm);
		errno = err;
		return NULL;
	}
	return &dm->ibv.dm;
}

void sroce_unimport_dm(struct ibv_dm *ibv)
{
	struct sroce_dm *dm = to_sdm(ibv);

	munmap(dm->memory, dm->size);
	free(dm);
}

int sroce_free_dm(struct ibv_dm *ibv)
{
	int err = ibv_cmd_free_dm(&to_sdm(ibv)->ibv);

	if (!err)
		sroce_unimport_dm(ibv);
	return err;
}

struct ibv_dm *sroce_import_dm(struct ibv_context *context, uint32_t handle)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DM, SROCE_METHOD_DM_QUERY, 3);
	struct sroce_mmap_info mi = {};
	struct sroce_dm *dm;
	uint64_t length = 0;
	int err;

	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	fill_attr_in_obj(cmd, SROCE_ATTR_QUERY_DM_HANDLE, handle);
	fill_attr_out_ptr(cmd, SROCE_ATTR_QUERY_DM_RESP, &mi);
	fill_attr_out_ptr(cmd, SROCE_ATTR_QUERY_DM_LENGTH, &length);
	err = execute_ioctl(context, cmd) ? errno : dm_map(dm, context, &mi, length);
	if (err) {
		free(dm);
		errno = err;
		return NULL;
	}
	dm->ibv.handle = handle;
	dm->ibv.dm.handle = handle;
	dm->ibv.dm.comp_mask = IBV_DM_MASK_HANDLE;
	return &dm->ibv.dm;
}

struct ibv_mr *sroce_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibv, uint64_t offset,
			       size_t length, unsigned int access)
{
	struct verbs_mr *vmr = calloc(1, sizeof(*vmr));
	int err;

	if (!vmr)
		return NULL;
	err = ibv_cmd_reg_dm_mr(pd, &to_sdm(ibv)->ibv, offset, length, access, vmr, NULL);
	if (err) {
		free(vmr);
		errno = err;
		return NULL;
	}
	return &vmr->ibv_mr;
}
