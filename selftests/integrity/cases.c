// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "integrity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../common/tap.h"

#define GUARD 64
#define ANY -1

static const char *const op_names[OPERATIONS] = {
	"SEND", "SEND with immediate", "WRITE", "WRITE with immediate", "READ",
	"CMP_SWAP", "FETCH_ADD", "SEND with invalidate",
};

static const enum ibv_wr_opcode wr_opcodes[OPERATIONS] = {
	IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
	IBV_WR_SEND_WITH_INV,
};

static const enum ibv_wc_opcode wc_opcodes[OPERATIONS] = {
	IBV_WC_SEND, IBV_WC_SEND, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ,
	IBV_WC_COMP_SWAP, IBV_WC_FETCH_ADD, IBV_WC_SEND,
};

static const char *const type_names[] = {
	[IBV_QPT_RC] = "RC", [IBV_QPT_UC] = "UC", [IBV_QPT_UD] = "UD",
};

static struct end *e;
static int control;
static uint64_t random_state;

/* State of one test point. */
static struct reply peer;			/* to SETUP */
static struct path path;
static struct ibv_ah *ah;
static struct transfer batch[MAX_BATCH];
static int batch_size;
static uint32_t local_used, remote_used;	/* bytes of either arena */
static uint64_t transfers;			/* number done */
static bool serial;				/* one at a time */
static bool lost;				/* by UC or UD, which may */

