// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Creating too much, destroying too early, memory regions, address handles, groups. */
#include "pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/mman.h>

static struct pair *pair;

static bool qp_refused(struct ibv_qp_cap cap, const char *what)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .cap = cap,
		.send_cq = pair->a.send_cq, .recv_cq = pair->a.recv_cq,
	};
	struct ibv_qp *qp = ibv_create_qp(pair->a.dev.pd, &init);

	if (qp) {
		ibv_destroy_qp(qp);
		return fail("%s: success, expected a refusal", what);
	}
	expect(errno == EINVAL || errno == ENOMEM, "%s: %s", what, strerror(errno));
	return true;
}

static bool large_qp(void)
{
	const struct ibv_device_attr *d = &pair->a.dev.attr;
	struct ibv_qp_cap good = { 4, 4, 1, 1, 0 }, cap;

	if (!pair_start(pair, IBV_QPT_RC, false))
		return false;
	cap = good;
	cap.max_send_wr = d->max_qp_wr + 1;
	if (!qp_refused(cap, "too many send requests"))
		return false;
	cap = good;
	cap.max_recv_wr = d->max_qp_wr + 1;
	if (!qp_refused(cap, "too many receive requests"))
		return false;
	cap = good;
	cap.max_send_sge = d->max_sge + 1;
	if (!qp_refused(cap, "send lists too long"))
		return false;
	cap = good;
	cap.max_recv_sge = d->max_sge + 1;
	if (!qp_refused(cap, "receive lists too long"))
		return false;
	cap = good;
	cap.max_inline_data = 1 << 20;
	if (!qp_refused(cap, "1 MB inline"))
		return false;
	memset(&cap, 0xff, sizeof(cap));
	return qp_refused(cap, "all of 4 G");
}

/* The greatest that the device says it can do, it can do. */
static bool largest_qp(void)
{
	const struct ibv_device_attr *d = &pair->a.dev.attr;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = d->max_qp_wr, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp;

	if (!pair_start(pair, IBV_QPT_RC, false))
		return false;
	init.send_cq = pair->a.send_cq;
	init.recv_cq = pair->a.recv_cq;
	for (int i = 0; i < 2; i++) {
		qp = ibv_create_qp(pair->a.dev.pd, &init);
		expect(qp, "%d requests: %s", d->max_qp_wr, strerror(errno));
		expect(!ibv_destroy_qp(qp), "destroy");
		init.cap = (struct ibv_qp_cap) { .max_send_wr = 8, .max_recv_wr = 8,
						 .max_send_sge = d->max_sge,
						 .max_recv_sge = d->max_sge };
	}
	return true;
}

static bool large_cq(void)
{
	struct ibv_context *context = pair->a.dev.context;
	const int sizes[] = { 0, -1, pair->a.dev.attr.max_cqe + 1, INT32_MAX };

	for (int i = 0; i < 4; i++) {
		struct ibv_cq *cq;

		if (sizes[i] > 0 && sizes[i] <= pair->a.dev.attr.max_cqe)
			continue;
		cq = ibv_create_cq(context, sizes[i], NULL, NULL, 0);
		if (cq) {
			ibv_destroy_cq(cq);
			return fail("CQ of %d entries: success, expected EINVAL", sizes[i]);
		}
		expect(errno == EINVAL || errno == ENOMEM, "CQ of %d entries: %s", sizes[i],
		       strerror(errno));
	}
	expect(!ibv_create_cq(context, 10, NULL, NULL, 9999) && errno == EINVAL,
	       "CQ on completion vector 9999: not EINVAL");
	return true;
}

static bool large_srq(void)
{
	const struct ibv_device_attr *d = &pair->a.dev.attr;
	struct ibv_srq_init_attr init = { .attr = { .max_wr = d->max_srq_wr + 1, .max_sge = 1 } };

	expect(!ibv_create_srq(pair->a.dev.pd, &init) && (errno == EINVAL || errno == ENOMEM),
	       "SRQ of too many requests: not refused");
	init.attr = (struct ibv_srq_attr) { .max_wr = 10, .max_sge = d->max_srq_sge + 1 };
	expect(!ibv_create_srq(pair->a.dev.pd, &init) && (errno == EINVAL || errno == ENOMEM),
	       "SRQ of too long lists: not refused");
	return true;
}

static bool modify_srq(void)
{
	struct ibv_srq_attr attr = { .srq_limit = 5 };
	int error;

	if (!pair_start(pair, IBV_QPT_RC, true))
		return false;
	error = ibv_modify_srq(pair->a.srq, &attr, IBV_SRQ_LIMIT);
	expect(!error, "set the limit to 5: %s", strerror(error));
	expect(!ibv_query_srq(pair->a.srq, &attr), "query");
	expect(attr.srq_limit == 5, "limit is %u, expected 5", attr.srq_limit);
	expect(attr.max_wr >= DEPTH && attr.max_sge >= 4, "max_wr %u, max_sge %u", attr.max_wr,
	       attr.max_sge);
	attr.srq_limit = attr.max_wr + 1;
	error = ibv_modify_srq(pair->a.srq, &attr, IBV_SRQ_LIMIT);
	expect(error == EINVAL, "limit above the size: %s, expected EINVAL", strerror(error));
	return true;
}

