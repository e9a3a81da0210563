# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# lib.sh - sourced by the tests that run in a guest, as root.
#
# Environment:
#   DRIVER         link type under test, default sroce; rxe is the in-tree rdma_rxe
#   DRIVER_A/_B    link type of either end, default $DRIVER (interoperation)
#   PROVIDER       rdma-core's provider for sroce devices, default rxe: the stock
#                  one; sroce: this tree's, where it is installed.  It is the
#                  beginning of a device's name that chooses it.
#   MTU            of the veth pair, default 4200: a path MTU of 4096 fits
#   HOP            if not empty, the ends are joined by a bridge in a namespace sr_hop, and
#                  what crosses it are single packets, as on a wire: see hop_netem
#   HANG           seconds after which a command counts as hung, default 300:
#                  a guard against hangs, not a limit on speed
#   TMP            scratch directory, made and removed by this file
#
# Topology (pair_up): namespaces sr_a and sr_b joined by a veth pair, one RDMA
# device on each end. rdma_rxe receives in the initial namespace only (until
# Linux 7), so an rxe end stays there; two rxe ends share it, with policy
# routing that sends what goes from one address to the other over the veth.
#
#   NS_A  NS_B     namespace, empty for the initial one
#   IF_A  IF_B     netdev               DEV_A DEV_B    RDMA device
#   IP4_A IP4_B    IP6_A IP6_B          addresses
#   GID4_A GID4_B  GID6_A GID6_B        RoCE v2 GID indices of these addresses

DRIVER=${DRIVER:-sroce}
DRIVER_A=${DRIVER_A:-$DRIVER}
DRIVER_B=${DRIVER_B:-$DRIVER}
PROVIDER=${PROVIDER:-rxe}
MTU=${MTU:-4200}
HANG=${HANG:-300}
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
KSFT_SKIP=4

IF_A=sr_va;         IF_B=sr_vb
DEV_A=${PROVIDER}_a DEV_B=${PROVIDER}_b
[ "$DRIVER_A" != rxe ] || DEV_A=rxe_a
[ "$DRIVER_B" != rxe ] || DEV_B=rxe_b
IP4_A=10.77.0.1;    IP4_B=10.77.0.2
IP6_A=fd77::1;      IP6_B=fd77::2
MAC_A=02:77:00:00:00:01; MAC_B=02:77:00:00:00:02

TMP=$(mktemp -d) || exit 1
tap_count=0
tap_failed=0
tap_finished=

# ---------------------------------------------------------------- TAP

# tap_diag: prefix standard input so that it is a TAP comment; long output is cut.
tap_diag() {
	local max=${1:-60}

	tail -n "$max" | sed 's/^/#   /'
}

# tap_start TITLE: first line of a test file's output.
tap_start() {
	echo "selftest $$ starts" >/dev/kmsg
	echo "TAP version 13"
	echo "# $1: driver $DRIVER_A to $DRIVER_B, provider $PROVIDER, Linux $(uname -r)"
}

# kernel_complaints: the first line of each warning and report in the kernel's log since
# tap_start, five at most.
kernel_complaints() {
	dmesg | tac | sed "/selftest $$ starts/q" | tac |
		grep -E 'WARNING:|BUG:|Oops|general protection|refcount_t|possible .* lock|leaked|INFO: task|unregister_netdevice: waiting|restrack' |
		tail -5
}

# ok DESCRIPTION: a test point that passed.
ok() {
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $1"
}

# not_ok DESCRIPTION [FILE...]: a test point that failed; each FILE is shown.
not_ok() {
	local f

	tap_count=$((tap_count + 1))
	tap_failed=$((tap_failed + 1))
	echo "not ok $tap_count - $1"
	shift
	for f in "$@"; do
		[ -s "$f" ] || continue
		echo "#  $(basename "$f"):"
		tap_diag <"$f"
	done
}

# skip DESCRIPTION WHY: a test point that cannot run here.
skip() {
	tap_count=$((tap_count + 1))
	echo "ok $tap_count - $1 # SKIP $2"
}

# skip_all WHY: end the whole test as skipped.
skip_all() {
	tap_finished=1
	echo "1..0 # SKIP $1"
	exit $KSFT_SKIP
}

# bail MESSAGE [FILE...]: set-up failed; no test point can run.
bail() {
	not_ok "$@"
	tap_done
}

