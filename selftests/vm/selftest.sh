#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck disable=SC2016 # the guest's shell expands it
#
# selftest.sh [OPTIONS OF vm]: the guest runner's own test, in TAP; for example
#   selftest.sh -b uml

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
options=("$@")
number=0 failed=0

# check DESCRIPTION COMMAND...: one test, passed if COMMAND succeeds
check()
{
	local description=$1

	shift
	number=$((number + 1))
	if "$@"; then
		echo "ok $number - $description"
	else
		echo "not ok $number - $description"
		sed 's/^/# /' "$work/stderr" | tail -n 30
		failed=$((failed + 1))
	fi
}

# vm ARGS...: run a guest; its output is in $work/stdout and stderr, its status in $status
vm()
{
	"$here/vm" "${options[@]}" "$@" > "$work/stdout" 2> "$work/stderr"
	status=$?
}

status_is() { [ "$status" = "$1" ]; }
stdout_is() { [ "$(< "$work/stdout")" = "$1" ]; }
says() { grep -q -- "$1" "$work/stderr"; }

# the runner and its guest name their directory on their command lines
no_guest_left()
{
	for _ in 1 2 3 4 5; do
		pgrep -f -- "$1" > /dev/null || return 0
		sleep 1
	done
	return 1
}

# second_comes_later: the lines on standard input are seconds apart
second_comes_later()
{
	local first second

	read -r first || return 1
	SECONDS=0
	read -r second && [ "$first $second" = "first second" ] && [ $SECONDS -ge 3 ]
}

echo "TAP version 13"
"$here/vm" "${options[@]}" --prepare 2> "$work/stderr"
status=$?
check "everything that a guest needs can be prepared" status_is 0

vm -o "$work/out" -- sh -c \
	'echo out; echo err >&2; pwd; echo noise > /dev/kmsg; echo data > /out/file; exit 7'
check "the command's exit status passes through" status_is 7
check "its output, and only that, is on standard output" stdout_is $'out\nerr\n/src'
check "what it writes to /out is in the directory" [ "$(cat "$work/out/file")" = data ]
check "kernel messages are in the console's log" grep -q noise "$work/out/console.log"

vm -- sh -c 'lsmod | grep -q "^sroce " && ! touch /src/file 2> /dev/null &&
	modprobe rdma_rxe && modprobe nvme-rdma && modprobe -n sroce &&
	touch /file && [ "$(id -u)" = 0 ] && [ -e /dev/infiniband/rdma_cm ]'
check "the module is loaded, others can be, and the source is read-only" status_is 0

vm -n -- sh -c 'lsmod | grep -q "^sroce " && exit 1; modprobe sroce'
check "-n leaves the module unloaded, but there" status_is 0

vm -n -- printf '%s|' 'two words' '' '$HOME' -- -o
check "the command's words arrive as they are" stdout_is 'two words||$HOME|--|-o|'

"$here/vm" "${options[@]}" -n -- sh -c 'echo first; sleep 5; echo second' 2> "$work/stderr" |
	second_comes_later
status=$?
check "output comes as it is written" status_is 0

vm -n -- sh -c 'sleep 1000 & head -c 3000000 /dev/zero'
check "a process left behind keeps no guest alive" status_is 0
check "no output is lost" [ "$(stat -c %s "$work/stdout")" = 3000000 ]

vm -n -- sh -c 'echo "WARNING: CPU: 0 PID: 1 at here.c:1 here+0x1/0x2" > /dev/kmsg; exit 3'
check "a kernel warning fails the run" status_is 99
check "and is shown" says "at here.c:1"

vm -n -o "$work/oops" -- sh -c 'echo c > /proc/sysrq-trigger; sleep 100'
check "a crash of the kernel fails the run" status_is 99
check "and is shown" says "Kernel panic"

vm -n -t 20 -o "$work/hang" -- sh -c 'trap "" TERM; echo waiting; sleep 1000'
check "a hang ends with the time-out's status" status_is 124
check "the output before it is there" stdout_is waiting
check "the console's end is shown" says "the command starts"
check "no process is left" no_guest_left "$work/hang"

"$here/vm" "${options[@]}" -n -o "$work/killed" -- sleep 1000 2> "$work/stderr" &
runner=$!
sleep 10
kill -KILL $runner
wait $runner 2> /dev/null
check "a killed runner takes its guest with it" no_guest_left "$work/killed"

vm -n -- sleep 10 &
first=$!
"$here/vm" "${options[@]}" -n -- true 2> "$work/stderr2"
status2=$?
wait $first
check "two guests can run at once" [ "$status2" = 0 ]

vm
check "no command is a usage error" status_is 2

echo "1..$number"
[ $failed = 0 ]
