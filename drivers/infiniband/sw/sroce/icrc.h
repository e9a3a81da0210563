/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef SROCE_ICRC_H
#define SROCE_ICRC_H

#include <linux/types.h>

struct iphdr;
struct ipv6hdr;
struct udphdr;

int sroce_icrc_init(void);
void sroce_icrc_exit(void);

u32 sroce_icrc_ipv4(const struct iphdr *ip, const struct udphdr *udp, u16 id, u16 udp_len);
u32 sroce_icrc_ipv6(const struct ipv6hdr *ip, const struct udphdr *udp, u16 udp_len);
__le32 sroce_icrc_packet(u32 seed, const void *bth, u32 len);

#endif /* SROCE_ICRC_H */