# tap_done: print the plan and exit with the result.
tap_done() {
	tap_finished=1
	echo "1..$tap_count"
	[ $tap_failed = 0 ]
	exit
}

# check DESCRIPTION COMMAND...: passes if COMMAND does; else its output is shown.
check() {
	local what=$1

	shift
	if "$@" >"$TMP/check.out" 2>&1; then
		ok "$what"
	else
		echo "exit status $?: $*" >>"$TMP/check.out"
		not_ok "$what" "$TMP/check.out"
		return 1
	fi
}

# check_fails DESCRIPTION PATTERN COMMAND...: passes if COMMAND fails and says PATTERN.
check_fails() {
	local what=$1 pattern=$2 status

	shift 2
	"$@" >"$TMP/check.out" 2>&1
	status=$?
	if [ $status != 0 ] && grep -qE -- "$pattern" "$TMP/check.out"; then
		ok "$what"
	else
		echo "exit status $status, expected a failure that says '$pattern': $*" >>"$TMP/check.out"
		not_ok "$what" "$TMP/check.out"
		return 1
	fi
}

# need COMMAND...: skip the whole test unless every command is installed.
need() {
	local c

	[ "$(id -u)" = 0 ] || skip_all "not root"
	for c in "$@"; do
		command -v "$c" >/dev/null || skip_all "no $c installed"
	done
}

# wait_for SECONDS COMMAND...: poll until COMMAND succeeds.
wait_for() {
	local end=$((SECONDS + $1))

	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}

# ---------------------------------------------------------------- ends

# in_ns NS COMMAND...: run a command in a namespace; an empty NS is the initial one.
in_ns() {
	local ns=$1

	shift
	if [ -n "$ns" ]; then
		ip netns exec "$ns" "$@"
	else
		"$@"
	fi
}

on_a() { in_ns "$NS_A" "$@"; }
on_b() { in_ns "$NS_B" "$@"; }

# ns_of DRIVER NS: the namespace in which an end with this driver can live.
ns_of() {
	[ "$1" = rxe ] || echo "$2"
}

# port_active NS DEVICE: true once the port is up.
port_active() {
	in_ns "$1" grep -q ACTIVE "/sys/class/infiniband/$2/ports/1/state" 2>/dev/null
}

# gid_of ADDRESS: the GID of an IP address, as sysfs spells it.
gid_of() {
	python3 - "$1" <<-'PY'
	import ipaddress, sys
	a = ipaddress.ip_address(sys.argv[1])
	b = a.packed if a.version == 6 else bytes(10) + b'\xff\xff' + a.packed
	print(':'.join('%02x%02x' % (b[i], b[i + 1]) for i in range(0, 16, 2)))
	PY
}