static bool other_types(void)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_DRIVER, IBV_QPT_XRC_SEND, 0, 77,
	};

	if (!pair_start(pair, IBV_QPT_RC, false))
		return false;
	for (int i = 0; i < 4; i++) {
		struct ibv_qp_init_attr init = {
			.qp_type = types[i], .cap = { 4, 4, 1, 1, 0 },
			.send_cq = pair->a.send_cq, .recv_cq = pair->a.recv_cq,
		};
		struct ibv_qp *qp = ibv_create_qp(pair->a.dev.pd, &init);

		if (qp) {
			ibv_destroy_qp(qp);
			if (types[i] == IBV_QPT_XRC_SEND)
				continue;	/* a driver may well have it */
			return fail("queue pair of type %d: success", types[i]);
		}
		expect(errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS ||
		       errno == EPERM, "queue pair of type %d: %s", types[i], strerror(errno));
	}
	return true;
}

static bool busy(void)
{
	struct side *s = &pair->a;
	struct ibv_ah *ah;
	int error;

	if (!pair_start(pair, IBV_QPT_RC, true))
		return false;
	error = ibv_destroy_cq(s->send_cq);
	expect(error == EBUSY, "destroy a CQ in use: %s", strerror(error));
	error = ibv_destroy_srq(s->srq);
	expect(error == EBUSY, "destroy an SRQ in use: %s", strerror(error));
	error = ibv_dealloc_pd(s->dev.pd);
	expect(error == EBUSY, "free a PD in use: %s", strerror(error));
	s->dev.pd = ibv_alloc_pd(s->dev.context) ?: s->dev.pd;
	ah = ah_new(&s->dev, &pair->b.dev.gid);
	expect(ah, "address handle: %s", strerror(errno));
	error = ibv_dealloc_pd(s->dev.pd);
	expect(error == EBUSY, "free a PD with an address handle: %s", strerror(error));
	expect(!ibv_destroy_ah(ah), "destroy address handle");
	return true;
}

static bool resize_cq(void)
{
	struct side *b = &pair->b;
	int error;

	if (!pair_up(pair, IBV_QPT_RC))
		return false;
	error = ibv_resize_cq(b->recv_cq, 4 * DEPTH);
	if (error == ENOSYS || error == EOPNOTSUPP) {
		tap_skip("no CQ resize: %s", strerror(error));
		return true;
	}
	/* a few rounds, so that entries stand anywhere in the ring */
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 9; i++) {
			side_recv(b, i, 10);
			side_send(&pair->a, i, 10);
			if (!completes(pair->a.send_cq, i, IBV_WC_SUCCESS))
				return false;
		}
		if (!completes(b->recv_cq, 0, IBV_WC_SUCCESS))
			return false;
		error = ibv_resize_cq(b->recv_cq, round % 2 ? 8 * DEPTH : 8);
		expect(!error, "resize with 8 entries in it: %s", strerror(error));
		expect(b->recv_cq->cqe >= (round % 2 ? 8 * DEPTH : 8), "cqe is %d after resize",
		       b->recv_cq->cqe);
		error = ibv_resize_cq(b->recv_cq, 1);
		expect(error == EINVAL, "resize to 1 with 8 entries in it: %s, expected EINVAL",
		       error ? strerror(error) : "success");
		for (int i = 1; i < 9; i++)
			if (!completes(b->recv_cq, i, IBV_WC_SUCCESS))
				return false;
		if (!no_more(b->recv_cq))
			return false;
	}
	error = ibv_resize_cq(b->recv_cq, pair->b.dev.attr.max_cqe + 1);
	expect(error == EINVAL, "resize above the device's limit: %s", strerror(error));
	return talks(pair);
}

static bool memory_refused(void *address, size_t length, int access, int wanted,
			   const char *what)
{
	struct ibv_mr *mr = ibv_reg_mr(pair->a.dev.pd, address, length, access);

	if (mr) {
		ibv_dereg_mr(mr);
		return fail("%s: success, expected %s", what, strerror(wanted));
	}
	expect(errno == wanted, "%s: %s, expected %s", what, strerror(errno), strerror(wanted));
	return true;
}

static bool bad_memory(void)
{
	uint8_t *memory = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(memory + 4096, 4096);
	mprotect(memory + 2 * 4096, 4096, PROT_READ);
	return memory_refused(memory, 4096, IBV_ACCESS_REMOTE_WRITE, EINVAL,
			      "remote write without local write") &&
	       memory_refused(memory, 4096, IBV_ACCESS_REMOTE_ATOMIC, EINVAL,
			      "remote atomic without local write") &&
	       memory_refused(memory, 8192, IBV_ACCESS_LOCAL_WRITE, EFAULT, "unmapped memory") &&
	       memory_refused(memory + 8192, 4096, IBV_ACCESS_LOCAL_WRITE, EFAULT,
			      "writing to read-only memory") &&
	       memory_refused((void *)-8192l, 16384, IBV_ACCESS_LOCAL_WRITE, EINVAL,
			      "wrapping around");
}

