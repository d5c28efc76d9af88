# Becomes the command at the end of its arguments, in a mount namespace of its own. The owner is src/runtime/gvisor/container/boot-launcher.ts.
#
# It leaves the mount namespace (CLONE_NEWNS) and lets no mount get back (MS_REC | MS_SLAVE). It opens the session's root and the
# directories in it that are mounted by name, one component at a time from held descriptors and without following links. It makes
# everything that this namespace shows read-only (MOUNT_ATTR_RDONLY, AT_RECURSIVE), binds what is held to directories of the bundle,
# makes these and what runsc writes to writable again, and becomes the rest of the arguments.
use strict;
my ($unshare, $mount, $setattr, $hold) = map { 0 + $_ } splice(@ARGV, 0, 4);
my ($slash, $none) = ("/", "none");
my $take = sub { my $count = shift @ARGV; splice(@ARGV, 0, $count) };
my $fail = sub { die "$_[0]: $!\n" };
my $bind = sub {
  my ($from, $to) = @_;
  syscall($mount, $from, $to, $none, 0x1000, 0) == 0 or $fail->("$to cannot be bound");
};
my $attributes = sub {
  my ($at, $set, $clear) = @_;
  my $request = pack("Q4", $set, $clear, 0, 0);
  syscall($setattr, -100, $at, 0x8000, $request, 32) == 0 or $fail->("$at: mount_setattr (Linux 5.12 or newer)");
};
my $open = sub {
  my ($path, $shown) = @_;
  sysopen(my $held, $path, $hold) or $fail->("$shown is not a directory");
  return $held;
};
syscall($unshare, 0x20000) == 0 or $fail->("unshare");
syscall($mount, $none, $slash, $none, 0x84000, 0) == 0 or $fail->("the mounts cannot be made private");
my ($path, $target) = splice(@ARGV, 0, 2);
my $root = $open->($path, "the root");
my @binds = ([$root, $target]);
my %names = $take->();
for my $name (sort keys %names) {
  push @binds, [$open->("/proc/self/fd/" . fileno($root) . "/$name", "/$name"), $names{$name}];
}
$attributes->($slash, 1, 0);
for (@binds) {
  my ($held, $to) = @$_;
  $bind->("/proc/self/fd/" . fileno($held), $to);
  $attributes->($to, 0, 1);
}
for my $at ($take->()) { $bind->($at, $at); $attributes->($at, 0, 1) }
for my $at ($take->()) { $attributes->($at, 0, 1) }
exec { $ARGV[0] } @ARGV or $fail->($ARGV[0]);