static uint64_t rnd(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static uint32_t below(uint32_t n)
{
	return n ? rnd() % n : 0;
}

/* ------------------------------------------------------------ the server */

static struct reply call(struct request *q, const void *more, size_t length)
{
	struct reply r;

	control_send(control, q, sizeof(*q));
	if (length)
		control_send(control, more, length);
	if (!control_receive(control, &r, sizeof(r)))
		die("the server is gone");
	return r;
}

static bool start(enum ibv_qp_type type, int n_qps, bool srq, enum ibv_mtu mtu)
{
	struct request q = { .kind = SETUP, .setup = { type, n_qps, srq } };
	int error;

	path = default_path;
	path.mtu = mtu;
	ah = NULL;
	serial = false;
	transfers = 0;
	peer = call(&q, NULL, 0);
	expect(!peer.error, "server: set up %d %s queue pairs: %s", n_qps, type_names[type],
	       strerror(peer.error));
	error = end_setup(e, type, n_qps, false);
	expect(!error, "set up %d %s queue pairs: %s", n_qps, type_names[type], strerror(error));
	q = (struct request) { .kind = CONNECT, .connect.path = path };
	memcpy(q.connect.peer, e->address, sizeof(e->address));
	error = call(&q, NULL, 0).error;
	expect(!error, "server: connect: %s", strerror(error));
	error = end_connect(e, peer.setup.address, &path);
	expect(!error, "connect: %s", strerror(error));
	if (type == IBV_QPT_UD) {
		ah = ah_new(&e->dev, &peer.setup.address[0].gid);
		expect(ah, "address handle: %s", strerror(errno));
	}
	return true;
}

static bool stop(void)
{
	struct request q = { .kind = TEARDOWN };
	int error, server_error = call(&q, NULL, 0).error;

	if (ah && ibv_destroy_ah(ah))
		fail("destroy address handle");
	ah = NULL;
	error = end_teardown(e);
	expect(!server_error, "server: tear down: %s", strerror(server_error));
	expect(!error, "tear down: %s", strerror(error));
	return true;
}

/* ------------------------------------------------------------ planning */

static void new_batch(void)
{
	batch_size = 0;
	local_used = remote_used = 0;
}

static struct segment take(uint32_t *used, uint32_t length, int misalignment)
{
	struct segment s = { .length = length };

	if (misalignment == ANY)
		misalignment = below(8);
	s.offset = ((*used + GUARD + GRH + 7) & ~7u) + misalignment;
	*used = s.offset + length;
	if (*used > ARENA_SIZE - 8192)
		die("the batch does not fit the arena");
	return s;
}

/* Cut a message into n segments at random, some of them empty. */
static int split(struct segment *s, uint32_t *used, uint32_t length, int n, int misalignment)
{
	uint32_t cut[MAX_SEGMENTS + 1] = { 0 };

	for (int i = 1; i < n; i++) {
		uint32_t c = below(4) ? below(length + 1) : cut[i - 1];
		int at = i;

		for (; at > 1 && cut[at - 1] > c; at--)
			cut[at] = cut[at - 1];
		cut[at] = c;
	}
	cut[n] = length;
	for (int i = 0; i < n; i++)
		s[i] = take(used, cut[i + 1] - cut[i], misalignment);
	return n;
}

/* Add a transfer to the batch; its fields can still be changed. */
static struct transfer *plan(enum operation op, uint32_t length, int n_local, int n_remote,
			     int local_misalignment, int remote_misalignment)
{
	struct transfer *t = &batch[batch_size++];

	memset(t, 0, sizeof(*t));
	t->op = op;
	t->seed = rnd();
	t->imm = rnd();
	t->remote_mr = below(ARENA_MRS);
	if (op == CMP_SWAP || op == FETCH_ADD) {
		length = 8;
		n_local = n_remote = 1;
		remote_misalignment = 0;
		t->original = stream_word(t->seed);
		t->operand = op == CMP_SWAP && below(2) ? t->original : rnd();
		t->swap = rnd();
		if (op == FETCH_ADD)
			t->after = t->original + t->operand;
		else
			t->after = t->original == t->operand ? t->swap : t->original;
	}
	if (op != SEND && op != SEND_IMM && op != SEND_INV)
		n_remote = 1;
	t->length = length;
	t->n_local = split(t->local, &local_used, length, n_local, local_misalignment);
	t->n_remote = split(t->remote, &remote_used, length, n_remote, remote_misalignment);
	/* sometimes a receive request has room to spare */
	if (takes_receive(op) && op != WRITE_IMM && below(2)) {
		t->remote[t->n_remote - 1].length += 50;
		remote_used += 50;
	}
	return t;
}

/* ------------------------------------------------------------ doing */

static const char *describe(const struct transfer *t)
{
	static char text[200];

	snprintf(text, sizeof(text), "%s of %u bytes, %d local segments, first at +%u (mod 8: %u), %d remote, first at +%u (mod 8: %u), number %d of %d",
		 op_names[t->op], t->length, t->n_local, t->local[0].offset,
		 t->local[0].offset % 8, t->n_remote, t->remote[0].offset,
		 t->remote[0].offset % 8, (int)(t - batch), batch_size);
	return text;
}

static bool post(const struct transfer *t)
{
	struct ibv_sge sge[MAX_SEGMENTS];
	struct ibv_send_wr *bad, wr = {
		.wr_id = t - batch,
		.opcode = wr_opcodes[t->op],
		.sg_list = sge,
		.num_sge = t->n_local,
		.imm_data = t->imm,
	};
	uint64_t remote_addr = peer.setup.memory + t->remote[0].offset;
	uint32_t rkey = t->rkey ? t->rkey : peer.setup.rkey[t->remote_mr];
	int error;

	if (t->op == SEND_INV)
		wr.invalidate_rkey = t->rkey;
	if (t->flags & FENCE)
		wr.send_flags |= IBV_SEND_FENCE;
	if (t->flags & SOLICITED)
		wr.send_flags |= IBV_SEND_SOLICITED;
	if (t->flags & INLINE)
		wr.send_flags |= IBV_SEND_INLINE;
	if (!(t->flags & UNSIGNALLED))
		wr.send_flags |= IBV_SEND_SIGNALED;
	for (int i = 0; i < t->n_local; i++) {
		sge[i].addr = (uintptr_t)(e->arena.memory + t->local[i].offset);
		sge[i].length = t->local[i].length;
		sge[i].lkey = t->flags & INLINE ? 0 : e->arena.mr[(i + wr.wr_id) % ARENA_MRS]->lkey;
	}
	if (e->type == IBV_QPT_UD) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = peer.setup.address[t->qp].qpn;
		wr.wr.ud.remote_qkey = QKEY;
	} else if (t->op == CMP_SWAP || t->op == FETCH_ADD) {
		wr.wr.atomic.remote_addr = remote_addr;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = t->operand;
		wr.wr.atomic.swap = t->swap;
	} else {
		wr.wr.rdma.remote_addr = remote_addr;
		wr.wr.rdma.rkey = rkey;
	}
	error = ibv_post_send(e->qp[t->qp], &wr, &bad);
	expect(!error, "post: %s: %s", strerror(error), describe(t));
	/* inline data belongs to the queue by now */
	for (int i = 0; t->flags & INLINE && i < t->n_local; i++)
		memset(e->arena.memory + t->local[i].offset, 0xee, t->local[i].length);
	return true;
}

