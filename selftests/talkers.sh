# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# talkers.sh - sourced after lib.sh: two programs that go on talking, a on end A with b on
# end B, so that their queue pairs can be looked at.
#
#   talker_a talker_b    their process IDs

PORT=${PORT:-19900}

talker_a='' talker_b=''

# stopped ones do not hear of anything else
on_exit() {
	kill -KILL $talker_a $talker_b
} 2>/dev/null

# packets END: how many it has sent and received; from the initial namespace, the core
# shows counters nowhere else
packets() {
	local dev=DEV_$1

	cat "/sys/class/infiniband/${!dev}/ports/1/hw_counters/sent_pkts" \
	    "/sys/class/infiniband/${!dev}/ports/1/hw_counters/rcvd_pkts" | paste -sd ' '
}

# talked FROM: A has sent more than 200 packets since packets A said FROM
talked() {
	local now

	now=$(packets A)
	[ $((${now% *} - ${1% *})) -gt 200 ]
}

# talkers_start OPTION...: begin, and wait until messages go to and fro
talkers_start() {
	local program="ibv_rc_pingpong -p $((++PORT)) -s 700 -n 100000000 $*" from

	from=$(packets A)
	set --
	# shellcheck disable=SC2086
	(
		# exec: the pid is that of a process in the namespace
		[ -z "$NS_B" ] || set -- ip netns exec "$NS_B"
		exec "$@" $program -d $DEV_B -g "$GID4_B"
	) >"$TMP/talker_b.out" 2>&1 &
	talker_b=$!
	wait_for 60 listening $talker_b tcp $PORT || return
	# shellcheck disable=SC2086
	(
		[ -z "$NS_A" ] || set -- ip netns exec "$NS_A"
		exec "$@" $program -d $DEV_A -g "$GID4_A" $IP4_B
	) >"$TMP/talker_a.out" 2>&1 &
	talker_a=$!
	wait_for 60 talked "$from" || { cat "$TMP"/talker_?.out; return 1; }
}

# talkers_halt: they keep their queue pairs, but post nothing; what is under way arrives
talkers_halt() {
	local last=

	kill -STOP $talker_a $talker_b
	until [ "$(packets A) $(packets B)" = "$last" ]; do
		last="$(packets A) $(packets B)"
		sleep 0.5
	done
}

# talkers_go: and go on
talkers_go() {
	kill -CONT $talker_a $talker_b
}

# talkers_stop: end them, and wait until their queue pairs are gone
talkers_stop() {
	kill -KILL $talker_a $talker_b
	wait $talker_a $talker_b
	talker_a='' talker_b=''
	wait_for 30 talkers_gone
} 2>/dev/null

talkers_gone() {
	! { on_a rdma resource show qp link "$DEV_A/1"; on_b rdma resource show qp link "$DEV_B/1"; } |
		grep -q ibv_rc_pingpong
}
