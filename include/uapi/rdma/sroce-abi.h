/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * What sroce shares with its user-space provider: the layout that the kernel
 * publishes for software RoCE (rdma/rdma_user_rxe.h, ABI version 2), so that
 * rdma-core's stock "rxe" provider drives the device.  The layouts are checked
 * against that header when the module is compiled (abi.c).
 *
 * A queue is a ring in memory that the kernel allocates and the user maps:
 * struct sroce_queue, then index_mask + 1 elements of 1 << log2_elem_size
 * bytes.  Indices are taken modulo the size; a ring is full when advancing the
 * producer would meet the consumer.
 *
 * A provider that asks for extensions when it opens the device gets more; what
 * each is, is said at enum sroce_ext.
 */
#ifndef SROCE_ABI_USER_H
#define SROCE_ABI_USER_H

#include <linux/types.h>

#define SROCE_UVERBS_ABI_VERSION	2

/**
 * enum sroce_ext - extensions
 * @SROCE_EXT_DOORBELL: struct sroce_queue.doorbell of a send or receive queue
 *	says when the kernel has to be called
 * @SROCE_EXT_CQE: the entries of a CQ are struct sroce_cqe
 * @SROCE_EXT_USER_RINGS: the create commands may name memory for the queues
 */
enum sroce_ext {
	SROCE_EXT_DOORBELL	= 1 << 0,
	SROCE_EXT_CQE		= 1 << 1,
	SROCE_EXT_USER_RINGS	= 1 << 2,
};

/* On opening the device: the extensions that are wanted */
struct sroce_alloc_ucontext_cmd {
	__u32	ext;
	__u32	reserved;
};

/* The extensions that there are: some of those wanted */
struct sroce_alloc_ucontext_resp {
	__u32	ext;
	__u32	reserved;
};

/*
 * On querying the device: the extensions that there are.  Only who asks for this is
 * told of what cannot be had without them.
 */
struct sroce_query_device_resp {
	__u32	ext;
	__u32	reserved;
};

/*
 * Attributes of our own in ioctls, from 1 << UVERBS_ID_NS_SHIFT on: on querying a
 * context that another process opened, its struct sroce_alloc_ucontext_resp; on
 * allocating device memory, the struct sroce_mmap_info to map it by
 */
enum sroce_query_context_attrs {
	SROCE_ATTR_QUERY_CONTEXT_RESP = 1 << 12,
};

enum sroce_alloc_dm_attrs {
	SROCE_ATTR_ALLOC_DM_RESP = 1 << 12,
};

/* A method of device memory: how another process's is mapped, and its length */
enum sroce_dm_methods {
	SROCE_METHOD_DM_QUERY = 1 << 12,
};

enum sroce_query_dm_attrs {
	SROCE_ATTR_QUERY_DM_HANDLE = 1 << 12,
	SROCE_ATTR_QUERY_DM_RESP,
	SROCE_ATTR_QUERY_DM_LENGTH,
};

/* A value of struct sroce_queue.doorbell: no call is needed, whatever is posted */
#define SROCE_DOORBELL_NEVER	0xffffffffu

/*
 * @doorbell is an index of the ring, written by the kernel: a producer that fills
 * the slot there (and any number of others) has to call the kernel, one that
 * fills only others need not, because the kernel will look by itself.  The
 * producer writes @producer_index, has a full memory barrier, and reads
 * @doorbell; the kernel writes @doorbell, has one, and reads @producer_index.
 */
struct sroce_queue {
	__u32	log2_elem_size;
	__u32	index_mask;
	__u32	pad_1[30];
	__u32	producer_index;
	__u32	pad_2[31];
	__u32	consumer_index;
	__u32	doorbell;
	__u32	pad_3[30];
	__u8	data[];
};

/* Where a queue can be mapped: offset and size for mmap() */
struct sroce_mmap_info {
	__aligned_u64	offset;
	__u32		size;
	__u32		pad;
};

struct sroce_sge {
	__aligned_u64	addr;
	__u32		length;
	__u32		lkey;
};

/*
 * The data part of a work request: @num_sge scatter/gather entries behind it,
 * or for an inline request @length bytes of payload.  Of the five other words
 * the provider writes some; the kernel uses only @length and @num_sge.
 */
struct sroce_wqe_data {
	__u32	length;
	__u32	resid;
	__u32	cur_sge;
	__u32	num_sge;
	__u32	sge_offset;
	__u32	reserved;
};