static bool check_send(const struct ibv_wc *wc, const struct transfer *t)
{
	expect(wc->status == IBV_WC_SUCCESS, "completion: %s (%d), vendor %#x: %s",
	       ibv_wc_status_str(wc->status), wc->status, wc->vendor_err, describe(t));
	expect(wc->wr_id == (uint64_t)(t - batch), "completion of %d, expected %d: %s",
	       (int)wc->wr_id, (int)(t - batch), describe(t));
	expect(wc->opcode == wc_opcodes[t->op], "completion opcode %d, expected %d: %s",
	       wc->opcode, wc_opcodes[t->op], describe(t));
	expect(wc->qp_num == e->qp[t->qp]->qp_num, "completion of QP %#x, expected %#x: %s",
	       wc->qp_num, e->qp[t->qp]->qp_num, describe(t));
	if (t->op == READ)
		expect(wc->byte_len == t->length, "READ's byte_len %u: %s", wc->byte_len,
		       describe(t));
	return true;
}

/*
 * rdma_rxe hands the kernel's own flag for an invalidated key, IB_WC_WITH_INVALIDATE, to
 * user space as it is, where that value means a checked IP checksum. Everything else of
 * such a completion is held to what it has to be.
 */
static bool is_rxe_flag(const struct ibv_wc *wc, const struct transfer *t)
{
	const char *driver = getenv("PEER_DRIVER");

	if (t->op != SEND_INV || !driver || strcmp(driver, "rxe") ||
	    (wc->wc_flags & (IBV_WC_IP_CSUM_OK | IBV_WC_WITH_INV)) != IBV_WC_IP_CSUM_OK)
		return false;
	tap_xfail("rdma_rxe completes SEND with invalidate with flag %d instead of %d",
		  IBV_WC_IP_CSUM_OK, IBV_WC_WITH_INV);
	return true;
}

static bool check_receive(const struct ibv_wc *wc, const struct transfer *t)
{
	enum ibv_wc_opcode opcode = t->op == WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	unsigned int defined = IBV_WC_WITH_IMM | IBV_WC_WITH_INV;
	uint32_t length = t->length + (e->type == IBV_QPT_UD ? GRH : 0);
	unsigned int flags = 0;

	expect(wc->status == IBV_WC_SUCCESS, "server's completion: %s (%d): %s",
	       ibv_wc_status_str(wc->status), wc->status, describe(t));
	expect(wc->wr_id == (uint64_t)(t - batch), "server's completion of %d, expected %d: %s",
	       (int)wc->wr_id, (int)(t - batch), describe(t));
	expect(wc->opcode == opcode, "server's completion opcode %d, expected %d: %s",
	       wc->opcode, opcode, describe(t));
	expect(wc->byte_len == length, "server's byte_len %u, expected %u: %s", wc->byte_len,
	       length, describe(t));
	expect(wc->qp_num == peer.setup.address[t->qp].qpn,
	       "server's completion of QP %#x, expected %#x: %s", wc->qp_num,
	       peer.setup.address[t->qp].qpn, describe(t));
	if (t->op == SEND_IMM || t->op == WRITE_IMM)
		flags = IBV_WC_WITH_IMM;
	if (t->op == SEND_INV)
		flags = IBV_WC_WITH_INV;
	if (e->type == IBV_QPT_UD) {
		/* for other services the bit says nothing */
		flags |= IBV_WC_GRH;
		defined |= IBV_WC_GRH;
		expect(wc->src_qp == e->qp[t->qp]->qp_num, "src_qp %#x, expected %#x: %s",
		       wc->src_qp, e->qp[t->qp]->qp_num, describe(t));
	}
	expect((wc->wc_flags & defined) == flags ||
	       (is_rxe_flag(wc, t) && (wc->wc_flags & defined) == (flags & ~IBV_WC_WITH_INV)),
	       "server's wc_flags %#x, expected %#x: %s", wc->wc_flags, flags, describe(t));
	if (flags & IBV_WC_WITH_IMM)
		expect(wc->imm_data == t->imm, "imm_data %#x, expected %#x: %s", wc->imm_data,
		       t->imm, describe(t));
	if (flags & IBV_WC_WITH_INV)
		expect(wc->invalidated_rkey == t->rkey, "invalidated_rkey %#x, expected %#x: %s",
		       wc->invalidated_rkey, t->rkey, describe(t));
	return true;
}

