// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * churn - make and destroy every kind of object, for ever, come what may
 *
 * usage: churn DEVICE GID_INDEX
 *
 * For tests that take the device away meanwhile: there is always a call under way.
 * Ends when killed.
 */
#include "verbs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE (1 << 20)

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list && list[i] && !context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return context;
}

/* One of each, used a little; false when the device is gone */
static bool round_of_objects(struct device *dev, void *memory)
{
	struct ibv_mr *mr = ibv_reg_mr(dev->pd, memory, SIZE, ALL_ACCESS);
	struct ibv_cq *cq = ibv_create_cq(dev->context, 64, NULL, NULL, 0);
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 64, .max_sge = 2 } };
	struct ibv_srq *srq = ibv_create_srq(dev->pd, &srq_init);
	struct ibv_qp_init_attr init = {
		.qp_type = random() % 2 ? IBV_QPT_RC : IBV_QPT_UD,
		.send_cq = cq, .recv_cq = cq, .srq = random() % 2 ? srq : NULL,
		.cap = { .max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 2,
			 .max_recv_sge = 2 },
	};
	struct ibv_ah *ah = ah_new(dev, &dev->gid);
	struct ibv_qp *qp = cq ? ibv_create_qp(dev->pd, &init) : NULL;
	bool there = qp && mr;

	if (there) {
		struct ibv_sge sge = { (uintptr_t)memory, SIZE, mr->lkey };
		struct ibv_send_wr *bad, wr = {
			.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
			.wr.rdma = { (uintptr_t)memory, mr->rkey },
		};
		/* to itself */
		struct address self = { .gid = dev->gid, .qpn = qp->qp_num };

		if (!qp_to_init(dev, qp, default_path.access, 1) &&
		    !qp_to_rtr(dev, qp, &self, &default_path) &&
		    !qp_to_rts(qp, 0, &default_path) && init.qp_type == IBV_QPT_RC)
			ibv_post_send(qp, &wr, &bad);
		ibv_resize_cq(cq, 64 + random() % 64);
		ibv_req_notify_cq(cq, 0);
	}
	if (qp)
		ibv_destroy_qp(qp);
	if (ah)
		ibv_destroy_ah(ah);
	if (srq)
		ibv_destroy_srq(srq);
	if (cq)
		ibv_destroy_cq(cq);
	if (mr)
		ibv_dereg_mr(mr);
	return there;
}

int main(int argc, char **argv)
{
	void *memory = aligned_alloc(4096, SIZE);

	if (argc != 3)
		die("usage: churn DEVICE GID_INDEX");
	srandom(getpid());
	memset(memory, 0, SIZE);
	for (;;) {
		struct device dev = { .gid_index = atoi(argv[2]) };

		dev.context = open_device(argv[1]);
		if (!dev.context) {
			usleep(1000);
			continue;
		}
		dev.pd = ibv_alloc_pd(dev.context);
		ibv_query_gid(dev.context, 1, dev.gid_index, &dev.gid);
		while (dev.pd && random() % 50 && round_of_objects(&dev, memory))
			;
		if (dev.pd)
			ibv_dealloc_pd(dev.pd);
		ibv_close_device(dev.context);
	}
}
