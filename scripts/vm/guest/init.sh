#!/bin/sh
# The guest's whole life: brings the system up, runs the suites, tells how they ended, and switches the machine off.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb NO_COLOR=1
mount -t tmpfs -o mode=755 run /run
mkdir -p /dev/pts /dev/shm /run/lock /run/netns
mount -t devpts devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup
# Where every process is in the root group, controllers are handed to the groups below it by name.
for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do echo "+$controller" > /sys/fs/cgroup/cgroup.subtree_control; done
[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
ip link set lo up
hostname guest
modprobe -a zfs loop tun 2>&1
echo "guest: up after $(cut -d ' ' -f 1 /proc/uptime) s, kernel $(uname -r), $(zfs version | tr '\n' ' ')"
cd /turnbox
node scripts/vm/guest/suites.mjs
code=$?
echo "guest: done after $(cut -d ' ' -f 1 /proc/uptime) s"
echo "VM-EXIT $code"
sync
busybox poweroff -f