# gid_index NS DEVICE ADDRESS: print the index of the RoCE v2 GID of ADDRESS.
gid_index() {
	# shellcheck disable=SC2016
	in_ns "$1" bash -c '
		cd "/sys/class/infiniband/$1/ports/1" || exit 1
		for i in $(grep -lx "$2" gids/* 2>/dev/null | sed s:gids/::); do
			[ "$(cat "gid_attrs/types/$i" 2>/dev/null)" = "RoCE v2" ] || continue
			echo "$i"
			exit 0
		done
		exit 1' gid_index "$2" "$(gid_of "$3")"
}

# wait_gid NS DEVICE ADDRESS: like gid_index, but waits for the entry to appear.
wait_gid() {
	wait_for 30 gid_index "$@"
}

# link_add NS NAME DRIVER NETDEV: create an RDMA device.
link_add() {
	in_ns "$1" rdma link add "$2" type "$3" netdev "$4"
}

# driver_loaded DRIVER: loads the module if it is not; false if there is none.
driver_loaded() {
	case $1 in
	rxe) modprobe rdma_rxe 2>/dev/null ;;
	*) [ -d "/sys/module/$1" ] || modprobe "$1" 2>/dev/null ;;
	esac
}

# provider_installed: ends the test as skipped if libibverbs has no such provider.
provider_installed() {
	[ -e "/etc/libibverbs.d/$PROVIDER.driver" ] ||
		skip_all "no provider $PROVIDER installed (make userspace install; selftests/vm/vm -p)"
}

# netdev_pair: the veth pair with its addresses, in the namespaces of both ends.
netdev_pair() {
	NS_A=$(ns_of "$DRIVER_A" sr_a)
	NS_B=$(ns_of "$DRIVER_B" sr_b)
	# UC and UD do not get back what a full backlog drops on a busy machine
	sysctl -qw net.core.netdev_max_backlog=100000
	[ -z "$NS_A" ] || ip netns add "$NS_A" || return 1
	[ -z "$NS_B" ] || ip netns add "$NS_B" || return 1
	if [ -n "$HOP" ]; then
		hop_up || return 1
	else
		ip link add $IF_A address $MAC_A mtu "$MTU" type veth \
			peer name $IF_B address $MAC_B mtu "$MTU" || return 1
	fi
	[ -z "$NS_A" ] || ip link set $IF_A netns "$NS_A" || return 1
	[ -z "$NS_B" ] || ip link set $IF_B netns "$NS_B" || return 1
	end_up "$NS_A" $IF_A $IP4_A $IP6_A $IP4_B $IP6_B $MAC_B || return 1
	end_up "$NS_B" $IF_B $IP4_B $IP6_B $IP4_A $IP6_A $MAC_A || return 1
	[ -z "$HOP" ] || hop_singles || return 1
	[ -n "$NS_A$NS_B" ] || same_ns_routes
}

# hop_up: both interfaces, joined by a bridge in a namespace of its own.
hop_up() {
	ip netns add sr_hop || return 1
	ip -n sr_hop link add sr_br mtu "$MTU" type bridge || return 1
	ip link add $IF_A address $MAC_A mtu "$MTU" type veth \
		peer name sr_ha mtu "$MTU" netns sr_hop || return 1
	ip link add $IF_B address $MAC_B mtu "$MTU" type veth \
		peer name sr_hb mtu "$MTU" netns sr_hop || return 1
	ip -n sr_hop link set sr_ha master sr_br up || return 1
	ip -n sr_hop link set sr_hb master sr_br up || return 1
	ip -n sr_hop link set sr_br up
}

# hop_singles: have the ends send single packets: a queueing discipline at the hop would
# lose a super-packet whole.
hop_singles() {
	local f

	for f in tx-udp-segmentation tso gso gro; do
		on_a ethtool -K $IF_A $f off >/dev/null 2>&1
		on_b ethtool -K $IF_B $f off >/dev/null 2>&1
	done
	on_a ethtool -k $IF_A | grep -q '^generic-segmentation-offload: off' ||
		{ echo "no ethtool, or GSO cannot be switched off"; return 1; }
}

# hop_netem QDISC...: what the hop does to packets in both directions, as tc says it; nothing
# if there is no argument.
hop_netem() {
	local i

	for i in sr_ha sr_hb; do
		if [ $# = 0 ]; then
			ip netns exec sr_hop tc qdisc delete dev $i root 2>/dev/null
		else
			ip netns exec sr_hop tc qdisc replace dev $i root "$@" || return 1
		fi
	done
	return 0
}

# end_up NS NETDEV IP4 IP6 PEER4 PEER6 PEERMAC: configure one end.
end_up() {
	# shellcheck disable=SC2016
	in_ns "$1" bash -e -c '
		ip link set lo up
		sysctl -qw net.ipv6.conf.$1.accept_dad=0 net.ipv6.conf.$1.accept_ra=0
		ip addr add $2/24 dev $1
		ip -6 addr add $3/64 dev $1 nodad
		ip link set $1 up
		ip neigh replace $4 lladdr $6 dev $1 nud permanent
		ip neigh replace $5 lladdr $6 dev $1 nud permanent
		' end_up "${@:2}"
}

# same_ns_routes: make two addresses of one namespace talk over the veth pair.
same_ns_routes() {
	local f a b x

	sysctl -qw net.ipv4.conf.all.rp_filter=0
	for x in $IF_A $IF_B; do
		sysctl -qw net.ipv4.conf.$x.rp_filter=0 net.ipv4.conf.$x.accept_local=1
	done
	for f in -4 -6; do
		if [ $f = -4 ]; then a=$IP4_A b=$IP4_B; else a=$IP6_A b=$IP6_B; fi
		ip $f route add $b dev $IF_A src $a table 771
		ip $f route add $a dev $IF_B src $b table 772
		# a link that goes down takes its routes along: then there is no way, not
		# one inside the machine
		ip $f route add unreachable $b metric 7777 table 771
		ip $f route add unreachable $a metric 7777 table 772
		for x in $IF_A $IF_B; do
			ip $f rule add pref 1 iif $x lookup local
		done
		ip $f rule add pref 2 from $b to $b lookup local
		ip $f rule add pref 2 from $a to $a lookup local
		ip $f rule add pref 3 from $b to $a lookup 772
		ip $f rule add pref 3 to $b lookup 771
		ip $f rule add pref 4 from all lookup local
		ip $f rule del pref 0
	done
}

# same_ns_routes_undo: back to the default rules.
same_ns_routes_undo() {
	local f p

	for f in -4 -6; do
		ip $f rule add pref 0 from all lookup local 2>/dev/null
		for p in 1 2 3 4; do
			while ip $f rule del pref $p 2>/dev/null; do :; done
		done
		ip $f route flush table 771 2>/dev/null
		ip $f route flush table 772 2>/dev/null
	done
}

# find_gids: set GID4_A and its likes.
find_gids() {
	GID4_A=$(wait_gid "$NS_A" $DEV_A $IP4_A) || { echo "no GID for $IP4_A on $DEV_A"; return 1; }
	GID4_B=$(wait_gid "$NS_B" $DEV_B $IP4_B) || { echo "no GID for $IP4_B on $DEV_B"; return 1; }
	GID6_A=$(wait_gid "$NS_A" $DEV_A $IP6_A) || { echo "no GID for $IP6_A on $DEV_A"; return 1; }
	GID6_B=$(wait_gid "$NS_B" $DEV_B $IP6_B) || { echo "no GID for $IP6_B on $DEV_B"; return 1; }
}

# pair_up: the whole topology; on failure the test ends, with the reason.
pair_up() {
	local d

	for d in "$DRIVER_A" "$DRIVER_B"; do
		driver_loaded "$d" || skip_all "no module for driver $d in this kernel"
	done
	[ "$PROVIDER" = rxe ] || provider_installed
	modprobe -a ib_uverbs rdma_ucm 2>/dev/null
	{
		netdev_pair &&
		link_add "$NS_A" $DEV_A "$DRIVER_A" $IF_A &&
		link_add "$NS_B" $DEV_B "$DRIVER_B" $IF_B &&
		wait_for 30 port_active "$NS_A" $DEV_A &&
		wait_for 30 port_active "$NS_B" $DEV_B &&
		find_gids
	} >"$TMP/pair_up.out" 2>&1 || {
		rdma link >>"$TMP/pair_up.out" 2>&1
		bail "set up $DEV_A and $DEV_B over veth" "$TMP/pair_up.out"
	}
}

# pair_down: remove all that pair_up made.
pair_down() {
	rdma link delete $DEV_A 2>/dev/null
	rdma link delete $DEV_B 2>/dev/null
	[ -z "$NS_A" ] || ip netns exec "$NS_A" rdma link delete $DEV_A 2>/dev/null
	[ -z "$NS_B" ] || ip netns exec "$NS_B" rdma link delete $DEV_B 2>/dev/null
	ip link delete $IF_A 2>/dev/null
	ip link delete $IF_B 2>/dev/null
	[ -z "$NS_A" ] || ip netns delete "$NS_A" 2>/dev/null
	[ -z "$NS_B" ] || ip netns delete "$NS_B" 2>/dev/null
	[ -z "$HOP" ] || ip netns delete sr_hop 2>/dev/null
	[ -n "$NS_A$NS_B" ] || same_ns_routes_undo
}

# ---------------------------------------------------------------- a server and a client

# cm_listens PORT: whether the list of rdma_cm's objects on the standard input has a
# listener that is heard. It is in the list a moment before that; so its owner has to
# sleep, or else to have been in user space since it was first seen here.
cm_listens() {
	local owner user seen="$TMP/listener.$1"

	owner=$(sed -nE "/state LISTEN.*src-addr [^ ]*:$1( |\$)/s/.* pid ([0-9]+).*/\\1/p" | head -n 1)
	[ -n "$owner" ] || return 1
	grep -q '^State:.S' "/proc/$owner/status" 2>/dev/null && return
	user=$(sed 's/.*) //' "/proc/$owner/stat" | cut -d' ' -f12) 2>/dev/null
	[ -e "$seen" ] || echo "$user" >"$seen"
	[ "$user" -gt "$(cat "$seen")" ] 2>/dev/null
}

# listening PID KIND PORT: true once the process's namespace has a listener:
# KIND tcp (socket) or cm (rdma_cm); cm6 is cm. A dead server also ends the wait.
listening() {
	local hex

	kill -0 "$1" 2>/dev/null || return 0
	case $2 in
	tcp)
		hex=$(printf ':%04X 0*:0000 0A' "$3")
		grep -qE "$hex" "/proc/$1/net/tcp" "/proc/$1/net/tcp6" 2>/dev/null
		;;
	cm)
		on_b rdma resource show cm_id 2>/dev/null | cm_listens "$3"
		;;
	*)
		return 0
		;;
	esac
}

