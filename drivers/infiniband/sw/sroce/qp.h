/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Queue pairs: the objects, their states, and the ways in and out of them */
#ifndef SROCE_QP_H
#define SROCE_QP_H

#include <linux/kref.h>
#include <linux/ktime.h>
#include <linux/skbuff.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include "ah.h"
#include "coalesce.h"
#include "compat.h"
#include "congestion.h"
#include "cq.h"
#include "device.h"
#include "hold.h"
#include "mw.h"
#include "recover.h"
#include "rq.h"
#include "srq.h"
#include "wire.h"

struct sroce_rss;

/* When a queue pair's worker has something to do */
enum sroce_work {
	SROCE_WORK_NONE,
	SROCE_WORK_RECHECK,	/* a user may post receives in the error state, unheard */
	SROCE_WORK_LATER,	/* after a while: there was no memory, or no ACK came */
	SROCE_WORK_NOW,		/* a budget was exhausted */
};

/* Frames that one turn of a requester or responder may produce */
#define SROCE_TX_BUDGET		32

/* Packets likewise: without a route they produce no frames */
#define SROCE_PACKET_BUDGET	4096

/**
 * struct sroce_stream - packets whose order matters to the receiver
 * @cpu: CPU that sent the last of them
 * @stamp: when, jiffies
 *
 * Frames that two CPUs send can overtake each other, since each CPU has its own
 * queues in the stack.  So a stream moves to another CPU only when none of its
 * packets can be in a queue; until then that CPU's worker sends.
 */
struct sroce_stream {
	int		cpu;
	unsigned long	stamp;
};

/* What a send work request has come to; kernel memory */
enum sroce_swqe_state {
	SROCE_WQE_SENDING,	/* some of its packets may not have been sent yet */
	SROCE_WQE_DONE,		/* needs nothing more from the wire */
	SROCE_WQE_FAILED,	/* as DONE, with an error */
};

/**
 * struct sroce_swqe - a send work request that was begun: copied once, checked
 * @wr_id: the user's name for it
 * @remote_addr: for WRITE, READ and atomics
 * @rkey: likewise; for an invalidation the key, for a registration the new key
 * @length: of the message, bytes
 * @packets: PSNs that it takes
 * @first_psn: the first of them
 * @srq_num: for XRC, of the SRQ that it is for
 * @imm: immediate data, as it is on the wire, or the key to be invalidated
 * @compare_add: operands of an atomic
 * @swap: likewise
 * @flush_length: bytes that a FLUSH is about
 * @feth: what it does, as on the wire
 * @mr: region of a fast registration
 * @access: its permissions
 * @bind: operands of a memory window bind
 * @remote_qpn: for UD, with @qkey, @pkey_index and @ah_num
 * @opcode: enum ib_wr_opcode
 * @flags: IB_SEND_*
 * @state: enum sroce_swqe_state
 * @status: enum ib_wc_status with which it completes
 * @repeated: a READ was requested again, perhaps a part of it only
 */
struct sroce_swqe {
	u64			wr_id;
	u64			remote_addr;
	u32			rkey;
	u32			length;
	u32			packets;
	u32			first_psn;
	u32			srq_num;
	__be32			imm;
	union {
		struct {
			u64		compare_add;
			u64		swap;
		};
		struct {
			u32		flush_length;
			u32		feth;
		};
		struct {
			struct ib_mr	*mr;
			int		access;
		};
		struct sroce_bind	bind;
		struct {
			u32		remote_qpn;
			u32		qkey;
			u32		ah_num;
			u16		pkey_index;
		};
	};
	u8			opcode;
	u8			flags;
	u8			state;
	u8			status;
	bool			repeated;
};