/* Many regions: keys are all different, memory is given back. */
static bool many_regions(void)
{
	static struct ibv_mr *mr[1000];
	int n = pair->a.dev.attr.max_mr < 1000 ? pair->a.dev.attr.max_mr - 10 : 1000;

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < n; i++) {
			mr[i] = ibv_reg_mr(pair->a.dev.pd, pair->a.memory + i, 100,
					   IBV_ACCESS_LOCAL_WRITE);
			expect(mr[i], "region %d: %s", i, strerror(errno));
			for (int k = 0; k < i; k++)
				expect(mr[k]->lkey != mr[i]->lkey, "two regions with one L_Key");
		}
		for (int i = 0; i < n; i++)
			expect(!ibv_dereg_mr(mr[i]), "deregister");
	}
	return true;
}

static bool address_handles(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = pair->b.dev.gid, .sgid_index = pair->a.dev.gid_index,
			 .hop_limit = 1 },
	}, bad;
	struct ibv_ah *ah[100];

	bad = attr;
	bad.is_global = 0;
	expect(!ibv_create_ah(pair->a.dev.pd, &bad) && errno == EINVAL, "no GRH: not EINVAL");
	bad = attr;
	bad.port_num = 2;
	expect(!ibv_create_ah(pair->a.dev.pd, &bad) && errno == EINVAL, "port 2: not EINVAL");
	bad = attr;
	bad.grh.sgid_index = 255;
	expect(!ibv_create_ah(pair->a.dev.pd, &bad) && errno == EINVAL,
	       "GID index 255: not EINVAL");
	for (int i = 0; i < 100; i++) {
		ah[i] = ibv_create_ah(pair->a.dev.pd, &attr);
		expect(ah[i], "address handle %d: %s", i, strerror(errno));
	}
	for (int i = 0; i < 100; i++)
		expect(!ibv_destroy_ah(ah[i]), "destroy address handle %d", i);
	return true;
}

static bool groups(void)
{
	union ibv_gid group = { .raw = { 0 } }, unicast = pair->a.dev.gid;
	int error;

	group.raw[10] = group.raw[11] = 0xff;
	group.raw[12] = 239;
	group.raw[15] = 9;
	if (!pair_up(pair, IBV_QPT_UD))
		return false;
	error = ibv_attach_mcast(pair->b.qp, &group, 0);
	expect(!error, "attach: %s", strerror(error));
	error = ibv_attach_mcast(pair->b.qp, &group, 0);
	expect(!error, "attach again: %s", strerror(error));
	error = ibv_detach_mcast(pair->b.qp, &group, 0);
	expect(!error, "detach: %s", strerror(error));
	error = ibv_detach_mcast(pair->b.qp, &group, 0);
	expect(error == EINVAL, "detach what is not attached: %s, expected EINVAL",
	       error ? strerror(error) : "success");
	error = ibv_attach_mcast(pair->b.qp, &unicast, 0);
	expect(error == EINVAL, "attach to a unicast address: %s, expected EINVAL",
	       error ? strerror(error) : "success");
	error = ibv_attach_mcast(pair->b.qp, &group, 0);
	expect(!error, "attach: %s", strerror(error));
	error = ibv_destroy_qp(pair->b.qp);
	expect(error == EBUSY, "destroy a queue pair in a group: %s, expected EBUSY",
	       error ? strerror(error) : "success");
	error = ibv_detach_mcast(pair->b.qp, &group, 0);
	expect(!error, "detach: %s", strerror(error));
	if (!pair_stop(pair) || !pair_up(pair, IBV_QPT_RC))
		return false;
	error = ibv_attach_mcast(pair->b.qp, &group, 0);
	expect(error == EINVAL, "attach an RC queue pair: %s, expected EINVAL",
	       error ? strerror(error) : "success");
	return true;
}

void resource_cases(struct pair *p)
{
	pair = p;
	CASE(p, large_qp(), "queue pairs too large: refused");
	CASE(p, largest_qp(), "queue pairs as large as the device says");
	CASE(p, large_cq(), "completion queues of a bad size: refused");
	CASE(p, large_srq(), "shared receive queues too large: refused");
	CASE(p, modify_srq(), "shared receive queue: limit set, told, refused");
	CASE(p, other_types(), "queue pairs of types that there are not: refused");
	CASE(p, busy(), "destroying what is in use: EBUSY");
	CASE(p, resize_cq(), "completion queue resized with entries in it");
	CASE(p, bad_memory(), "memory that cannot be registered");
	CASE(p, many_regions(), "1000 memory regions, twice");
	CASE(p, address_handles(), "address handles, good and bad");
	CASE(p, groups(), "multicast groups: attach and detach");
}
