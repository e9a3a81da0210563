// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "integrity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int end_setup(struct end *e, enum ibv_qp_type type, int n_qps, bool srq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = type,
		.cap = {
			.max_send_wr = MAX_BATCH,
			.max_recv_wr = MAX_BATCH,
			.max_inline_data = 64,
		},
	};
	int error;

	e->type = type;
	e->n_qps = 0;
	e->max_sge = e->dev.attr.max_sge < MAX_SEGMENTS ? e->dev.attr.max_sge : MAX_SEGMENTS;
	e->channel = ibv_create_comp_channel(e->dev.context);
	if (!e->channel)
		return errno;
	e->send_cq = ibv_create_cq(e->dev.context, MAX_BATCH * n_qps, NULL, NULL, 0);
	e->recv_cq = ibv_create_cq(e->dev.context, MAX_BATCH * n_qps, NULL, e->channel, 0);
	if (!e->send_cq || !e->recv_cq)
		return errno;
	if (srq) {
		struct ibv_srq_init_attr attr = {
			.attr = { .max_wr = MAX_BATCH, .max_sge = e->max_sge },
		};

		if ((int)attr.attr.max_sge > e->dev.attr.max_srq_sge)
			attr.attr.max_sge = e->dev.attr.max_srq_sge;
		e->srq = ibv_create_srq(e->dev.pd, &attr);
		if (!e->srq)
			return errno;
	}
	init.cap.max_send_sge = init.cap.max_recv_sge = e->max_sge;
	init.send_cq = e->send_cq;
	init.recv_cq = e->recv_cq;
	init.srq = e->srq;
	while (e->n_qps < n_qps) {
		struct ibv_qp *qp = ibv_create_qp(e->dev.pd, &init);

		if (!qp)
			return errno;
		e->qp[e->n_qps] = qp;
		e->address[e->n_qps++] = (struct address) {
			.gid = e->dev.gid,
			.qpn = qp->qp_num,
			.psn = random() & 0xffffff,
			.qkey = QKEY,
		};
		error = qp_to_init(&e->dev, qp, default_path.access, QKEY);
		if (error)
			return error;
	}
	e->max_inline = init.cap.max_inline_data;
	return 0;
}

int end_connect(struct end *e, const struct address *peer, const struct path *path)
{
	int error;

	for (int i = 0; i < e->n_qps; i++) {
		error = qp_to_rtr(&e->dev, e->qp[i], &peer[i], path);
		if (!error)
			error = qp_to_rts(e->qp[i], e->address[i].psn, path);
		if (error)
			return error;
	}
	return 0;
}

int end_teardown(struct end *e)
{
	int error = 0;

	if (e->mw)
		error = ibv_dealloc_mw(e->mw);
	e->mw = NULL;
	while (!error && e->n_qps)
		error = ibv_destroy_qp(e->qp[--e->n_qps]);
	if (!error && e->srq)
		error = ibv_destroy_srq(e->srq);
	e->srq = NULL;
	if (!error && e->send_cq)
		error = ibv_destroy_cq(e->send_cq);
	e->send_cq = NULL;
	if (!error && e->recv_cq)
		error = ibv_destroy_cq(e->recv_cq);
	e->recv_cq = NULL;
	if (!error && e->channel)
		error = ibv_destroy_comp_channel(e->channel);
	e->channel = NULL;
	return error;
}
