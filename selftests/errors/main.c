// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * errors - completion statuses, states, limits and events
 *
 * usage: errors DEVICE_A GID_INDEX_A DEVICE_B GID_INDEX_B [NAME]
 *
 * Both devices are opened by this one process. Prints TAP; with NAME only the test
 * points whose name contains it.
 */
#include "pair.h"

int main(int argc, char **argv)
{
	static struct pair p;
	int gids[2];

	if (argc < 5)
		die("usage: errors DEVICE_A GID_INDEX_A DEVICE_B GID_INDEX_B [NAME]");
	gids[0] = atoi(argv[2]);
	gids[1] = atoi(argv[4]);
	tap_only = argv[5];
	srandom(1);
	pair_open(&p, (char *[]) { argv[1], argv[3] }, gids);
	completion_cases(&p);
	state_cases(&p);
	resource_cases(&p);
	event_cases(&p);
	race_cases(&p);
	stream_cases(&p);
	garbage_cases(&p);
	return tap_plan();
}
