/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* tap.h - a test point fails with the first thing that goes wrong in it. */
#ifndef SELFTEST_TAP_H
#define SELFTEST_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_count;
static int tap_failures;
static const char *tap_only;		/* run only names that contain this */
static char tap_name[256];
static char tap_reason[4096];
static char tap_why_skipped[256];

/* tap_begin - start a test point; false if it is not asked for */
__attribute__((format(printf, 1, 2), unused))
static bool tap_begin(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(tap_name, sizeof(tap_name), format, ap);
	va_end(ap);
	tap_reason[0] = tap_why_skipped[0] = 0;
	return !tap_only || strstr(tap_name, tap_only);
}

/* fail - note what went wrong; always false, so that "return fail(...)" reads well */
__attribute__((format(printf, 1, 2), unused))
static bool fail(const char *format, ...)
{
	size_t used = strlen(tap_reason);
	va_list ap;

	if (used + 2 < sizeof(tap_reason)) {
		va_start(ap, format);
		vsnprintf(tap_reason + used, sizeof(tap_reason) - used - 1, format, ap);
		va_end(ap);
		strcat(tap_reason, "\n");
	}
	return false;
}

/* tap_skip - the test point turns out not to be possible here */
__attribute__((format(printf, 1, 2), unused))
static void tap_skip(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(tap_why_skipped, sizeof(tap_why_skipped), format, ap);
	va_end(ap);
}

/* tap_end - print the test point: failed if fail() was called since tap_begin() */
__attribute__((unused))
static void tap_end(void)
{
	char *line, *rest = tap_reason;

	tap_count++;
	if (tap_reason[0]) {
		tap_failures++;
		printf("not ok %d - %s\n", tap_count, tap_name);
		while ((line = strsep(&rest, "\n")))
			if (*line)
				printf("#   %s\n", line);
	} else if (tap_why_skipped[0]) {
		printf("ok %d - %s # SKIP %s\n", tap_count, tap_name, tap_why_skipped);
	} else {
		printf("ok %d - %s\n", tap_count, tap_name);
	}
	fflush(stdout);
}

/* tap_plan - print the plan; returns the exit status */
__attribute__((unused))
static int tap_plan(void)
{
	printf("1..%d\n", tap_count);
	fflush(stdout);
	return tap_failures ? 1 : 0;
}

/* expect - within a test point: if COND does not hold, fail with the message and return false */
#define expect(cond, ...)					\
	do {							\
		if (!(cond))					\
			return fail(__VA_ARGS__);		\
	} while (0)

#endif
