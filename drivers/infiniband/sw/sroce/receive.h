/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Frames from the IP stack to queue pairs */
#ifndef SROCE_RECEIVE_H
#define SROCE_RECEIVE_H

#include <linux/netfilter.h>

unsigned int sroce_receive_ipv4(void *priv, struct sk_buff *skb,
				const struct nf_hook_state *state);
unsigned int sroce_receive_ipv6(void *priv, struct sk_buff *skb,
				const struct nf_hook_state *state);

#endif /* SROCE_RECEIVE_H */
