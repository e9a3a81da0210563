// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The arithmetic of a reaction point (DCQCN, Zhu et al., SIGCOMM 2015), nothing else: it is
 * also compiled in user space, where a simulated network tests it.
 *
 * Hardware's periods are made for round trips of some microseconds, and of thousands of
 * packets in each; its steps are a rate.  A path here may be slow, and its round trip is
 * then mostly the queue that the senders made.  So:
 *
 * The state is what may be sent in a round trip, and the rate follows from it.  When the queue
 * grows, the rate falls by itself, before any CNP comes; and who has acknowledgments to go by
 * bounds by it what is under way.
 *
 * No period is shorter than a round trip, which is the same for all who share a queue,
 * whatever their rates.  In each there is one decrease at most, alpha learns once whether
 * there was a CNP, and there is one increase, if there was none and the limit was felt.
 *
 * A step adds no more than half a packet, which is next to nothing of a large window, but may
 * be all of a small one.  Increases come by time only: by bytes they would be the more
 * frequent the faster a sender is already, and keep it so.
 */
#include "compat.h"
#include "dcqcn.h"

/* Changes that are made up for at once, after nobody looked for long */
#define SROCE_ALPHA_CATCH_UP	64
#define SROCE_INCREASE_CATCH_UP	4

/* A decrease takes a quarter at least: alpha forgets, but the queue is there */
#define SROCE_ALPHA_MIN		512

/* Additive increase is no more than this part of a packet, hyper increase of the window */
#define SROCE_ADDITIVE_PART	2
#define SROCE_HYPER_PART	16

/* A period that was set, but no shorter than a change takes to show, nanoseconds */
static s64 sroce_dcqcn_period(const struct sroce_dcqcn *c, u32 us)
{
	return (s64)max(us, c->period) * NSEC_PER_USEC;
}

/**
 * sroce_dcqcn_bytes - what a rate is in a round trip
 * @c: sender, of which only the path has to be set
 * @rate: bytes per second, at most 2^43
 *
 * Return: bytes.
 */
u64 sroce_dcqcn_bytes(const struct sroce_dcqcn *c, u64 rate)
{
	return div_u64(rate * c->rtt, USEC_PER_SEC);
}

/* It gets no lower: the least rate that was set, or a packet in a round trip if that is less */
static u64 sroce_dcqcn_least(const struct sroce_dcqcn *c,
			     const struct sroce_congestion_parameters *p)
{
	u64 set = sroce_dcqcn_bytes(c, max(READ_ONCE(p->rpg_min_rate), 1u) * SROCE_MBIT);

	return clamp_t(u64, set, 1, c->mtu);
}

/**
 * sroce_dcqcn_rate - how fast a sender may be
 * @c: sender
 * @p: parameters
 *
 * Return: bytes per second, never 0.
 */
u64 sroce_dcqcn_rate(const struct sroce_dcqcn *c, const struct sroce_congestion_parameters *p)
{
	u64 rate = div_u64(max(c->window, sroce_dcqcn_least(c, p)) * USEC_PER_SEC, c->rtt);

	return max(rate, 1ull);
}

/* What an increase that was set, Mbit/s, adds; it is no more than @most in a period */
static u64 sroce_dcqcn_step(const struct sroce_dcqcn *c, u32 mbit, u64 most)
{
	return min(sroce_dcqcn_bytes(c, mbit * SROCE_MBIT),
		   div_u64(most * c->rtt, c->period));
}

/* An increase is due: of the kind that the number of those before calls for */
static void sroce_dcqcn_increase(struct sroce_dcqcn *c,
				 const struct sroce_congestion_parameters *p)
{
	u32 threshold = READ_ONCE(p->rpg_threshold);
	u64 part = c->mtu / SROCE_ADDITIVE_PART;

	c->times++;
	if (min(c->times, c->rounds) > threshold)
		c->target += sroce_dcqcn_step(c, READ_ONCE(p->rpg_hai_rate),
					      max(part, c->window / SROCE_HYPER_PART));
	else if (READ_ONCE(p->clamp_tgt_rate) || max(c->times, c->rounds) > threshold)
		c->target += sroce_dcqcn_step(c, READ_ONCE(p->rpg_ai_rate), part);
	c->window = (c->window + c->target + 1) / 2;
}

