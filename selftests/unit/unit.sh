#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# unit.sh: compile the driver's pure parts in user space and test them: wire format and ICRC
# (test.c), and senders that share a simulated bottleneck (senders.c).  Needs a C compiler.

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
cp "$driver"/{wire,icrc,dcqcn}.[ch] "$here/shim/compat.h" "$here"/{test,senders}.c "$tmp" || exit 1

# build NAME SOURCE...
build() {
	local name=$1

	shift
	cc -O2 -Wall -Wextra -Werror -Wno-unused-function -include "$tmp/compat.h" \
		-o "$tmp/$name" "${@/#/$tmp/}"
}
build test {test,wire,icrc}.c && build senders {senders,dcqcn}.c || exit 1

number=0 failed=0
for name in test senders; do
	"$tmp/$name" >"$tmp/out"
	status=$?
	[ $status -eq 0 ] && result=ok || result="not ok" failed=1
	sed 's/^/    /' "$tmp/out"
	echo "$result $((++number)) - $name"
	grep -E '^(not )?ok ' "$tmp/out" >>"$tmp/points"
	[ $status -le 1 ] || echo "not ok - $name: exit status $status" >>"$tmp/points"
done
echo "1..$number"
echo "$(grep -c '^ok' "$tmp/points") passed, $(grep -c '^not ok' "$tmp/points") failed, 0 skipped"
exit $failed
