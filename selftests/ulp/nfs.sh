#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# nfs.sh: NFS over RDMA, the kernel's server and client. Both can live in any net
# namespace: the server is in one, the client in the other. A tree of files of all
# sizes is written and read back by either side, and checksummed by the other.

cd "$(dirname "$0")" || exit 1
# shellcheck disable=SC2034 # for ulp.sh
ULP_NETNS=1
. ./ulp.sh

PORT=20049
SERVED=$TMP/served
MOUNTED=$TMP/mounted

# server_exec SCRIPT: become bash, in the server's namespace and with its own files of
# nfsd there: they are per namespace
server_exec() {
	set -- bash -c "mount -t nfsd nfsd /proc/fs/nfsd && { $1; }"
	if [ -n "$NS_B" ]; then
		exec ip netns exec "$NS_B" "$@"
	else
		exec unshare -m "$@"
	fi
}

# mountd_ready: it answers the kernel's questions
mountd_ready() {
	find "/proc/$mountd/fd" -lname '*nfsd.export/channel' 2>/dev/null | grep -q .
}

# server_up: version 4 only, over RDMA only: so neither rpcbind nor lockd has a part in it.
# Who may mount what, mountd tells the kernel.
server_up() {
	mkdir -p "$SERVED" "$MOUNTED" &&
	mount -t tmpfs -o size=256M served "$SERVED" || return 1
	echo "$SERVED *(rw,no_root_squash,no_subtree_check,insecure,fsid=0)" >"$TMP/exports"
	server_exec "mount --bind $TMP/exports /etc/exports && exportfs -r &&
		exec rpc.mountd --foreground --no-nfs-version 3" >"$TMP/mountd.out" 2>&1 &
	mountd=$!
	wait_for 60 mountd_ready || { cat "$TMP/mountd.out"; return 1; }
	(server_exec "cd /proc/fs/nfsd &&
		echo -3 +4 +4.1 +4.2 >versions &&
		echo 10 >nfsv4leasetime && echo 10 >nfsv4gracetime &&
		echo rdma $PORT >portlist && echo 8 >threads &&
		cat portlist") >"$TMP/portlist" 2>&1
	cat "$TMP/portlist"
	grep -q "^rdma $PORT" "$TMP/portlist"
}

server_down() {
	[ -n "$mountd" ] || return
	(server_exec "echo 0 >/proc/fs/nfsd/threads")
	kill "$mountd"
	wait "$mountd"
	mountd=
	umount "$SERVED"
}

# mount_it [,OPTION...]: not by "ip netns exec", whose mounts nobody else sees
mount_it() {
	set -- "$1" ${NS_A:+nsenter "--net=/run/netns/$NS_A"}
	"${@:2}" timeout -k 5 "$HANG" mount -t nfs4 \
		-o "proto=rdma,port=$PORT,sec=sys,timeo=50,noac$1" "$IP4_B:/" "$MOUNTED" &&
	grep -E "^[^ ]+ $MOUNTED nfs4 .*proto=rdma" /proc/mounts
}

umount_it() {
	timeout -k 5 "$HANG" umount "$MOUNTED"
}

# make_tree DIR: files from 0 bytes to 5 MB, odd sizes, in directories
make_tree() {
	local size n=0

	rm -rf "$1"
	for size in 0 1 100 1023 4096 4097 16000 65536 99999 262144 1048577 5000000; do
		n=$((n + 1))
		mkdir -p "$1/d$((n % 3))/e$((n % 2))" &&
		head -c $size /dev/urandom >"$1/d$((n % 3))/e$((n % 2))/f$size" || return 1
	done
	for n in $(seq 100); do
		echo "small file $n" >"$1/d0/s$n" || return 1
	done
}

sums() {
	(cd "$1" && find . -type f -print0 | sort -z | xargs -0 sha256sum)
}

# same_tree A B
same_tree() {
	sums "$1" >"$TMP/sums.a" && sums "$2" >"$TMP/sums.b" &&
	[ "$(wc -l <"$TMP/sums.a")" = 112 ] && diff "$TMP/sums.a" "$TMP/sums.b"
}

cold() {
	sync -f "$MOUNTED"
	echo 3 >/proc/sys/vm/drop_caches
}

to_server() {
	make_tree "$TMP/tree" && timeout -k 5 "$HANG" cp -r "$TMP/tree" "$MOUNTED/to" &&
	cold && same_tree "$TMP/tree" "$SERVED/to" && crossed 6000000
}

from_server() {
	make_tree "$SERVED/from" && cold && same_tree "$SERVED/from" "$MOUNTED/from" &&
	crossed 6000000
}

both_ways() {
	rm -rf "$MOUNTED/to" && to_server && from_server
}

# The client goes on when the link is back: a hard mount waits
flap() {
	fio_start "$MOUNTED/fio" --bsrange=4k-256k --loops=2 || return 1
	link_down
	sleep 8
	link_up || { echo "the link does not come up"; return 1; }
	fio_ends
}

# The client's device goes, under traffic, and comes back
removal() {
	fio_start "$MOUNTED/fio" --bsrange=4k-256k --loops=2 || return 1
	on_a rdma link delete $DEV_A &&
	link_add "$NS_A" $DEV_A "$DRIVER_A" $IF_A &&
	wait_for 30 gid_index "$NS_A" $DEV_A $IP4_A && fio_ends
}

on_exit() {
	umount -f -l "$MOUNTED" 2>/dev/null
	server_down >/dev/null 2>&1
}

need nsenter mount.nfs4 rpc.mountd exportfs fio ip rdma
ulp_start "NFS over RDMA" nfsd nfs rpcrdma
modprobe -a nfsv4 svcrdma xprtrdma 2>/dev/null
check "the server listens" server_up || tap_done
check "mount" mount_it || tap_done
check "a tree to the server" to_server
check "a tree from the server" from_server
check "random sizes, direct, verified" fio_verify "$MOUNTED/fio" --bsrange=4k-256k
check "random sizes, cached, verified" fio_verify "$MOUNTED/fio" --direct=0 --bs_unaligned=1
check "unmount" umount_it
check "mount again, with small requests" mount_it ,rsize=4096,wsize=4096
check "a tree both ways" both_ways
check "unmount" umount_it
check "mount for a flap" mount_it
check "a link flap under traffic" flap
check "a tree both ways after it" both_ways
check "the client's device is removed under traffic, and comes back" removal
check "a tree both ways after that" both_ways
check "unmount" umount_it
check "the server stops" server_down
ulp_end nfsv4 nfs rpcrdma nfsd
