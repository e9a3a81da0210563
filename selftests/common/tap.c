// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "tap.h"

#include <stdarg.h>

static int tap_count;
static int tap_failures;
const char *tap_only;
char tap_name[256];
char tap_reason[4096];
static char tap_why_skipped[256];
static char tap_known[256];

bool tap_begin(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(tap_name, sizeof(tap_name), format, ap);
	va_end(ap);
	tap_reason[0] = tap_why_skipped[0] = tap_known[0] = 0;
	return !tap_only || strstr(tap_name, tap_only);
}

bool fail(const char *format, ...)
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

void tap_skip(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(tap_why_skipped, sizeof(tap_why_skipped), format, ap);
	va_end(ap);
}

void tap_xfail(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(tap_known, sizeof(tap_known), format, ap);
	va_end(ap);
}

void tap_end(void)
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
	} else if (tap_known[0]) {
		printf("ok %d - %s # XFAIL %s\n", tap_count, tap_name, tap_known);
	} else {
		printf("ok %d - %s\n", tap_count, tap_name);
	}
	fflush(stdout);
}

int tap_plan(void)
{
	printf("1..%d\n", tap_count);
	fflush(stdout);
	return tap_failures ? 1 : 0;
}
