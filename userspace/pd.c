// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Protection domains, thread domains, and parent domains, which name both */
#include <errno.h>
#include <stdlib.h>
#include "sroce.h"

struct ibv_pd *sroce_alloc_pd(struct ibv_context *context)
{
	struct sroce_pd *pd = calloc(1, sizeof(*pd));
	struct ib_uverbs_alloc_pd_resp resp;
	struct ibv_alloc_pd cmd;
	int err;

	if (!pd)
		return NULL;
	err = ibv_cmd_alloc_pd(context, &pd->ibv, &cmd, sizeof(cmd), &resp, sizeof(resp));
	if (err) {
		free(pd);
		errno = err;
		return NULL;
	}
	return &pd->ibv;
}

static int dealloc_parent_domain(struct sroce_pd *pd)
{
	if (atomic_load(&pd->uses))
		return EBUSY;
	if (pd->td)
		atomic_fetch_sub(&pd->td->uses, 1);
	atomic_fetch_sub(&pd->base->uses, 1);
	free(pd);
	return 0;
}

int sroce_dealloc_pd(struct ibv_pd *ibv)
{
	struct sroce_pd *pd = to_spd(ibv);
	int err;

	if (pd->base)
		return dealloc_parent_domain(pd);
	if (atomic_load(&pd->uses))
		return EBUSY;
	err = ibv_cmd_dealloc_pd(ibv);
	if (!err)
		free(pd);
	return err;
}

struct ibv_td *sroce_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct sroce_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibv.context = context;
	return &td->ibv;
}

int sroce_dealloc_td(struct ibv_td *ibv)
{
	struct sroce_td *td = to_std(ibv);

	if (atomic_load(&td->uses))
		return EBUSY;
	free(td);
	return 0;
}

static int check_parent_domain(const struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			       IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;

	if (attr->comp_mask & ~known)
		return EOPNOTSUPP;
	if (!attr->pd || to_spd(attr->pd)->base)
		return EINVAL;
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS &&
	    (!attr->alloc || !attr->free))
		return EINVAL;
	return 0;
}

struct ibv_pd *sroce_alloc_parent_domain(struct ibv_context *context,
					 struct ibv_parent_domain_init_attr *attr)
{
	struct sroce_pd *pd;

	errno = check_parent_domain(attr);
	if (errno)
		return NULL;
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	ibv_initialize_parent_domain(&pd->ibv, attr->pd);
	pd->base = to_spd(attr->pd);
	atomic_fetch_add(&pd->base->uses, 1);
	if (attr->td) {
		pd->td = to_std(attr->td);
		atomic_fetch_add(&pd->td->uses, 1);
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		pd->alloc = attr->alloc;
		pd->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		pd->pd_context = attr->pd_context;
	return &pd->ibv;
}

/* Another process's, through a duplicate of its file descriptor */
struct ibv_pd *sroce_import_pd(struct ibv_context *context, uint32_t handle)
{
	struct sroce_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return NULL;
	pd->ibv.context = context;
	pd->ibv.handle = handle;
	return &pd->ibv;
}

void sroce_unimport_pd(struct ibv_pd *ibv)
{
	free(to_spd(ibv));
}