/* Where in the batch an offset of an arena belongs. */
static const char *whose(uint32_t offset, bool remote)
{
	static char text[300];

	for (int i = 0; i < batch_size; i++) {
		const struct transfer *t = &batch[i];
		const struct segment *s = remote ? t->remote : t->local;
		int n = remote ? t->n_remote : t->n_local;

		for (int k = 0; k < n; k++) {
			if (offset + GUARD < s[k].offset ||
			    offset >= s[k].offset + s[k].length + GUARD)
				continue;
			snprintf(text, sizeof(text), "%d after the start of segment %d, of %u bytes, of %s",
				 (int)(offset - s[k].offset), k, s[k].length, describe(t));
			return text;
		}
	}
	return "far from any segment";
}

static bool check_arena(struct mismatch m, bool remote)
{
	expect(!m.count, "%s memory: %u wrong bytes, the first at +%u: %02x, expected %02x: %s",
	       remote ? "server's" : "local", m.count, m.offset, m.got, m.wanted,
	       whose(m.offset, remote));
	return true;
}

static void expect_local(const struct transfer *t)
{
	switch (t->op) {
	case READ:
		arena_expect(&e->arena, t->local, t->n_local, t->length, t->seed);
		break;
	case CMP_SWAP:
	case FETCH_ADD:
		memcpy(e->arena.wanted + t->local[0].offset, &t->original, 8);
		break;
	default:
		if (!(t->flags & LOCAL_READY))
			arena_fill(&e->arena, t->local, t->n_local, t->length, t->seed);
	}
}

static bool collect(int from, int to)
{
	struct ibv_wc wc;

	for (int i = from; i < to; i++) {
		if (batch[i].flags & UNSIGNALLED)
			continue;
		atomic_fetch_add(&e->arena.moves, 1);
		expect(poll_for(e->send_cq, &wc, 1, HANG_MS) == 1, "no completion: %s",
		       describe(&batch[i]));
		if (e->n_qps == 1 || serial) {
			if (!check_send(&wc, &batch[i]))
				return false;
		} else {
			/* completions of several queue pairs come in any order */
			expect(wc.wr_id < MAX_BATCH, "completion of %d", (int)wc.wr_id);
			if (!check_send(&wc, &batch[wc.wr_id]))
				return false;
		}
	}
	return true;
}

static bool post_and_collect(void)
{
	struct ibv_wc wc;

	for (int i = 0; i < batch_size; i++) {
		if (!post(&batch[i]))
			return false;
		if (serial && !collect(i, i + 1))
			return false;
	}
	if (!serial && !collect(0, batch_size))
		return false;
	expect(!ibv_poll_cq(e->send_cq, 1, &wc), "a completion too many: wr_id %d, status %d",
	       (int)wc.wr_id, wc.status);
	return true;
}

/* Have the planned transfers done and check all that they should have done. */
static bool run_batch(void)
{
	struct request q = { .kind = PREPARE, .prepare.n = batch_size };
	struct reply r = call(&q, batch, batch_size * sizeof(*batch));
	struct mismatch local;
	int receives = 0;
	bool good, writes = false;

	expect(!r.error, "server: post receive: %s", strerror(r.error));
	for (int i = 0; i < batch_size; i++) {
		expect_local(&batch[i]);
		receives += takes_receive(batch[i].op);
		writes |= batch[i].op == WRITE;
	}
	good = post_and_collect();
	for (int i = 0; i < batch_size; i++)
		for (int k = 0; batch[i].flags & INLINE && k < batch[i].n_local; k++)
			memcpy(e->arena.memory + batch[i].local[k].offset,
			       e->arena.wanted + batch[i].local[k].offset,
			       batch[i].local[k].length);
	q = (struct request) {
		.kind = FINISH,
		.finish = {
			.receives = receives,
			.ms = !good ? 500 : e->type == IBV_QPT_RC ? HANG_MS : 10000,
			.used = remote_used + 4096,
			.uc_writes = writes && e->type == IBV_QPT_UC,
		},
	};
	r = call(&q, NULL, 0);
	lost = e->type != IBV_QPT_RC && r.finish.receives < receives;
	for (int i = 0, next = -1; i < r.finish.receives && i < receives; i++) {
		while (!takes_receive(batch[++next].op))
			;
		if (r.finish.wc[i].status != IBV_WC_SUCCESS ||
		    e->n_qps == 1 || serial)
			good &= check_receive(&r.finish.wc[i], &batch[next]);
		else
			good &= check_receive(&r.finish.wc[i], &batch[r.finish.wc[i].wr_id % MAX_BATCH]);
		if (!good)
			break;
	}
	local = arena_compare(&e->arena, local_used + 4096);
	if (local.count)
		memcpy(e->arena.memory, e->arena.wanted, local_used + 4096);
	if (!good)
		return false;
	expect(r.finish.receives == receives, "server: %d receive completions, expected %d",
	       r.finish.receives, receives);
	expect(!r.finish.grh_fault[0], "server: %s", r.finish.grh_fault);
	good = check_arena(r.finish.mismatch, true) && check_arena(local, false);
	transfers += batch_size;
	new_batch();
	return good;
}

