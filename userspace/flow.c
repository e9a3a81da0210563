// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Flow steering rules, which the kernel looks at alone */
#include <errno.h>
#include <stdlib.h>
#include "sroce.h"

struct ibv_flow *sroce_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	struct ibv_flow *flow = calloc(1, sizeof(*flow));
	int err;

	if (!flow)
		return NULL;
	err = ibv_cmd_create_flow(qp, flow, attr, NULL, 0);
	if (err) {
		free(flow);
		errno = err;
		return NULL;
	}
	return flow;
}

int sroce_destroy_flow(struct ibv_flow *flow)
{
	int err = ibv_cmd_destroy_flow(flow);

	if (!err)
		free(flow);
	return err;
}