# pair_run READY SERVER CLIENT: run SERVER (a shell command) on B, wait until it
# listens, run CLIENT on A. READY is "tcp PORT", "cm PORT" or "sleep SECONDS".
# Output goes to $TMP/server.out and $TMP/client.out. True if both exit with 0.
# With SERVER_STAYS=1 the server is one that never ends by itself: it is ended
# when the client has, and its status does not count.
pair_run() {
	local ready=$1 server=$2 client=$3 pid rc_s rc_c

	(
		# exec: the pid is that of a process in the namespace
		set -- timeout -k 5 "$HANG" bash -c "$server"
		[ -z "$NS_B" ] || set -- ip netns exec "$NS_B" "$@"
		exec "$@"
	) >"$TMP/server.out" 2>&1 </dev/null &
	pid=$!
	if [ "${ready%% *}" = sleep ]; then
		sleep "${ready##* }"
	else
		# shellcheck disable=SC2086
		wait_for "$HANG" listening $pid $ready
	fi
	on_a timeout -k 5 "$HANG" bash -c "$client" >"$TMP/client.out" 2>&1 </dev/null
	rc_c=$?
	if [ -n "$SERVER_STAYS" ]; then
		kill $pid 2>/dev/null
	elif [ $rc_c != 0 ]; then
		# a server whose client failed may wait for ever; spare it a moment to say why
		wait_for 3 eval "! kill -0 $pid 2>/dev/null"
		kill $pid 2>/dev/null
	fi
	wait $pid
	rc_s=$?
	echo "exit status $rc_s: $server" >>"$TMP/server.out"
	echo "exit status $rc_c: $client" >>"$TMP/client.out"
	[ $rc_c = 0 ] && { [ $rc_s = 0 ] || [ -n "$SERVER_STAYS" ]; }
}