/* Run the batch if it has come to a size at which the next one might not fit. */
static bool maybe_run_batch(int limit)
{
	if (batch_size < limit && local_used < (2u << 20) && remote_used < (2u << 20))
		return true;
	return run_batch();
}

/* ------------------------------------------------------------ test points */

static int sizes_for(uint32_t mtu, uint32_t *size, uint32_t max)
{
	const uint32_t all[] = {
		0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 63, 64, 65, 255,
		mtu - 2, mtu - 1, mtu, mtu + 1, mtu + 3, 2 * mtu - 1, 2 * mtu, 2 * mtu + 1,
		3 * mtu + 2, 7 * mtu, 16 * mtu + 5, 65535, 65536, 65537, (1 << 20) + 3,
	};
	int n = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (all[i] <= max)
			size[n++] = all[i];
	return n;
}

/* UC has no way to recover from a packet lost on a busy machine: spare it the largest. */
static uint32_t largest(enum ibv_qp_type type, enum ibv_mtu mtu)
{
	if (type == IBV_QPT_UD)
		return mtu_bytes(mtu);
	return type == IBV_QPT_UC ? 65537 : UINT32_MAX;
}

static bool sizes(enum ibv_qp_type type, enum operation op, enum ibv_mtu mtu, bool one_by_one)
{
	uint32_t size[64];
	int n = sizes_for(mtu_bytes(mtu), size, largest(type, mtu));

	if (!start(type, 1, false, mtu))
		return false;
	serial = one_by_one;
	new_batch();
	for (int i = 0; i < n; i++) {
		struct transfer *t = plan(op, size[i], 1, 1, ANY, ANY);

		if (type == IBV_QPT_UD && below(2))
			t->flags |= GRH_APART;
		if (!maybe_run_batch(16))
			return false;
	}
	return run_batch();
}

static bool alignments(enum ibv_qp_type type, enum operation op)
{
	const uint32_t size[] = { 1, 3, 5, 64, 1024, 1027, 3 * 1024 - 1 };

	if (!start(type, 1, false, IBV_MTU_1024))
		return false;
	new_batch();
	for (int i = 0; i < 64 * 7; i++) {
		if (type == IBV_QPT_UD && size[i / 64] > 1024)
			break;
		plan(op, size[i / 64], 1, 1, i % 8, i / 8 % 8);
		if (!maybe_run_batch(MAX_BATCH))
			return false;
	}
	return run_batch();
}

static bool lists(enum ibv_qp_type type, enum operation op)
{
	int most = e->dev.attr.max_sge < MAX_SEGMENTS ? e->dev.attr.max_sge : MAX_SEGMENTS;

	if (!start(type, 1, false, IBV_MTU_1024))
		return false;
	if ((int)peer.setup.max_sge < most)
		most = peer.setup.max_sge;
	new_batch();
	for (int n = 1; n <= most; n++) {
		plan(op, below(type == IBV_QPT_UD ? 1025 : 20000), n, 1 + below(most), ANY, ANY);
		plan(op, below(type == IBV_QPT_UD ? 1025 : 100), 1 + below(most), n, ANY, ANY);
		plan(op, 1024, n, most + 1 - n, ANY, ANY);
		if (!maybe_run_batch(30))
			return false;
	}
	return run_batch();
}

