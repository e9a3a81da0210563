#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# kunit.sh: the driver's pure parts, compiled for and run in the kernel, by KUnit.

cd "$(dirname "$0")" || exit 1
. ./lib.sh

RESULTS=/sys/kernel/debug/kunit/sroce/results

on_exit() { modprobe -r sroce_kunit 2>/dev/null; }

need modprobe
modprobe -nq sroce_kunit || skip_all "no module sroce_kunit: a kernel without CONFIG_KUNIT"
modprobe -r sroce_kunit 2>/dev/null
tap_start "KUnit"
modprobe sroce_kunit 2>"$TMP/load.out" || bail "load sroce_kunit" "$TMP/load.out"
[ -e $RESULTS ] || bail "the suite leaves results in $RESULTS"
# KTAP: the cases are indented, what a failure says stands before its result
while IFS= read -r line; do
	case $line in
	"    ok "*) ok "${line#*ok [0-9]* }" ;;
	"    not ok "*) not_ok "${line#*ok [0-9]* }" "$TMP/said.out" ;;
	*)
		echo "$line" >>"$TMP/said.out"
		continue
		;;
	esac
	: >"$TMP/said.out"
done <$RESULTS
[ "$tap_count" -gt 0 ] || bail "the suite has cases" $RESULTS
tap_done