/**
 * struct sroce_requester - the sending half (9.9)
 * @ring: send queue; its index is the oldest work request not completed
 * @post_lock: serialises kernel users that post; taken before the queue pair's
 * @wqes: begun work requests by slot of @ring, allocated at the first post
 * @next: slot of the work request of which packets are being sent
 * @fresh: slot of the first work request that was never begun
 * @gather: list of the work request in slot @gather_slot, if @gather_valid
 * @scatter: the same, for what READ and atomics bring back
 * @max_sge: entries that a list can have
 * @max_inline: bytes of payload that fit into a work request
 * @una: oldest PSN not acknowledged
 * @psn: PSN of the next packet to be sent; goes back to @una to repeat
 * @psn_max: PSN after the last that was ever sent
 * @psn_end: PSN after the last that was ever given to a work request
 * @psn_asked: the last PSN whose packet asks for an answer
 * @gap: a response is missing and was asked for again: later ones are held
 * @hold: responses that came before their turn
 * @acked: PSN up to which a peer acknowledged, beyond a response that is missing
 * @recovery: what was lost on the way, and how much may be under way
 * @congestion: how fast it goes, and the responder with its answers to READs
 * @stream: where packets are sent
 * @rd_atomic: READs and atomics under way
 * @retries: left before RETRY_EXC_ERR
 * @rnr_retries: left before RNR_RETRY_EXC_ERR
 * @rnr_wait: a receiver was not ready; the timer tells when to go on
 * @rnr_until: not before this time
 * @timer: when to repeat, or to go on after @rnr_wait
 * @deadline: when that is due, jiffies; the timer may fire earlier
 * @armed: it is due at all
 */
struct sroce_requester {
	struct sroce_ring	ring;
	spinlock_t		post_lock;	/* see above */
	struct sroce_swqe	*wqes;
	u32			next;
	u32			fresh;
	struct sroce_sgl	*gather;
	u32			gather_slot;
	bool			gather_valid;
	struct sroce_sgl	*scatter;
	u32			scatter_slot;
	bool			scatter_valid;
	u32			max_sge;
	u32			max_inline;
	u32			una;
	u32			psn;
	u32			psn_max;
	u32			psn_end;
	u32			psn_asked;
	bool			gap;
	struct sroce_hold	hold;
	u32			acked;
	struct sroce_recovery	recovery;
	struct sroce_congestion	congestion;
	struct sroce_stream	stream;
	u32			rd_atomic;
	u8			retries;
	u8			rnr_retries;
	bool			rnr_wait;
	ktime_t			rnr_until;
	struct timer_list	timer;
	unsigned long		deadline;
	bool			armed;
};

/**
 * struct sroce_span - packets of a READ response that are to be sent
 * @next: the next, relative to the first of the response
 * @end: where it ends, likewise
 * @stop: the same in bytes
 * @resumed: some of it was sent
 */
struct sroce_span {
	u32			next;
	u32			end;
	u32			stop;
	bool			resumed;
};

static inline bool sroce_span_pending(const struct sroce_span *span)
{
	return span->next < span->end;
}

/**
 * struct sroce_resource - a READ or atomic that we respond to (9.7.7, 9.4.5)
 * @atomic: which of both
 * @empty: an atomic write or a FLUSH: answered like a READ of nothing
 * @pending: there is something to send
 * @again: what is pending was sent before
 * @first_psn: PSN of the request
 * @packets: PSNs that the response takes
 * @rest: what is to be sent: a repeated READ can be for a part
 * @gap: what is to be sent before that: it was lost while the response is under way
 * @msn: message sequence number in the response
 * @va: for READ, with @rkey and @length
 * @srq_num: for XRC, of the SRQ that it was for
 * @original: for an atomic, what was there
 */
struct sroce_resource {
	bool			atomic;
	bool			empty;
	bool			pending;
	bool			again;
	u32			first_psn;
	u32			packets;
	struct sroce_span	rest;
	struct sroce_span	gap;
	u32			msn;
	u64			va;
	u32			rkey;
	u32			length;
	u32			srq_num;
	u64			original;
};

/**
 * struct sroce_responder - the receiving half
 * @rq: receive queue, when there is no SRQ
 * @xrc_srq: for an XRC target, SRQ that it works for now, with a reference; while
 *	the queue pair is locked
 * @srq_num: number of the SRQ that @recv is from
 * @recv: work request that the message goes to
 * @psn: PSN expected next (ePSN)
 * @msn: message sequence number
 * @message: what kind of message is under way: SROCE_OP_SEND, SROCE_OP_WRITE, 0
 * @offset: bytes of it so far
 * @va: of a WRITE, with @rkey and @length
 * @nak_sent: a NAK for a gap or an unready receiver was sent: no other until the
 *	expected packet comes
 * @not_ready: it was for an unready receiver
 * @hold: requests that came before their turn
 * @ack_due: an ACK is to be sent
 * @nak: syndrome to be sent behind everything else, 0 for none
 * @nak_psn: its PSN
 * @failed: the NAK is fatal: nothing is accepted any more, and with the NAK
 *	the queue pair goes to the error state
 * @resources: the last READs and atomics, as many as the peer may have under way
 * @num_resources: how many, a power of two so that numbers may wrap
 * @resource_end: number of the next one; number n is resources[n % num_resources]
 * @resource_next: number of the first that may have something to send
 * @stream: where READ responses are sent
 * @recheck: jiffies after which the receive queue is looked at, in the error state
 */
