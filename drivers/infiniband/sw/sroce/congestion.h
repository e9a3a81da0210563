/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Congestion: how fast a queue pair may send, and when it tells its peer */
#ifndef SROCE_CONGESTION_H
#define SROCE_CONGESTION_H

#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/types.h>

struct sroce_dev;
struct sroce_qp;

/**
 * struct sroce_congestion_parameters - what people may set, for a device
 * @np_enable: CE is answered with a CNP
 * @min_time_between_cnps: for a queue pair, microseconds
 * @cnp_dscp: DSCP of CNPs
 * @cnp_802p_prio: their priority
 * @rp_enable: packets go out as ECN-capable, and CNPs are obeyed
 * @rpg_time_reset: time between increases, microseconds
 * @rpg_byte_reset: bytes between increases
 * @rpg_threshold: increases that only go back to where the rate was
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
 * @clamp_tgt_rate: every CNP makes the present rate the one to go back to; else only
 *	one that comes after an increase does
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
 * struct sroce_congestion - a queue pair's reaction point, and its notification point
 * @limited: there is a rate limit
 * @rate: it, bytes per second
 * @target: to where it recovers
 * @alpha: how congested the path is, of 1024
 * @alpha_at: when that was last brought up to date
 * @cut_at: when the rate was lowered last
 * @increase_at: from when on the time to the next increase counts
 * @times: increases by time since then
 * @bytes: sent since the last increase by bytes
 * @rounds: of those since the last decrease
 * @sent: bytes sent since @sent_at
 * @sent_at: when that was last looked at
 * @used: twice the rate at which it went then
 * @departs: when the next packet may leave
 * @timer: fires then
 * @timing: it is running
 * @notify: a CNP is to be sent
 * @notified_at: when one was sent last
 *
 * Protected by the queue pair's lock.
 */
struct sroce_congestion {
	bool		limited;
	u64		rate;
	u64		target;
	u32		alpha;
	ktime_t		alpha_at;
	ktime_t		cut_at;
	ktime_t		increase_at;
	u32		times;
	u64		bytes;
	u32		rounds;
	u64		sent;
	ktime_t		sent_at;
	u64		used;
	ktime_t		departs;
	struct hrtimer	timer;
	bool		timing;
	bool		notify;
	ktime_t		notified_at;
};

void sroce_congestion_setup(struct sroce_dev *dev);
void sroce_congestion_init(struct sroce_qp *qp);
void sroce_congestion_exit(struct sroce_qp *qp);
void sroce_congestion_reset(struct sroce_qp *qp);
void sroce_congestion_seen(struct sroce_qp *qp);
void sroce_congestion_notify(struct sroce_qp *qp);
void sroce_congestion_notified(struct sroce_qp *qp);
bool sroce_congestion_wait(struct sroce_qp *qp);
void sroce_congestion_sent(struct sroce_qp *qp, u32 bytes);
ktime_t sroce_congestion_departure(struct sroce_qp *qp);

#endif /* SROCE_CONGESTION_H */
