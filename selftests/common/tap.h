/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* tap.h - a test point fails with the first thing that goes wrong in it. */
#ifndef SELFTEST_TAP_H
#define SELFTEST_TAP_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char *tap_only;	/* run only test points whose name contains this */
extern char tap_name[256];	/* of the test point in hand */
extern char tap_reason[4096];	/* why it failed; empty: it has not */

/** tap_begin() - start a test point. Return: false if it is not asked for */
__attribute__((format(printf, 1, 2)))
bool tap_begin(const char *format, ...);

/** fail() - note what went wrong; always false, so that "return fail(...)" reads well */
__attribute__((format(printf, 1, 2)))
bool fail(const char *format, ...);

/** tap_skip() - the test point turns out not to be possible here, and why */
__attribute__((format(printf, 1, 2)))
void tap_skip(const char *format, ...);

/** tap_xfail() - the test point meets a known fault of something else, and which */
__attribute__((format(printf, 1, 2)))
void tap_xfail(const char *format, ...);

/** tap_end() - print the test point: failed if fail() was called since tap_begin() */
void tap_end(void);

/** tap_plan() - print the plan. Return: exit status */
int tap_plan(void);

/* expect - within a test point: if COND does not hold, fail with the message and return false */
#define expect(cond, ...)					\
	do {							\
		if (!(cond))					\
			return fail(__VA_ARGS__);		\
	} while (0)

#endif