struct sroce_send_wr {
	__aligned_u64	wr_id;
	__u32		srq_num;	/* XRC only */
	__u32		opcode;		/* enum ib_uverbs_wr_opcode */
	__u32		send_flags;	/* enum ib_uverbs_send_flags */
	union {
		__be32	imm_data;
		__u32	invalidate_rkey;
	} ex;
	union {
		struct {
			__aligned_u64	remote_addr;
			__u32		rkey;
			__u32		reserved;
		} rdma;
		struct {
			__aligned_u64	remote_addr;
			__aligned_u64	compare_add;
			__aligned_u64	swap;
			__u32		rkey;
			__u32		reserved;
		} atomic;
		struct {
			__u32	remote_qpn;
			__u32	remote_qkey;
			__u16	pkey_index;
			__u16	reserved;
			__u32	ah_num;
		} ud;
		struct {
			__aligned_u64	addr;
			__aligned_u64	length;
			__u32		mr_lkey;
			__u32		mw_rkey;	/* key until now */
			__u32		rkey;		/* key from now on */
			__u32		access;
		} mw;
		struct {
			__aligned_u64	remote_addr;
			__u32		reserved;	/* the length is that of the data */
			__u32		rkey;
			__u8		type;
			__u8		level;
		} flush;
		struct {
			__aligned_u64	mr;	/* kernel users only: struct ib_mr * */
			__u32		key;
			__u32		access;
		} reg;
		__u8	size[120];	/* stays, whatever is named above */
	} wr;
};

struct sroce_send_wqe {
	struct sroce_send_wr	wr;
	__u32			status;
	__u32			state;
	__aligned_u64		iova;
	__u32			mask;
	__u32			first_psn;
	__u32			last_psn;
	__u32			ack_length;
	__u32			ssn;
	__u32			has_rd_atomic;
	struct sroce_wqe_data	data;
	__u8			payload[];	/* struct sroce_sge[], or inline data */
};

struct sroce_recv_wqe {
	__aligned_u64		wr_id;
	__u32			reserved;
	__u32			padding;
	struct sroce_wqe_data	data;
	struct sroce_sge	sge[];
};

struct sroce_create_ah_resp {
	__u32	ah_num;
	__u32	reserved;
};

/*
 * With SROCE_EXT_USER_RINGS, memory of the user's for a queue: the address is a
 * multiple of 4096, the length at least that of the queue as the kernel would
 * have made it, to whole pages.  It must stay until the queue is destroyed.  A
 * length of 0 leaves it to the kernel.
 */
struct sroce_user_ring {
	__aligned_u64	addr;
	__aligned_u64	length;
};

struct sroce_create_cq_cmd {
	struct sroce_user_ring	ring;
};

struct sroce_resize_cq_cmd {
	struct sroce_user_ring	ring;
};

struct sroce_create_qp_cmd {
	struct sroce_user_ring	rq;
	struct sroce_user_ring	sq;
};

/*
 * For a raw packet queue pair with an indirection table: how a received frame's place in
 * the table is computed.  @function is IBV_RX_HASH_FUNC_TOEPLITZ, @fields are of enum
 * ibv_rx_hash_fields.
 */
struct sroce_rx_hash {
	__aligned_u64	fields;
	__u8		function;
	__u8		key_length;	/* 40 */
	__u8		key[40];
	__u8		reserved[6];
};

struct sroce_create_rss_qp_cmd {
	struct sroce_create_qp_cmd	qp;
	struct sroce_rx_hash		hash;
};

struct sroce_create_wq_cmd {
	struct sroce_user_ring	ring;
};

struct sroce_create_srq_cmd {
	struct sroce_user_ring	ring;
};

struct sroce_create_cq_resp {
	struct sroce_mmap_info	mi;
};

struct sroce_resize_cq_resp {
	struct sroce_mmap_info	mi;
};

struct sroce_create_qp_resp {
	struct sroce_mmap_info	rq_mi;
	struct sroce_mmap_info	sq_mi;
};

struct sroce_create_wq_resp {
	struct sroce_mmap_info	mi;
};

struct sroce_create_srq_resp {
	struct sroce_mmap_info	mi;
	__u32			srq_num;
	__u32			reserved;
};

/*
 * Flags of a completion, struct ib_uverbs_wc.wc_flags, as libibverbs names them;
 * the kernel's own enumeration has another value for the last
 */
enum sroce_wc_flags {
	SROCE_WC_GRH		= 1 << 0,
	SROCE_WC_WITH_IMM	= 1 << 1,
	SROCE_WC_IP_CSUM_OK	= 1 << 2,
	SROCE_WC_WITH_INV	= 1 << 3,
};

/*
 * An entry of a CQ: what libibverbs calls struct ib_uverbs_wc, 48 bytes, and times
 * for a CQ that was created with IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION
 */
struct sroce_cqe {
	__u8		wc[48];
	__aligned_u64	monotonic_ns;	/* CLOCK_MONOTONIC */
	__aligned_u64	realtime_ns;	/* CLOCK_REALTIME */
};

/* On resizing an SRQ: the user address of the mmap info to fill in */
struct sroce_modify_srq_cmd {
	__aligned_u64	mmap_info_addr;
};

#endif /* SROCE_ABI_USER_H */
