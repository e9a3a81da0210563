/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Packets of a queue pair, into bursts and on to transmission */
#ifndef SROCE_BUILD_H
#define SROCE_BUILD_H

#include "encap.h"

struct sroce_qp;

/**
 * struct sroce_build - a packet to be built
 * @av: where it goes
 * @opcode: without the service
 * @qpn: destination queue pair
 * @psn: PSN
 * @pkey_index: index of the P_Key
 * @solicited: the receiver is to be woken
 * @ask: ask for an acknowledgment
 * @length: payload, bytes
 * @eth: where the extended transport headers go, set by sroce_build_begin()
 * @payload: where the payload goes, likewise
 * @packet: the whole of it, @bytes long, likewise
 */
struct sroce_build {
	struct sroce_av	*av;
	u8		opcode;
	u32		qpn;
	u32		psn;
	u16		pkey_index;
	bool		solicited;
	bool		ask;
	u32		length;
	void		*eth;
	void		*payload;
	void		*packet;
	u32		bytes;
};

int sroce_build_begin(struct sroce_qp *qp, struct sroce_burst *burst, struct sroce_build *b);
void sroce_build_end(struct sroce_qp *qp, struct sroce_burst *burst, struct sroce_build *b);
void sroce_build_cancel(struct sroce_qp *qp, struct sroce_burst *burst, struct sroce_build *b);
void sroce_build_ask(struct sroce_burst *burst);
void sroce_build_flush(struct sroce_qp *qp, struct sroce_burst *burst);

#endif /* SROCE_BUILD_H */
