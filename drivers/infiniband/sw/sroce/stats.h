/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Counters, under the names that hardware drivers give them where there is one */
#ifndef SROCE_STATS_H
#define SROCE_STATS_H

#include <linux/percpu.h>
#include <linux/types.h>

#define SROCE_COUNTERS(C) \
	C(SENT_PKTS, "sent_pkts") \
	C(RCVD_PKTS, "rcvd_pkts") \
	C(SENT_BYTES, "sent_bytes") \
	C(RCVD_BYTES, "rcvd_bytes") \
	C(SENT_MULTICAST, "sent_multicast_pkts") \
	C(RCVD_MULTICAST, "rcvd_multicast_pkts") \
	C(SENT_FRAMES, "sent_frames") \
	C(RCVD_FRAMES, "rcvd_frames") \
	C(SEND_DROPPED, "send_dropped") \
	C(NO_ROUTE, "send_no_route") \
	C(ICRC_ERRORS, "rx_icrc_encapsulated") \
	C(RCV_MALFORMED, "rcvd_malformed") \
	C(RCV_NO_QP, "rcvd_no_qp") \
	C(RCV_BAD_PATH, "rcvd_wrong_path") \
	C(RCV_BAD_PKEY, "rcvd_bad_pkey") \
	C(RCV_BAD_QKEY, "rcvd_bad_qkey") \
	C(RCV_WRONG_SERVICE, "rcvd_wrong_service") \
	C(RCV_WRONG_STATE, "rcvd_wrong_state") \
	C(OUT_OF_SEQUENCE, "out_of_sequence") \
	C(PACKET_SEQ_ERR, "packet_seq_err") \
	C(DUPLICATE_REQUEST, "duplicate_request") \
	C(IMPLIED_NAK, "implied_nak_seq_err") \
	C(ACK_TIMEOUT, "local_ack_timeout_err") \
	C(RNR_NAK_SENT, "out_of_buffer") \
	C(RNR_NAK_RCVD, "rnr_nak_retry_err") \
	C(RETRY_EXCEEDED, "req_transport_retries_exceeded") \
	C(RNR_EXCEEDED, "req_rnr_retries_exceeded") \
	C(REQ_CQE_ERROR, "req_cqe_error") \
	C(REQ_CQE_FLUSH, "req_cqe_flush_error") \
	C(RESP_CQE_ERROR, "resp_cqe_error") \
	C(RESP_CQE_FLUSH, "resp_cqe_flush_error") \
	C(REQ_REMOTE_INVALID, "req_remote_invalid_request") \
	C(REQ_REMOTE_ACCESS, "req_remote_access_errors") \
	C(RESP_REMOTE_ACCESS, "resp_remote_access_errors") \
	C(RESP_LENGTH, "resp_local_length_error") \
	C(WRITE_REQUESTS, "rx_write_requests") \
	C(READ_REQUESTS, "rx_read_requests") \
	C(ATOMIC_REQUESTS, "rx_atomic_requests") \
	C(ECN_MARKED, "np_ecn_marked_roce_packets") \
	C(CNP_SENT, "np_cnp_sent") \
	C(CNP_HANDLED, "rp_cnp_handled") \
	C(CNP_IGNORED, "rp_cnp_ignored") \
	C(SLOW_RESTART, "roce_slow_restart") \
	C(LINK_DOWNED, "link_downed")

#define SROCE_COUNTER_ENUM(id, name) SROCE_CNT_##id,
enum sroce_counter {
	SROCE_COUNTERS(SROCE_COUNTER_ENUM)
	SROCE_CNT_COUNT
};

/* Read and written per CPU; a reader sums them and may see them change */
struct sroce_counters {
	u64	value[SROCE_CNT_COUNT];
};

struct ib_device;
struct rdma_hw_stats;

struct sroce_dev;

const char *sroce_counter_name(enum sroce_counter counter);
u64 sroce_counter_sum(const struct sroce_dev *dev, enum sroce_counter counter);
void sroce_stats_fill(struct rdma_hw_stats *stats, const struct sroce_counters __percpu *from,
		      const struct sroce_counters __percpu *less);
struct rdma_hw_stats *sroce_alloc_port_stats(struct ib_device *ibdev, u32 port);
int sroce_get_port_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
			 u32 port, int index);

#endif /* SROCE_STATS_H */