static bool inlined(enum ibv_qp_type type, enum operation op)
{
	if (!start(type, 1, false, IBV_MTU_1024))
		return false;
	expect(e->max_inline >= 64, "asked for 64 bytes inline, got %u", e->max_inline);
	new_batch();
	for (uint32_t size = 0; size <= e->max_inline && size <= 512; size++) {
		plan(op, size, 1 + below(4), 1, ANY, ANY)->flags = INLINE;
		if (!maybe_run_batch(32))
			return false;
	}
	return run_batch();
}

/* A fenced request sends what READs and atomics before it brought. */
static bool fence(void)
{
	if (!start(IBV_QPT_RC, 1, false, IBV_MTU_1024))
		return false;
	for (int i = 0; i < 20; i++) {
		new_batch();
		for (int k = 0; k < 6; k++) {
			enum operation first = k % 3 ? READ : FETCH_ADD;
			uint32_t size = first == READ ? 1 + below(10000) : 8;
			struct transfer *a = plan(first, size, 1, 1, ANY, ANY);
			struct transfer *b = plan(k % 2 ? SEND : WRITE, size, 1, 1, ANY, ANY);

			b->local[0] = a->local[0];
			b->seed = a->seed;
			b->flags = FENCE | LOCAL_READY;
		}
		if (!run_batch())
			return false;
	}
	return true;
}

/* A READ sees what the WRITE before it wrote, fenced or not. */
static bool read_after_write(void)
{
	if (!start(IBV_QPT_RC, 1, false, IBV_MTU_1024))
		return false;
	for (int i = 0; i < 20; i++) {
		new_batch();
		for (int k = 0; k < 8; k++) {
			uint32_t size = 1 + below(10000);
			struct transfer *a = plan(WRITE, size, 1, 1, ANY, ANY);
			struct transfer *b = plan(READ, size, 1, 1, ANY, ANY);

			b->remote[0] = a->remote[0];
			b->seed = a->seed;
			b->flags = REMOTE_READY;
		}
		if (!run_batch())
			return false;
	}
	return true;
}

/* Atomics on one word, many in flight: each sees the one before. */
static bool atomic_chain(void)
{
	if (!start(IBV_QPT_RC, 1, false, IBV_MTU_1024))
		return false;
	for (int i = 0; i < 10; i++) {
		uint64_t value;

		new_batch();
		for (int k = 0; k < 32; k++) {
			enum operation op = below(2) ? FETCH_ADD : CMP_SWAP;
			struct transfer *t = plan(op, 8, 1, 1, ANY, 0);

			if (k) {
				t->original = value;
				t->remote[0] = batch[0].remote[0];
				t->flags = REMOTE_READY;
				if (op == CMP_SWAP && below(2))
					t->operand = value;
			}
			if (op == FETCH_ADD)
				t->after = t->original + t->operand;
			else
				t->after = t->operand == t->original ? t->swap : t->original;
			value = t->after;
		}
		if (!run_batch())
			return false;
	}
	return true;
}

static bool unsignalled(void)
{
	if (!start(IBV_QPT_RC, 1, false, IBV_MTU_1024))
		return false;
	for (int i = 0; i < 10; i++) {
		new_batch();
		for (int k = 0; k < 40; k++) {
			struct transfer *t = plan(below(FETCH_ADD + 1), below(5000), 1, 1, ANY, ANY);

			if (k % 8 != 7)
				t->flags = UNSIGNALLED;
		}
		if (!run_batch())
			return false;
	}
	return true;
}

static int events(int ms)
{
	struct request q = { .kind = EVENTS, .events.ms = ms };

	return call(&q, NULL, 0).events.count;
}

