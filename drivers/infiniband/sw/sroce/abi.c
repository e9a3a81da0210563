// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The user ABI is the one that rdma-core's stock "rxe" provider speaks: every
 * layout is held here against the kernel's own description of it.
 */
#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>
#include <rdma/sroce-abi.h>
#include "compat.h"

#define SAME_SIZE(ours, theirs) \
	static_assert(sizeof(struct ours) == sizeof(struct theirs))
#define SAME_PLACE(ours, o, theirs, t) \
	static_assert(offsetof(struct ours, o) == offsetof(struct theirs, t))

SAME_PLACE(sroce_queue, producer_index, rxe_queue_buf, producer_index);
SAME_PLACE(sroce_queue, consumer_index, rxe_queue_buf, consumer_index);
SAME_PLACE(sroce_queue, data, rxe_queue_buf, data);
static_assert(sizeof(((struct sroce_cqe *)NULL)->wc) == sizeof(struct ib_uverbs_wc));
SAME_SIZE(sroce_mmap_info, mminfo);
SAME_SIZE(sroce_sge, rxe_sge);
SAME_PLACE(sroce_wqe_data, num_sge, rxe_dma_info, num_sge);
SAME_SIZE(sroce_wqe_data, rxe_dma_info);
SAME_SIZE(sroce_send_wr, rxe_send_wr);
SAME_PLACE(sroce_send_wr, opcode, rxe_send_wr, opcode);
SAME_PLACE(sroce_send_wr, send_flags, rxe_send_wr, send_flags);
SAME_PLACE(sroce_send_wr, ex, rxe_send_wr, ex);
SAME_PLACE(sroce_send_wr, wr.mw.mr_lkey, rxe_send_wr, wr.mw.mr_lkey);
SAME_PLACE(sroce_send_wr, wr.mw.mw_rkey, rxe_send_wr, wr.mw.mw_rkey);
SAME_PLACE(sroce_send_wr, wr.mw.rkey, rxe_send_wr, wr.mw.rkey);
SAME_PLACE(sroce_send_wr, wr.mw.access, rxe_send_wr, wr.mw.access);
SAME_PLACE(sroce_send_wr, wr.rdma.rkey, rxe_send_wr, wr.rdma.rkey);
SAME_PLACE(sroce_send_wr, wr.atomic.swap, rxe_send_wr, wr.atomic.swap);
SAME_PLACE(sroce_send_wr, wr.atomic.rkey, rxe_send_wr, wr.atomic.rkey);
#ifdef SROCE_KERNEL_HAS_FLUSH
SAME_PLACE(sroce_send_wr, wr.flush.rkey, rxe_send_wr, wr.flush.rkey);
SAME_PLACE(sroce_send_wr, wr.flush.type, rxe_send_wr, wr.flush.type);
SAME_PLACE(sroce_send_wr, wr.flush.level, rxe_send_wr, wr.flush.level);
#endif
SAME_PLACE(sroce_send_wr, wr.ud.remote_qkey, rxe_send_wr, wr.ud.remote_qkey);
SAME_PLACE(sroce_send_wr, wr.ud.ah_num, rxe_send_wr, wr.ud.ah_num);
SAME_SIZE(sroce_send_wqe, rxe_send_wqe);
SAME_PLACE(sroce_send_wqe, data, rxe_send_wqe, dma);
SAME_PLACE(sroce_send_wqe, payload, rxe_send_wqe, dma.sge);
SAME_SIZE(sroce_recv_wqe, rxe_recv_wqe);
SAME_PLACE(sroce_recv_wqe, sge, rxe_recv_wqe, dma.sge);
SAME_SIZE(sroce_create_ah_resp, rxe_create_ah_resp);
SAME_SIZE(sroce_create_cq_resp, rxe_create_cq_resp);
SAME_SIZE(sroce_resize_cq_resp, rxe_resize_cq_resp);
SAME_SIZE(sroce_create_qp_resp, rxe_create_qp_resp);
SAME_SIZE(sroce_create_srq_resp, rxe_create_srq_resp);
SAME_SIZE(sroce_modify_srq_cmd, rxe_modify_srq_cmd);
