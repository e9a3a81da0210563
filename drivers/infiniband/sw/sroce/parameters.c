// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Parameters of congestion control: /sys/class/infiniband/DEVICE/ports/1/roce_np and
 * roce_rp, with the names that hardware's drivers give them.
 */
#include <linux/sysfs.h>
#include <rdma/ib_sysfs.h>
#include "congestion.h"
#include "device.h"
#include "parameters.h"

/**
 * struct sroce_parameter - a file
 * @attr: what the core calls
 * @offset: of the value in struct sroce_congestion_parameters
 * @min: least value
 * @max: greatest
 */
struct sroce_parameter {
	struct ib_port_attribute	attr;
	size_t				offset;
	u32				min;
	u32				max;
};

static u32 *sroce_parameter_value(struct ib_device *ibdev, const struct sroce_parameter *p)
{
	return (void *)&to_sdev(ibdev)->congestion + p->offset;
}

static ssize_t sroce_parameter_show(struct ib_device *ibdev, u32 port,
				    struct ib_port_attribute *attr, char *buf)
{
	struct sroce_parameter *p = container_of(attr, struct sroce_parameter, attr);

	return sysfs_emit(buf, "%u\n", READ_ONCE(*sroce_parameter_value(ibdev, p)));
}

static ssize_t sroce_parameter_store(struct ib_device *ibdev, u32 port,
				     struct ib_port_attribute *attr, const char *buf, size_t count)
{
	struct sroce_parameter *p = container_of(attr, struct sroce_parameter, attr);
	u32 value;
	int err = kstrtou32(buf, 0, &value);

	if (err)
		return err;
	if (value < p->min || value > p->max)
		return -ERANGE;
	WRITE_ONCE(*sroce_parameter_value(ibdev, p), value);
	return count;
}

#define SROCE_PARAMETER(name, file, field, least, most)				\
	static struct sroce_parameter sroce_parameter_##name = {		\
		.attr = __ATTR(file, 0644, sroce_parameter_show,		\
			       sroce_parameter_store),				\
		.offset = offsetof(struct sroce_congestion_parameters, field),	\
		.min = least,							\
		.max = most,							\
	}

/* Mbit/s: what is computed from it stays far from the end of 64 bits */
#define SROCE_RATE_MAX		4000000
/* Microseconds */
#define SROCE_TIME_MAX		1000000

SROCE_PARAMETER(np_enable, enable, np_enable, 0, 1);
SROCE_PARAMETER(min_time_between_cnps, min_time_between_cnps, min_time_between_cnps, 0,
		SROCE_TIME_MAX);
SROCE_PARAMETER(cnp_dscp, cnp_dscp, cnp_dscp, 0, 63);
SROCE_PARAMETER(cnp_802p_prio, cnp_802p_prio, cnp_802p_prio, 0, 7);

static struct attribute *sroce_np_attrs[] = {
	&sroce_parameter_np_enable.attr.attr,
	&sroce_parameter_min_time_between_cnps.attr.attr,
	&sroce_parameter_cnp_dscp.attr.attr,
	&sroce_parameter_cnp_802p_prio.attr.attr,
	NULL
};

static const struct attribute_group sroce_np_group = {
	.name = "roce_np",
	.attrs = sroce_np_attrs,
};

SROCE_PARAMETER(rp_enable, enable, rp_enable, 0, 1);
SROCE_PARAMETER(rpg_time_reset, rpg_time_reset, rpg_time_reset, 1, SROCE_TIME_MAX);
SROCE_PARAMETER(rpg_byte_reset, rpg_byte_reset, rpg_byte_reset, 1, S32_MAX);
SROCE_PARAMETER(rpg_threshold, rpg_threshold, rpg_threshold, 0, 31);
SROCE_PARAMETER(rpg_ai_rate, rpg_ai_rate, rpg_ai_rate, 1, SROCE_RATE_MAX);
SROCE_PARAMETER(rpg_hai_rate, rpg_hai_rate, rpg_hai_rate, 1, SROCE_RATE_MAX);
SROCE_PARAMETER(rpg_min_rate, rpg_min_rate, rpg_min_rate, 1, SROCE_RATE_MAX);
SROCE_PARAMETER(rpg_max_rate, rpg_max_rate, rpg_max_rate, 0, SROCE_RATE_MAX);
SROCE_PARAMETER(rpg_min_dec_fac, rpg_min_dec_fac, rpg_min_dec_fac, 1, 100);
SROCE_PARAMETER(first_cnp, rate_to_set_on_first_cnp, rate_to_set_on_first_cnp, 0,
		SROCE_RATE_MAX);
SROCE_PARAMETER(monitor_period, rate_reduce_monitor_period, rate_reduce_monitor_period, 0,
		SROCE_TIME_MAX);
SROCE_PARAMETER(initial_alpha, initial_alpha_value, initial_alpha_value, 1, 1023);
SROCE_PARAMETER(dce_tcp_g, dce_tcp_g, dce_tcp_g, 1, 1023);
SROCE_PARAMETER(dce_tcp_rtt, dce_tcp_rtt, dce_tcp_rtt, 1, SROCE_TIME_MAX);
SROCE_PARAMETER(clamp_tgt_rate, clamp_tgt_rate, clamp_tgt_rate, 0, 1);

static struct attribute *sroce_rp_attrs[] = {
	&sroce_parameter_rp_enable.attr.attr,
	&sroce_parameter_rpg_time_reset.attr.attr,
	&sroce_parameter_rpg_byte_reset.attr.attr,
	&sroce_parameter_rpg_threshold.attr.attr,
	&sroce_parameter_rpg_ai_rate.attr.attr,
	&sroce_parameter_rpg_hai_rate.attr.attr,
	&sroce_parameter_rpg_min_rate.attr.attr,
	&sroce_parameter_rpg_max_rate.attr.attr,
	&sroce_parameter_rpg_min_dec_fac.attr.attr,
	&sroce_parameter_first_cnp.attr.attr,
	&sroce_parameter_monitor_period.attr.attr,
	&sroce_parameter_initial_alpha.attr.attr,
	&sroce_parameter_dce_tcp_g.attr.attr,
	&sroce_parameter_dce_tcp_rtt.attr.attr,
	&sroce_parameter_clamp_tgt_rate.attr.attr,
	NULL
};

static const struct attribute_group sroce_rp_group = {
	.name = "roce_rp",
	.attrs = sroce_rp_attrs,
};

/* ib_device_ops.port_groups */
const struct attribute_group *sroce_port_groups[] = {
	&sroce_np_group,
	&sroce_rp_group,
	NULL
};
