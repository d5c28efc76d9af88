#!/bin/busybox sh
# The first process of the guest, in its initramfs: finds the disks (vda: root, vdb: project) and hands over.
b=/bin/busybox
$b mount -t devtmpfs dev /dev
$b mount -t proc proc /proc
$b mount -t sysfs sys /sys
for module in /modules/*; do $b insmod "$module"; done
tries=100
until [ -b /dev/vda ] && [ -b /dev/vdb ]; do
  tries=$((tries - 1))
  [ $tries -gt 0 ] || { echo "the disks do not appear"; $b poweroff -f; }
  $b sleep 0.1
done
$b mount -t ext4 /dev/vda /root && $b mount -t ext4 /dev/vdb /root/turnbox || { echo "the disks cannot be mounted"; $b poweroff -f; }
for folder in dev proc sys; do $b mount -o move /$folder /root/$folder; done
exec $b switch_root /root /bin/sh /turnbox/scripts/vm/guest/init.sh
