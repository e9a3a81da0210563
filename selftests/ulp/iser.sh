#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# iser.sh: iSCSI extensions for RDMA, the kernel's target (LIO with ib_isert) and
# initiator (open-iscsi with ib_iser).

cd "$(dirname "$0")" || exit 1
. ./ulp.sh
. ./lio.sh

IQN=iqn.2024-01.test.sroce:disk
INITIATOR=iqn.2024-01.test.sroce:host
TPG=$CONFIG/iscsi/$IQN/tpgt_1
PORTAL=$IP4_B:3260

target_up() {
	store_up &&
	mkdir -p "$TPG/np/$PORTAL" "$TPG/lun/lun_0" &&
	ln -s $STORE "$TPG/lun/lun_0/disk" &&
	echo 0 >"$TPG/attrib/authentication" &&
	echo 1 >"$TPG/attrib/generate_node_acls" &&
	echo 1 >"$TPG/attrib/cache_dynamic_acls" &&
	echo 0 >"$TPG/attrib/demo_mode_write_protect" &&
	echo 1 >"$TPG/np/$PORTAL/iser" &&
	echo 1 >"$TPG/enable"
}

target_down() {
	[ ! -d "$TPG" ] || {
		echo 0 >"$TPG/enable"
		rmdir "$TPG/np/$PORTAL"
		rm -f "$TPG/lun/lun_0/disk"
		rmdir "$TPG/lun/lun_0" "$TPG" "${TPG%/*}"
	}
	[ ! -d $CONFIG/iscsi ] || rmdir $CONFIG/iscsi
	store_down
}

adm() {
	timeout -k 5 "$HANG" iscsiadm "$@"
}

# in a session of its own: it ends by killing its process group
daemon_up() {
	mkdir -p /run/lock/iscsi /etc/iscsi
	echo "InitiatorName=$INITIATOR" >"$TMP/initiatorname"
	setsid iscsid -f -i "$TMP/initiatorname" >"$TMP/iscsid.out" 2>&1 &
	iscsid=$!
	{ adm -m iface -I test -o new || adm -m iface -I test; } &&
	adm -m iface -I test -o update -n iface.transport_name -v iser &&
	adm -m node -T $IQN -p $PORTAL -I test -o new || return 1
	for set in node.startup=manual node.session.timeo.replacement_timeout=120 \
		   "node.conn[0].timeo.noop_out_interval=2" "node.conn[0].timeo.noop_out_timeout=2"; do
		adm -m node -T $IQN -p $PORTAL -o update -n "${set%=*}" -v "${set##*=}" || return 1
	done
}

daemon_down() {
	[ -n "$iscsid" ] || return
	adm -m node -T $IQN -o delete
	adm -m iface -I test -o delete
	kill "$iscsid"
	wait "$iscsid"
	iscsid=
}

login() {
	adm -m node -T $IQN -p $PORTAL --login && wait_for 60 find_disk &&
	adm -m session | grep "^iser:"
}

logout() {
	adm -m node -T $IQN -p $PORTAL --logout && wait_for 60 no_disk
}

session_state() {
	grep -qx "$1" /sys/class/iscsi_session/session*/state 2>/dev/null
}

# The session is given up without a link and resumed with it; commands wait for that
flap() {
	fio_start "$REMOTE" --loops=3 || return 1
	link_down
	wait_for 120 session_state FAILED || { echo "the session does not fail without a link"; return 1; }
	link_up || { echo "the link does not come up"; return 1; }
	wait_for 120 session_state LOGGED_IN || { cat /sys/class/iscsi_session/session*/state; return 1; }
	fio_ends
}

# The initiator's device goes, under traffic, and comes back; the session resumes
removal() {
	fio_start "$REMOTE" --loops=3 &&
	rdma link delete $DEV_A && wait_for 120 session_state FAILED &&
	rdma link add $DEV_A type "$DRIVER_A" netdev $IF_A &&
	wait_for 30 gid_index "" $DEV_A $IP4_A &&
	wait_for 120 session_state LOGGED_IN && fio_ends
}

on_exit() {
	{
		[ -z "$iscsid" ] || adm -m node -T $IQN --logout
		daemon_down
		target_down
		modprobe -qr brd
	} >/dev/null 2>&1
}

need iscsid iscsiadm fio ip rdma
ulp_start "iSER" iscsi_target_mod ib_isert ib_iser brd target_core_iblock
unload brd
check "the target listens" target_up || tap_done
check "the initiator's daemon" daemon_up || tap_done
check "login" login || tap_done
check "data to the target" to_target
check "data from the target" from_target
check "random sizes, verified" fio_verify "$REMOTE"
check "random sizes, several jobs at once" fio_verify "$REMOTE" --numjobs=4 --size=8M \
	--offset_increment=8M
check "logout" logout
check "login again" login
check "data to the target by the new session" to_target
check "a link flap under traffic" flap
check "data from the target after it" from_target
check "the initiator's device is removed under traffic, and comes back" removal
check "data to the target after that" to_target
check "logout" logout
check "the daemon ends" daemon_down
check "the target stops" target_down
unload brd
ulp_end ib_iser ib_isert iscsi_target_mod target_core_iblock
