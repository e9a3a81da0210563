/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The arithmetic of a reaction point: how much a sender may have in a round trip */
#ifndef SROCE_DCQCN_H
#define SROCE_DCQCN_H

#include <linux/types.h>

#define SROCE_MBIT		125000ull	/* bytes per second */
#define SROCE_ALPHA_ONE		1024

/**
 * struct sroce_congestion_parameters - what people may set, for a device
 * @np_enable: CE is answered with a CNP
 * @min_time_between_cnps: for a queue pair, microseconds
 * @cnp_dscp: DSCP of CNPs
 * @cnp_802p_prio: their priority
 * @rp_enable: packets go out as ECN-capable, and CNPs are obeyed
 * @rpg_time_reset: time between increases, microseconds
 * @rpg_byte_reset: bytes after which one counts as a stage further
 * @rpg_threshold: increases before the next stage: those that only go back to where the
 *	rate was, additive ones
 * @rpg_ai_rate: step of additive increase, Mbit/s
 * @rpg_hai_rate: of hyper increase, Mbit/s
 * @rpg_min_rate: no lower than this, Mbit/s
 * @rpg_max_rate: above it nothing is limited, Mbit/s; 0 is 100 Gbit/s
 * @rpg_min_dec_fac: what a CNP leaves of the rate at least, per cent
 * @rate_to_set_on_first_cnp: Mbit/s; 0 is the rate at the time
 * @rate_reduce_monitor_period: time between decreases, microseconds
 * @initial_alpha_value: of 1024
 * @dce_tcp_g: what is left of alpha after each @dce_tcp_rtt, of 1024
 * @dce_tcp_rtt: microseconds
 * @clamp_tgt_rate: a CNP lowers what the rate goes back to as well: there is no fast recovery
 *
 * Set at any time; each is read once where it is needed.
 */
struct sroce_congestion_parameters {
	u32	np_enable;
	u32	min_time_between_cnps;
	u32	cnp_dscp;
	u32	cnp_802p_prio;
	u32	rp_enable;
	u32	rpg_time_reset;
	u32	rpg_byte_reset;
	u32	rpg_threshold;
	u32	rpg_ai_rate;
	u32	rpg_hai_rate;
	u32	rpg_min_rate;
	u32	rpg_max_rate;
	u32	rpg_min_dec_fac;
	u32	rate_to_set_on_first_cnp;
	u32	rate_reduce_monitor_period;
	u32	initial_alpha_value;
	u32	dce_tcp_g;
	u32	dce_tcp_rtt;
	u32	clamp_tgt_rate;
};

/**
 * struct sroce_dcqcn - a sender's state; bytes, nanoseconds of one clock
 * @rtt: round trip time, microseconds
 * @period: the time in which a change takes effect, microseconds: that, or longer
 * @mtu: payload of a packet
 * @window: what may be sent in a round trip
 * @target: to where that recovers
 * @alpha: how many of the last periods brought CNPs, of 1024
 * @told: this one did
 * @held: a CNP came since the time for the next increase began, and lowered nothing
 * @alpha_at: when alpha was brought up to date
 * @cut_at: when the window was lowered last
 * @increase_at: from when on the time to the next increase counts
 * @full_at: when somebody had to wait because of the limit, last
 * @times: increases since the window was lowered
 * @bytes: sent since the last round by bytes
 * @rounds: of those since the window was lowered
 */
struct sroce_dcqcn {
	u32	rtt;
	u32	period;
	u32	mtu;
	u64	window;
	u64	target;
	u32	alpha;
	bool	told;
	bool	held;
	s64	alpha_at;
	s64	cut_at;
	s64	increase_at;
	s64	full_at;
	u32	times;
	u64	bytes;
	u32	rounds;
};

u64 sroce_dcqcn_rate(const struct sroce_dcqcn *c, const struct sroce_congestion_parameters *p);
u64 sroce_dcqcn_bytes(const struct sroce_dcqcn *c, u64 rate);
void sroce_dcqcn_start(struct sroce_dcqcn *c, const struct sroce_congestion_parameters *p,
		       u64 window, s64 now);
void sroce_dcqcn_advance(struct sroce_dcqcn *c, const struct sroce_congestion_parameters *p,
			 s64 now);
void sroce_dcqcn_notified(struct sroce_dcqcn *c, const struct sroce_congestion_parameters *p,
			  s64 now);
void sroce_dcqcn_sent(struct sroce_dcqcn *c, const struct sroce_congestion_parameters *p,
		      u32 bytes);

#endif /* SROCE_DCQCN_H */
