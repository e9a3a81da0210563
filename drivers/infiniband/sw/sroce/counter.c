// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Counters of their own that queue pairs are bound to, one by one or by the core's rule
 * ("rdma statistic qp").  As with hardware, what a bound queue pair does is counted there
 * and not in the port's; the core adds up both, with those that are gone, when it shows the
 * port's.  The port's counters in the specification's sense (pma.c) have everything.
 */
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/xarray.h>
#include "compat.h"
#include "counter.h"
#include "device.h"
#include "qp.h"
#include "stats.h"

/**
 * sroce_counter_alloc_stats - ib_device_ops.counter_alloc_stats
 * @counter: counter
 *
 * Return: what sroce_counter_update_stats() fills, or NULL.
 */
struct rdma_hw_stats *sroce_counter_alloc_stats(struct rdma_counter *counter)
{
	return sroce_alloc_port_stats(counter->device, counter->port);
}

/* What a counter has; found by its number */
struct sroce_counter_set {
	struct sroce_counters __percpu	*counters;
};

static struct sroce_counter_set *sroce_counter_find(const struct rdma_counter *counter)
{
	return xa_load(&to_sdev(counter->device)->counter_sets, counter->id);
}

/**
 * sroce_counter_update_stats - ib_device_ops.counter_update_stats
 * @counter: counter
 *
 * Return: 0.
 */
int sroce_counter_update_stats(struct rdma_counter *counter)
{
	const struct sroce_counter_set *set = sroce_counter_find(counter);

	if (set)
		sroce_stats_fill(counter->stats, set->counters, NULL);
	return 0;
}

static void sroce_counter_free(struct sroce_counter_set *set)
{
	free_percpu(set->counters);
	kfree(set);
}

/* Gives a counter its number */
static struct sroce_counter_set *sroce_counter_new(struct sroce_dev *dev,
						   struct rdma_counter *counter)
{
	struct sroce_counter_set *set = kzalloc(sizeof(*set), GFP_KERNEL_ACCOUNT);
	int err;

	if (!set)
		return ERR_PTR(-ENOMEM);
	set->counters = alloc_percpu_gfp(struct sroce_counters, GFP_KERNEL_ACCOUNT);
	if (!set->counters) {
		kfree(set);
		return ERR_PTR(-ENOMEM);
	}
	err = xa_alloc_cyclic(&dev->counter_sets, &counter->id, set, xa_limit_31b,
			      &dev->counter_next, GFP_KERNEL_ACCOUNT);
	if (err < 0) {
		sroce_counter_free(set);
		return ERR_PTR(err);
	}
	return set;
}

static void sroce_qp_set_counters(struct sroce_qp *qp, struct sroce_counters __percpu *own)
{
	spin_lock_bh(&qp->lock);
	qp->counters = own;
	spin_unlock_bh(&qp->lock);
}

/**
 * sroce_counter_bind - bind a queue pair to a counter
 * @counter: counter
 * @ibqp: queue pair that is bound to none
 *
 * Context: process.  Return: 0 or an errno.
 */
int sroce_counter_bind(struct rdma_counter *counter, struct ib_qp *ibqp)
{
	struct sroce_counter_set *set;

	/* made with the first queue pair; the core serialises this */
	if (counter->id)
		set = sroce_counter_find(counter);
	else
		set = sroce_counter_new(to_sdev(ibqp->device), counter);
	if (IS_ERR_OR_NULL(set))
		return set ? PTR_ERR(set) : -EINVAL;
	sroce_qp_set_counters(to_sqp(ibqp), set->counters);
	ibqp->counter = counter;
	return 0;
}

/**
 * sroce_counter_unbind - the reverse
 * @ibqp: queue pair
 *
 * Context: process.  Return: 0.
 */
int sroce_counter_unbind(struct ib_qp *ibqp)
{
	sroce_qp_set_counters(to_sqp(ibqp), NULL);
	ibqp->counter = NULL;
	return 0;
}

/**
 * sroce_counter_dealloc - ib_device_ops.counter_dealloc
 * @counter: counter to which no queue pair is bound any more
 *
 * Return: 0.
 */
int sroce_counter_dealloc(struct rdma_counter *counter)
{
	struct sroce_counter_set *set;

	mutex_lock(&counter->lock);	/* before 6.17 somebody may still be reading it */
	set = xa_erase(&to_sdev(counter->device)->counter_sets, counter->id);
	mutex_unlock(&counter->lock);
	if (set)	/* queue pairs used it under their locks only */
		sroce_counter_free(set);
	return 0;
}