static bool solicited(enum ibv_qp_type type)
{
	struct request arm = { .kind = ARM, .arm.solicited_only = 1 };
	int n;

	if (!start(type, 1, false, IBV_MTU_1024))
		return false;
	for (int i = 0; i < 4; i++) {
		enum operation op = type != IBV_QPT_UD && i % 2 ? WRITE_IMM : SEND;

		expect(!call(&arm, NULL, 0).error, "req_notify_cq");
		new_batch();
		plan(op, 100, 1, 1, ANY, ANY);
		plan(op, 200, 1, 1, ANY, ANY);
		if (!run_batch())
			return false;
		n = events(0);
		expect(n == 0, "%d events after unsolicited messages, expected none", n);
		new_batch();
		plan(op, 300, 1, 1, ANY, ANY)->flags = SOLICITED;
		if (!run_batch())
			return false;
		n = events(HANG_MS);
		expect(n == 1, "%d events after a solicited message, expected 1", n);
		/* not armed: none */
		new_batch();
		plan(op, 300, 1, 1, ANY, ANY)->flags = SOLICITED;
		if (!run_batch())
			return false;
		n = events(0);
		expect(n == 0, "%d events though not armed, expected none", n);
	}
	return true;
}

static bool shared_receive(enum ibv_qp_type type, int n_qps)
{
	if (!start(type, n_qps, true, IBV_MTU_1024))
		return false;
	/* which message gets which receive request is known only one by one */
	serial = n_qps > 1;
	for (int i = 0; i < 6; i++) {
		new_batch();
		for (int k = 0; k < 32; k++) {
			enum operation op = below(2) ? SEND : SEND_IMM;
			uint32_t most = type == IBV_QPT_UD ? 1024 : 5000;
			int n = 1 + below(peer.setup.max_sge);

			plan(op, below(most), 1, n, ANY, ANY)->qp = below(n_qps);
		}
		if (!run_batch())
			return false;
	}
	return true;
}

/* All at once: every operation, sizes and lists of every kind, in one pipeline. */
static bool mixed(enum ibv_qp_type type, enum ibv_mtu mtu, int n_qps)
{
	static const enum operation uc[] = { SEND, SEND_IMM, WRITE, WRITE_IMM };

	if (!start(type, n_qps, false, mtu))
		return false;
	for (int i = 0; i < 20; i++) {
		new_batch();
		for (int k = 0; k < MAX_BATCH; k++) {
			enum operation op = type == IBV_QPT_RC ? below(FETCH_ADD + 1) : uc[below(4)];
			static const uint32_t bound[] = { 2, 70, 1100, 9000, 70000 };
			uint32_t size = below(bound[below(5)]);
			bool list = below(3) == 0;
			struct transfer *t;

			/* runs of equal ones go out as one super-packet */
			if (k && below(2)) {
				op = batch[k - 1].op;
				size = batch[k - 1].length;
			}
			t = plan(op, size, list ? 1 + below(peer.setup.max_sge) : 1,
				 list ? 1 + below(peer.setup.max_sge) : 1, ANY, ANY);
			t->qp = below(n_qps);
			if (below(4) == 0 && k != MAX_BATCH - 1)
				t->flags |= UNSIGNALLED;
			if (below(8) == 0)
				t->flags |= FENCE;
			if (size <= 64 && op < READ && below(2))
				t->flags |= INLINE;
		}
		/* nothing unsignalled may be last on its queue pair */
		for (int q = 0; q < n_qps; q++)
			for (int k = MAX_BATCH - 1; k >= 0; k--)
				if (batch[k].qp == q) {
					batch[k].flags &= ~UNSIGNALLED;
					break;
				}
		if (!run_batch())
			return false;
	}
	return true;
}

static bool big(enum operation op)
{
	const uint32_t size[] = { (8 << 20) + 1, (16 << 20) + 5 };

	if (!start(IBV_QPT_RC, 1, false, IBV_MTU_4096 < e->dev.port.active_mtu ?
		   IBV_MTU_4096 : e->dev.port.active_mtu))
		return false;
	for (int i = 0; i < 2; i++) {
		new_batch();
		plan(op, size[i], 3, 3, ANY, ANY);
		plan(op, 77, 1, 1, ANY, ANY);
		if (!run_batch())
			return false;
	}
	return true;
}

