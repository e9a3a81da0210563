#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# unit.sh: compile the driver's pure parts in user space and test them.  Needs a C compiler.

here=$(dirname "$(readlink -f "$0")")
driver=$here/../../drivers/infiniband/sw/sroce
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

command -v cc >/dev/null || {
	echo "1..0 # SKIP no C compiler installed"
	echo "0 passed, 0 failed, 1 skipped"
	exit 4
}
# beside the sources, the kernel's compat.h would be found first
cp "$driver"/{wire,icrc}.[ch] "$here/shim/compat.h" "$here/test.c" "$tmp" &&
cc -Wall -Wextra -Werror -Wno-unused-function -include "$tmp/compat.h" \
	-o "$tmp/test" "$tmp"/{test,wire,icrc}.c &&
"$tmp/test"
