/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Stands for the driver's compat.h when its pure parts are compiled in user space: the
 * kernel's types and arithmetic, and a CRC-32 written from the polynomial, bit by bit, as an oracle.
 */
#ifndef UNIT_COMPAT_H
#define UNIT_COMPAT_H

#include <arpa/inet.h>
#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <linux/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;

#define __force
#define __packed	__attribute__((packed))
#define cpu_to_le32	htole32

#define NSEC_PER_USEC	1000
#define USEC_PER_SEC	1000000
#define READ_ONCE(x)	(x)
#define min(a, b)	((a) < (b) ? (a) : (b))
#define max(a, b)	((a) > (b) ? (a) : (b))
#define min_t(t, a, b)	min((t)(a), (t)(b))
#define max_t(t, a, b)	max((t)(a), (t)(b))
#define clamp_t(t, x, a, b)	min_t(t, max_t(t, x, a), b)

static inline u64 div_u64(u64 a, u32 b)
{
	return a / b;
}

static inline int sroce_crc32_init(void)
{
	return 0;
}

static inline void sroce_crc32_exit(void)
{
}

static inline u32 sroce_crc32(u32 crc, const void *data, size_t len)
{
	const u8 *p = data;
	int bit;

	while (len--) {
		crc ^= *p++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

#endif
