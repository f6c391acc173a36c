#!/bin/bash
# Runs a sweep of 200 tasks as an array of Slurm's: slurmctld and three slurmd on the loopback of a network namespace, in a chroot with Debian's
# slurm-wlm. A node is drained and a task is killed while it runs. The merged table must be that of gmbench sweep alone.
# slurm.sh GMBENCH: as root, with debootstrap. All processes are in a namespace of their own and end with it.
set -euo pipefail
gmbench=$(realpath "$1")
work=$(mktemp -d "${TMPDIR:-/tmp}/gm-slurm-XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
root=$work/root
debootstrap --variant=minbase --include=slurm-wlm,munge,iproute2,procps bookworm "$root" ${MIRROR:+"$MIRROR"} >"$work/log" 2>&1 ||
	{ tail -n 5 "$work/log"; exit 1; }
cp "$gmbench" "$root/usr/local/bin/gmbench"
mkdir -p "$root"/sweep "$root"/run/munge "$root"/var/spool/slurmctld "$root"/var/spool/slurmd.n{1,2,3}
chroot "$root" chown munge: /run/munge
echo '127.0.0.1 localhost head' >"$root/etc/hosts"
echo 'CgroupPlugin=cgroup/v1' >"$root/etc/slurm/cgroup.conf"
cp "$(dirname "$0")/slurm.conf" "$root/etc/slurm/slurm.conf"
cp "$(dirname "$0")/slurm_array.sh" "$root/sweep/run.sh"
# getaddrinfo finds no address, not even 127.0.0.1, where loopback is all there is; the other address is one of this namespace alone.
unshare --mount --pid --net --uts --ipc --fork --kill-child bash -euc '
	ip link set lo up
	ip addr add 10.0.0.1/32 dev lo
	hostname head
	mount -t proc proc "$1/proc"
	mount --rbind /dev "$1/dev"
	mount --rbind /sys "$1/sys"
	exec chroot "$1" bash /sweep/run.sh' - "$root"