/**
 * sroce_dcqcn_advance - make up for what time has brought
 * @c: sender
 * @p: parameters
 * @now: time
 */
void sroce_dcqcn_advance(struct sroce_dcqcn *c, const struct sroce_congestion_parameters *p,
			 s64 now)
{
	s64 period = sroce_dcqcn_period(c, READ_ONCE(p->dce_tcp_rtt));
	u32 g = READ_ONCE(p->dce_tcp_g);
	int n;

	for (n = 0; n < SROCE_ALPHA_CATCH_UP && now - c->alpha_at >= period; n++) {
		c->alpha = c->alpha * g / SROCE_ALPHA_ONE + (c->told ? SROCE_ALPHA_ONE - g : 0);
		c->told = false;
		c->alpha_at += period;
	}
	if (n == SROCE_ALPHA_CATCH_UP)
		c->alpha_at = now;
	period = sroce_dcqcn_period(c, READ_ONCE(p->rpg_time_reset));
	for (n = 0; n < SROCE_INCREASE_CATCH_UP && now - c->increase_at >= period; n++) {
		if (!c->held && c->full_at >= c->increase_at)
			sroce_dcqcn_increase(c, p);
		c->held = false;
		c->increase_at += period;
	}
	if (n == SROCE_INCREASE_CATCH_UP)
		c->increase_at = now;
}

static void sroce_dcqcn_cut(struct sroce_dcqcn *c, const struct sroce_congestion_parameters *p,
			    s64 now)
{
	u32 left = min(READ_ONCE(p->rpg_min_dec_fac), 100u);
	u32 alpha = max_t(u32, c->alpha, SROCE_ALPHA_MIN);
	u64 before = c->window;
	u64 window = before - div_u64(before * alpha, 2 * SROCE_ALPHA_ONE);

	window = max(window, div_u64(before * left, 100));
	c->window = max(window, sroce_dcqcn_least(c, p));
	c->target = READ_ONCE(p->clamp_tgt_rate) ? c->window : max(before, c->window);
	c->times = 0;
	c->rounds = 0;
	c->bytes = 0;
	c->cut_at = now;
	c->increase_at = now;
	c->held = false;
}

/**
 * sroce_dcqcn_start - the first CNP in a while came
 * @c: sender, of which the path is set
 * @p: parameters
 * @window: what was sent in a round trip
 * @now: time
 */
void sroce_dcqcn_start(struct sroce_dcqcn *c, const struct sroce_congestion_parameters *p,
		       u64 window, s64 now)
{
	c->window = max(window, sroce_dcqcn_least(c, p));
	c->alpha = min_t(u32, READ_ONCE(p->initial_alpha_value), SROCE_ALPHA_ONE);
	c->alpha_at = now;
	c->told = true;
	c->full_at = now;
	sroce_dcqcn_cut(c, p, now);
}

/**
 * sroce_dcqcn_notified - another CNP came
 * @c: sender that was started
 * @p: parameters
 * @now: time
 */
void sroce_dcqcn_notified(struct sroce_dcqcn *c, const struct sroce_congestion_parameters *p,
			  s64 now)
{
	s64 period = sroce_dcqcn_period(c, READ_ONCE(p->rate_reduce_monitor_period));

	sroce_dcqcn_advance(c, p, now);
	c->told = true;
	if (now - c->cut_at < period)
		c->held = true;
	else
		sroce_dcqcn_cut(c, p, now);
}

/**
 * sroce_dcqcn_sent - a packet was sent
 * @c: sender that was started
 * @p: parameters
 * @bytes: its length
 *
 * What was set may be more than a slow sender has in many periods: what it may send in one
 * counts as well.
 */
void sroce_dcqcn_sent(struct sroce_dcqcn *c, const struct sroce_congestion_parameters *p,
		      u32 bytes)
{
	c->bytes += bytes;
	if (c->bytes < min_t(u64, READ_ONCE(p->rpg_byte_reset), c->window))
		return;
	c->bytes = 0;
	c->rounds++;
}
