// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Address handles: the kernel has the address, a work request names it by number */
#include <errno.h>
#include <stdlib.h>
#include "sroce.h"

struct create_ah_resp {
	struct ib_uverbs_create_ah_resp	ibv;
	struct sroce_create_ah_resp	drv;
};

static_assert(offsetof(struct create_ah_resp, drv) == sizeof(struct ib_uverbs_create_ah_resp),
	      "the driver's part follows at once");

struct ibv_ah *sroce_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct sroce_ah *ah = calloc(1, sizeof(*ah));
	struct create_ah_resp resp;
	int err;

	if (!ah)
		return NULL;
	err = ibv_cmd_create_ah(pd, &ah->ibv, attr, &resp.ibv, sizeof(resp));
	if (err) {
		free(ah);
		errno = err;
		return NULL;
	}
	ah->number = resp.drv.ah_num;
	return &ah->ibv;
}

int sroce_destroy_ah(struct ibv_ah *ibv)
{
	int err = ibv_cmd_destroy_ah(ibv);

	if (!err)
		free(to_sah(ibv));
	return err;
}