/* SEND with invalidate ends a memory window's life. */
static bool invalidate(void)
{
	struct request q = { .kind = BIND };
	struct reply r;
	struct transfer *t;
	struct ibv_wc wc;

	if (!start(IBV_QPT_RC, 1, false, IBV_MTU_1024))
		return false;
	new_batch();
	q.bind.where = take(&remote_used, 5000, 3);
	r = call(&q, NULL, 0);
	if (r.error == EOPNOTSUPP || r.error == ENOSYS || r.error == EPERM) {
		tap_skip("server: memory windows: %s", strerror(r.error));
		return true;
	}
	expect(!r.error, "server: bind a memory window: %s", strerror(r.error));
	t = plan(WRITE, 5000, 1, 1, ANY, ANY);
	t->remote[0] = q.bind.where;
	t->rkey = r.bind.rkey;
	plan(SEND_INV, 1500, 1, 1, ANY, ANY)->rkey = r.bind.rkey;
	if (!run_batch())
		return false;
	new_batch();
	t = plan(WRITE, 10, 1, 1, ANY, ANY);
	t->rkey = r.bind.rkey;
	t->remote[0] = q.bind.where;
	if (!post(t))
		return false;
	expect(poll_for(e->send_cq, &wc, 1, HANG_MS) == 1, "no completion: %s", describe(t));
	expect(wc.status == IBV_WC_REM_ACCESS_ERR, "WRITE through the invalidated window: %s",
	       ibv_wc_status_str(wc.status));
	return true;
}

/* ------------------------------------------------------------ all of them */

/*
 * One test point: the call is its body. What UC or UD lose on a busy machine is
 * no fault, unless it is lost thrice.
 */
#define CASE(body, ...)							\
	do {								\
		for (int tries = 1; tap_begin(__VA_ARGS__); tries++) {	\
			lost = false;					\
			(void)(body);					\
			stop();						\
			if (lost && tries < 3) {			\
				printf("# %s: again, for %s", tap_name,	\
				       tap_reason);			\
				continue;				\
			}						\
			tap_end();					\
			break;						\
		}							\
	} while (0)

int run_cases(struct end *end, int fd, uint64_t seed)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
	enum ibv_mtu best;

	e = end;
	control = fd;
	random_state = seed ? seed : 1;
	printf("# seed %#llx\n", (unsigned long long)seed);
	best = e->dev.port.active_mtu;
	for (int i = 0; i < 3; i++) {
		enum ibv_qp_type type = types[i];
		const char *name = type_names[type];
		enum operation last = type == IBV_QPT_RC ? FETCH_ADD :
				      type == IBV_QPT_UC ? WRITE_IMM : SEND_IMM;

		for (enum operation op = SEND; op <= last; op++) {
			if (op == CMP_SWAP || op == FETCH_ADD) {
				CASE(sizes(type, op, best, false), "%s %s", name, op_names[op]);
				continue;
			}
			for (enum ibv_mtu mtu = IBV_MTU_256; mtu <= best; mtu++)
				CASE(sizes(type, op, mtu, false), "%s %s, every size, path MTU %u",
				     name, op_names[op], mtu_bytes(mtu));
			CASE(sizes(type, op, IBV_MTU_1024, true), "%s %s, every size, one by one",
			     name, op_names[op]);
			CASE(alignments(type, op), "%s %s, every alignment", name, op_names[op]);
			CASE(lists(type, op), "%s %s, scatter/gather lists", name, op_names[op]);
			if (op != READ)
				CASE(inlined(type, op), "%s %s, inline", name, op_names[op]);
		}
	}
	CASE(fence(), "RC fence after READ and atomic");
	CASE(read_after_write(), "RC READ of what was just written");
	CASE(atomic_chain(), "RC atomics on one word");
	CASE(unsignalled(), "RC unsignalled");
	for (int i = 0; i < 3; i++)
		CASE(solicited(types[i]), "%s solicited events", type_names[types[i]]);
	CASE(shared_receive(IBV_QPT_RC, 1), "RC shared receive queue");
	CASE(shared_receive(IBV_QPT_RC, 4), "RC shared receive queue, 4 queue pairs");
	CASE(shared_receive(IBV_QPT_UD, 1), "UD shared receive queue");
	for (enum ibv_mtu mtu = IBV_MTU_256; mtu <= best; mtu++)
		CASE(mixed(IBV_QPT_RC, mtu, 1), "RC mixture, path MTU %u", mtu_bytes(mtu));
	CASE(mixed(IBV_QPT_RC, best, 4), "RC mixture, 4 queue pairs");
	CASE(mixed(IBV_QPT_UC, best, 1), "UC mixture");
	CASE(big(SEND), "RC SEND of 16 MB");
	CASE(big(WRITE), "RC WRITE of 16 MB");
	CASE(big(READ), "RC READ of 16 MB");
	CASE(invalidate(), "RC SEND with invalidate");
	return tap_plan();
}
