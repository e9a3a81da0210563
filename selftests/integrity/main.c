// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * integrity - move pseudo-random bytes by every operation and check every byte
 *
 * usage: integrity -d DEVICE -g GID_INDEX [-p PORT] [-s SEED] [-o NAME] [-D] [SERVER]
 *
 * Without SERVER it serves one client. The client prints TAP; -o runs only the
 * test points whose name contains NAME. -D: memory is registered on demand, and its
 * pages are taken away while it is used.
 */
#include <stdlib.h>
#include <unistd.h>

#include "../common/tap.h"
#include "integrity.h"

int main(int argc, char **argv)
{
	const char *device = NULL;
	uint64_t seed = 0x5eed;
	int gid_index = 0, port = 18600, c, control, status = 0;
	bool demand = false;
	static struct end e;

	while ((c = getopt(argc, argv, "d:g:p:s:o:D")) != -1) {
		switch (c) {
		case 'd': device = optarg; break;
		case 'g': gid_index = atoi(optarg); break;
		case 'p': port = atoi(optarg); break;
		case 's': seed = strtoull(optarg, NULL, 0); break;
		case 'o': tap_only = optarg; break;
		case 'D': demand = true; break;
		default: die("usage: integrity -d DEVICE -g GID [-p PORT] [-s SEED] [-o NAME] [-D] [SERVER]");
		}
	}
	if (!device)
		die("no -d DEVICE");
	device_open(&e.dev, device, gid_index);
	srandom(seed + !argv[optind]);
	arena_new(&e.arena, e.dev.pd, seed + !argv[optind], demand);
	if (argv[optind]) {
		control = control_connect(argv[optind], port);
		status = run_cases(&e, control, seed);
	} else {
		control = control_listen(port);
		serve(&e, control);
		end_teardown(&e);
	}
	close(control);
	arena_free(&e.arena);
	device_close(&e.dev);
	return status;
}
