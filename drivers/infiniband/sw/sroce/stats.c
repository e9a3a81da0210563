// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The port's counters, as "rdma statistic" and sysfs hw_counters show them */
#include <rdma/ib_verbs.h>
#include "device.h"
#include "stats.h"

#define SROCE_COUNTER_DESC(id, text) [SROCE_CNT_##id] = { .name = text },
static const struct rdma_stat_desc sroce_counter_descs[] = {
	SROCE_COUNTERS(SROCE_COUNTER_DESC)
	[SROCE_CNT_COUNT] = { .name = "icrc_errors" },	/* another name of one, last */
};

/**
 * sroce_counter_name - what a counter is called
 * @counter: counter
 *
 * Return: its name.
 */
const char *sroce_counter_name(enum sroce_counter counter)
{
	return sroce_counter_descs[counter].name;
}

static u64 sroce_counters_sum(const struct sroce_counters __percpu *from,
			      enum sroce_counter counter)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(from, cpu)->value[counter]);
	return sum;
}

/**
 * sroce_counter_sum - read a counter
 * @dev: device
 * @counter: counter
 *
 * Return: its sum over all CPUs, which may change meanwhile.
 */
u64 sroce_counter_sum(const struct sroce_dev *dev, enum sroce_counter counter)
{
	return sroce_counters_sum(dev->counters, counter);
}

/**
 * sroce_stats_fill - read all counters
 * @stats: where to, of sroce_alloc_port_stats()
 * @from: counters
 * @less: to be subtracted, or NULL
 */
void sroce_stats_fill(struct rdma_hw_stats *stats, const struct sroce_counters __percpu *from,
		      const struct sroce_counters __percpu *less)
{
	u64 sum, part;
	int i;

	for (i = 0; i < SROCE_CNT_COUNT; i++) {
		part = less ? sroce_counters_sum(less, i) : 0;
		sum = sroce_counters_sum(from, i);
		stats->value[i] = sum - min(sum, part);	/* both may be changing */
	}
	stats->value[SROCE_CNT_COUNT] = stats->value[SROCE_CNT_ICRC_ERRORS];
}

/**
 * sroce_alloc_port_stats - ib_device_ops.alloc_hw_port_stats
 * @ibdev: device
 * @port: port number; there is one
 *
 * Return: the structure that the core fills by sroce_get_port_stats(), or NULL.
 */
struct rdma_hw_stats *sroce_alloc_port_stats(struct ib_device *ibdev, u32 port)
{
	return rdma_alloc_hw_stats_struct(sroce_counter_descs, ARRAY_SIZE(sroce_counter_descs),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

/**
 * sroce_get_port_stats - ib_device_ops.get_hw_stats
 * @ibdev: device
 * @stats: where to
 * @port: port number, 0 for the device itself, which has none
 * @index: ignored, all are read
 *
 * Without what queue pairs count that are bound to a counter of their own: the core adds it.
 * Return: number of counters, or -EINVAL for the device itself.
 */
int sroce_get_port_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
			 u32 port, int index)
{
	const struct sroce_dev *dev = to_sdev(ibdev);

	if (!port)
		return -EINVAL;
	sroce_stats_fill(stats, dev->counters, dev->bound_counters);
	return ARRAY_SIZE(sroce_counter_descs);
}
