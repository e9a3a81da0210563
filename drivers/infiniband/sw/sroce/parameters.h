/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Parameters of congestion control in sysfs */
#ifndef SROCE_PARAMETERS_H
#define SROCE_PARAMETERS_H

struct attribute_group;

extern const struct attribute_group *sroce_port_groups[];

#endif /* SROCE_PARAMETERS_H */