struct sroce_responder {
	struct sroce_rq		rq;
	struct sroce_srq	*xrc_srq;
	u32			srq_num;
	struct sroce_recv	recv;
	u32			psn;
	u32			msn;
	u16			message;
	u32			offset;
	u64			va;
	u32			rkey;
	u32			length;
	bool			nak_sent;
	bool			not_ready;
	struct sroce_hold	hold;
	bool			ack_due;
	u8			nak;
	u32			nak_psn;
	bool			failed;
	struct sroce_resource	*resources;
	u32			num_resources;
	u32			resource_end;
	u32			resource_next;
	struct sroce_stream	stream;
	unsigned long		recheck;
};

/**
 * struct sroce_qp - a queue pair
 * @ibqp: the core's part
 * @dev: device
 * @ref: the verbs object's, one for each user of a look-up, one for queued work;
 *	while there are any, the object and its CQs and SRQ stay
 * @gone: completed by the last reference
 * @lock: protects everything below.  Never held while a frame is transmitted
 *	or a consumer is called: sroce_qp_unlock() does both after it.
 * @state: as the attribute
 * @attr: attributes that were set
 * @xrcd: for an XRC target, its domain
 * @sig_type: whether every send work request completes with a CQE
 * @av: the peer, for connected services
 * @mtu: path MTU, bytes
 * @ip_id: IPv4 ID of the next packet
 * @req: requester
 * @resp: responder
 * @rung: a doorbell rang that the requester has not run for; whoever sets it tries
 *	@lock, and whoever drops @lock looks at it, so that nobody spins
 * @coalesce: which doorbells the requester runs for
 * @work: does what exceeded a budget
 * @work_due: when sroce_qp_unlock() is to queue @work
 * @work_cpu: on which CPU
 * @tx: frames to be transmitted in this order
 * @transmitting: somebody is at it, on @transmit_cpu; others leave it to him
 * @events: asynchronous events to be reported, a bit for each enum ib_event_type
 * @comm_est: IB_EVENT_COMM_EST was reported
 * @sq_drained: IB_EVENT_SQ_DRAINED was reported, or is not wanted
 * @overrun: a CQ lost a completion: the worker takes the queue pair to the error state
 * @dead: being destroyed
 * @rss: how a raw packet queue pair divides what it receives among others, or NULL
 * @counters: its own, NULL when it is bound to none
 */
struct sroce_qp {
	struct ib_qp			ibqp;
	struct sroce_dev		*dev;
	struct kref			ref;
	struct completion		gone;
	spinlock_t			lock;	/* see above */
	enum ib_qp_state		state;
	struct ib_qp_attr		attr;
	struct ib_xrcd			*xrcd;
	enum ib_sig_type		sig_type;
	struct sroce_av			*av;
	u32				mtu;
	u16				ip_id;
	struct sroce_requester		req;
	struct sroce_responder		resp;
	bool				rung;
	struct sroce_coalesce		coalesce;
	struct delayed_work		work;
	enum sroce_work			work_due;
	int				work_cpu;
	struct sk_buff_head		tx;
	bool				transmitting;
	int				transmit_cpu;
	u32				events;
	bool				comm_est;
	bool				sq_drained;
	bool				overrun;
	bool				dead;
	struct sroce_rss		*rss;
	struct sroce_counters __percpu	*counters;
};

static inline struct sroce_qp *to_sqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct sroce_qp, ibqp);
}

/* In the queue pair's own counters, if it has some; it is locked */
static inline void sroce_qp_count_own(struct sroce_qp *qp, enum sroce_counter counter, u64 n)
{
	if (likely(!qp->counters))
		return;
	__this_cpu_add(qp->counters->value[counter], n);
	__this_cpu_add(qp->dev->bound_counters->value[counter], n);
}