# pair_test DESCRIPTION READY SERVER CLIENT [VERIFIER ARG...]: one test point:
# pair_run, then VERIFIER, a command that reads the outputs and says what is wrong.
pair_test() {
	local what=$1 ready=$2 server=$3 client=$4

	shift 4
	: >"$TMP/verify.out"
	if pair_run "$ready" "$server" "$client" &&
	   { [ $# = 0 ] || "$@" >"$TMP/verify.out" 2>&1; }; then
		ok "$what"
	else
		not_ok "$what" "$TMP/verify.out" "$TMP/client.out" "$TMP/server.out"
		return 1
	fi
}

# ---------------------------------------------------------------- programs

# build NAME SOURCE [CFLAGS...]: compile a test program to $TMP/NAME; skips all without a compiler.
build() {
	local name=$1 source=$2

	shift 2
	command -v cc >/dev/null || skip_all "no C compiler installed"
	[ -e /usr/include/infiniband/verbs.h ] || skip_all "no infiniband/verbs.h (libibverbs-dev) installed"
	cc -std=gnu11 -O1 -Wall -Wextra -Werror=implicit -o "$TMP/$name" "$source" "$@" -libverbs -lpthread \
		>"$TMP/build.out" 2>&1 || bail "build $name" "$TMP/build.out"
}

# ---------------------------------------------------------------- clean-up

# on_exit: overridden by tests which make more than pair_up does.
on_exit() { :; }

lib_exit() {
	local status=$?

	trap '' INT TERM
	on_exit
	# children that a failed test left behind
	# shellcheck disable=SC2046
	kill $(jobs -p) 2>/dev/null
	wait 2>/dev/null
	pair_down
	rm -rf "$TMP"
	if [ -z "$tap_finished" ]; then
		echo "Bail out! test ended early with status $status"
		[ $status != 0 ] || status=1
	fi
	exit $status
}
trap lib_exit EXIT
trap 'exit 130' INT TERM
