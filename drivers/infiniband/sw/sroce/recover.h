/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Loss: what a requester sends again and when, and how much it has under way */
#ifndef SROCE_RECOVER_H
#define SROCE_RECOVER_H

#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/types.h>

struct sroce_qp;

/**
 * struct sroce_recovery - what a requester knows of its path, and of what was lost there
 * @window: packets that may be under way
 * @threshold: up to it the window grows by what is acknowledged, above it slowly
 * @grown: packets acknowledged since it grew last
 * @srtt: smoothed round trip time, microseconds; 0 when none was measured
 * @rttvar: its mean deviation
 * @rtt_min: the shortest of all
 * @timing: a round trip is being timed: of the packet @timed, sent at @timed_at
 * @timed: PSN
 * @timed_at: when it was sent
 * @timed_jiffies: when that was; one is timed in a jiffy
 * @doubtful: it was sent again since, as a probe: it may be that which is answered
 * @active: something was lost, and of what was under way then not all is acknowledged
 * @cut: the window was made smaller for it
 * @until: PSN after what was under way then
 * @end: PSN at which sending again ends; what was never sent follows
 * @first: PSN at which it began
 * @at: when
 * @stretch: packets that it was, or is to be
 * @forgets: how often in a row a peer forgot what was sent behind a gap
 * @probe: fires when nothing was acknowledged for longer than that takes
 * @probing: it is running
 * @seen: what was acknowledged when it fired last
 * @probes: sent since anything was acknowledged
 *
 * Protected by the queue pair's lock.
 */
struct sroce_recovery {
	u32		window;
	u32		threshold;
	u32		grown;
	u32		srtt;
	u32		rttvar;
	u32		rtt_min;
	bool		timing;
	u32		timed;
	ktime_t		timed_at;
	unsigned long	timed_jiffies;
	bool		doubtful;
	bool		active;
	bool		cut;
	u32		until;
	u32		end;
	u32		first;
	ktime_t		at;
	u32		stretch;
	u32		forgets;
	struct hrtimer	probe;
	bool		probing;
	u32		seen;
	u8		probes;
};

void sroce_recover_init(struct sroce_qp *qp);
void sroce_recover_exit(struct sroce_qp *qp);
void sroce_recover_start(struct sroce_qp *qp);
void sroce_recover_reset(struct sroce_qp *qp);
void sroce_recover_sent(struct sroce_qp *qp, u32 psn, bool repeated);
void sroce_recover_progress(struct sroce_qp *qp, u32 from);
void sroce_recover_more(struct sroce_qp *qp, u32 from);
void sroce_recover_nak(struct sroce_qp *qp);
void sroce_recover_gap(struct sroce_qp *qp);
void sroce_recover_wait(struct sroce_qp *qp, u32 us);
void sroce_recover_later(struct sroce_qp *qp, u32 us);
void sroce_recover_watch(struct sroce_qp *qp);

#endif /* SROCE_RECOVER_H */