static inline void sroce_qp_count_add(struct sroce_qp *qp, enum sroce_counter counter, u64 n)
{
	sroce_count_add(qp->dev, counter, n);
	sroce_qp_count_own(qp, counter, n);
}

static inline void sroce_qp_count(struct sroce_qp *qp, enum sroce_counter counter)
{
	sroce_qp_count_add(qp, counter, 1);
}

/* Does a response of its own answer this request, rather than any ACK behind it? */
static inline bool sroce_wqe_is_rd_atomic(const struct sroce_swqe *wqe)
{
	return wqe->opcode == IB_WR_RDMA_READ || wqe->opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
	       wqe->opcode == IB_WR_ATOMIC_FETCH_AND_ADD ||
	       wqe->opcode == SROCE_WR_ATOMIC_WRITE || wqe->opcode == SROCE_WR_FLUSH;
}

static inline bool sroce_qp_is_datagram(const struct sroce_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_UD || qp->ibqp.qp_type == IB_QPT_GSI;
}

/* Of whole Ethernet frames */
static inline bool sroce_qp_is_raw(const struct sroce_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_RAW_PACKET;
}

/* RC, and XRC, which differs only in whose receive queue it is */
static inline bool sroce_qp_is_reliable(const struct sroce_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_RC || qp->ibqp.qp_type == IB_QPT_XRC_INI ||
	       qp->ibqp.qp_type == IB_QPT_XRC_TGT;
}

/* The half of an XRC connection that receives, into whatever SRQ a request names */
static inline bool sroce_qp_is_xrc_target(const struct sroce_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_XRC_TGT;
}

/* Where the responder keeps its request of a number */
static inline struct sroce_resource *sroce_resource(const struct sroce_responder *resp,
						    u32 number)
{
	return &resp->resources[number % resp->num_resources];
}

/* The protection domain of what a peer accesses */
static inline struct ib_pd *sroce_qp_memory_pd(const struct sroce_qp *qp)
{
	return qp->resp.xrc_srq ? qp->resp.xrc_srq->ibsrq.pd : qp->ibqp.pd;
}

/* May it receive? (10.3.1) */
static inline bool sroce_qp_can_receive(const struct sroce_qp *qp)
{
	return qp->state == IB_QPS_RTR || qp->state == IB_QPS_RTS ||
	       qp->state == IB_QPS_SQD || qp->state == IB_QPS_SQE;
}

/* May it send, with work requests begun? */
static inline bool sroce_qp_can_send(const struct sroce_qp *qp)
{
	return qp->req.wqes && (qp->state == IB_QPS_RTS || qp->state == IB_QPS_SQD);
}

int sroce_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata);
int sroce_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
int sroce_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_qp_init_attr *init);
int sroce_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
int sroce_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad_wr);

int sroce_qp_create_half(struct sroce_qp *qp, struct ib_qp_init_attr *init,
			 struct ib_udata *udata, const struct sroce_user_ring *user,
			 struct sroce_mmap_info *mi);
int sroce_qp_move(struct sroce_qp *qp, int from, enum ib_qp_state to);
void sroce_qp_end(struct sroce_qp *qp);
int sroce_qp_init(void);
void sroce_qp_exit(void);
struct sroce_qp *sroce_qp_find(const struct sroce_dev *dev, u32 qpn);
void sroce_qp_put(struct sroce_qp *qp);
void sroce_qp_unlock(struct sroce_qp *qp) __releases(&qp->lock);
void sroce_qp_ring(struct sroce_qp *qp);
bool sroce_stream_here(struct sroce_qp *qp, struct sroce_stream *stream, bool empty,
		       enum sroce_work when);
void sroce_qp_work_due(struct sroce_qp *qp, enum sroce_work when);
void sroce_qp_kick(struct sroce_qp *qp);
void sroce_qp_error(struct sroce_qp *qp);
void sroce_qp_event(struct sroce_qp *qp, enum ib_event_type type);
void sroce_qp_complete(struct sroce_qp *qp, struct ib_cq *ibcq, struct ib_wc *wc, bool solicited);

#endif /* SROCE_QP_H */
