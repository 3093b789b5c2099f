#!/bin/bash
# A host: libvirtd in namespaces of its own, whose first process this is. All
# that runs on the host ends with it.
#
# usage: unshare --mount --uts --pid --fork --kill-child --mount-proc \
#            run.sh NAME ADDRESS UUID FOLDER DISKS LIBRARY
#
# DISKS is where the disks of guests are on each host. LIBRARY says that they
# are shared (shared.c); without it DISKS is the host's own.
set -eu
name=$1 address=$2 uuid=$3 folder=$4 disks=$5 library=${6:-}
mount --make-rprivate /
hostname "$name"
mkdir -p "$folder"/{etc,lib,log,cache,dev,disks}
# /dev without kvm: guests are emulated, wherever this runs.
mount -t tmpfs dev "$folder/dev"
mkdir "$folder"/dev/{pts,shm,net,hugepages}
for device in null zero full random urandom tty ptmx net/tun; do
    [ -e /dev/$device ] && cp -a /dev/$device "$folder/dev/$device"
done
ln -s /proc/self/fd "$folder/dev/fd"
mount --rbind /dev/pts "$folder/dev/pts"
mount -t tmpfs shm "$folder/dev/shm"
mount --rbind "$folder/dev" /dev
# Hosts that shared cgroups would find each other's guests; libvirt does
# without where there are none.
umount -R /sys/fs/cgroup 2>/dev/null || mount -t tmpfs none /sys/fs/cgroup
mount -t tmpfs run /run
mkdir -p /run/lock
# A socket's path has at most 107 characters: libvirt's own are short.
for kind in etc:/etc lib:/var/lib log:/var/log cache:/var/cache; do
    mkdir -p "${kind#*:}/libvirt"
    mount --bind "$folder/${kind%:*}" "${kind#*:}/libvirt"
done
cat >/etc/libvirt/libvirtd.conf <<END
host_uuid = "$uuid"
listen_tls = 0
listen_tcp = 1
listen_addr = "$address"
auth_tcp = "none"
auth_unix_rw = "none"
log_outputs = "2:file:$folder/libvirtd.log"
END
# No virtlogd (stdio_handler), and no namespaces within those of the host.
cat >/etc/libvirt/qemu.conf <<END
security_driver = "none"
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
namespaces = []
seccomp_sandbox = 0
stdio_handler = "file"
migration_address = "$address"
migration_host = "$address"
END
[ "$library" ] || mount --bind "$folder/disks" "$disks"
HOST_SHARED=$disks LD_PRELOAD=$library libvirtd --listen \
    --config /etc/libvirt/libvirtd.conf &
daemon=$!
until virsh -q -c qemu:///system version >/dev/null 2>&1; do
    kill -0 $daemon || exit 1
    sleep 0.3
done
echo "$name is there"
# The first process takes in orphans; a host goes on without its libvirtd.
while :; do
    wait -n || true
    sleep 1 &
done
