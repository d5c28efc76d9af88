import { constants } from "node:fs";
import { type CommandSpec, PERL } from "@turnbox/core";

/** Numbers of system calls in the kernel's tables, by processor. runsc runs on no other one. */
const CALLS: Readonly<Partial<Record<string, { readonly unshare: number; readonly mount: number }>>> = {
  x64: { unshare: 272, mount: 165 },
  arm64: { unshare: 97, mount: 40 },
};
const MOUNT_SETATTR = 442;

/** Not in Node's constants: a descriptor that only marks a place. */
const O_PATH = 0o10000000;
const HOLD = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/**
 * Leaves the mount namespace (CLONE_NEWNS) and lets no mount get back (MS_REC | MS_SLAVE). Opens the session's root and the
 * directories in it that are mounted by name, one component at a time from held descriptors and without following links.
 * Makes everything that this namespace shows read-only (MOUNT_ATTR_RDONLY, AT_RECURSIVE), binds what is held to places of the
 * bundle, makes these places and what runsc writes to writable again, and becomes the rest of the arguments.
 */
const LAUNCHER = `use strict;
my ($unshare, $mount, $setattr, $hold) = map { 0 + $_ } splice(@ARGV, 0, 4);
my ($slash, $none) = ("/", "none");
my $take = sub { my $count = shift @ARGV; splice(@ARGV, 0, $count) };
my $fail = sub { die "$_[0]: $!\\n" };
my $bind = sub {
  my ($from, $to) = @_;
  syscall($mount, $from, $to, $none, 0x1000, 0) == 0 or $fail->("$to cannot be bound");
};
my $attributes = sub {
  my ($place, $set, $clear) = @_;
  my $request = pack("Q4", $set, $clear, 0, 0);
  syscall($setattr, -100, $place, 0x8000, $request, 32) == 0 or $fail->("$place: mount_setattr (Linux 5.12 or newer)");
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
for my $place ($take->()) { $bind->($place, $place); $attributes->($place, 0, 1) }
for my $place ($take->()) { $attributes->($place, 0, 1) }
exec { $ARGV[0] } @ARGV; $fail->($ARGV[0])`;

/** What a boot sees of a session's files, and what it may write to. */
export interface BootView {
  /** The session's root on this machine, a place that nothing inside can replace. */
  readonly rootPath: string;
  /** An empty directory, outside of every session's files, that shows the root in the command's namespace. */
  readonly rootTarget: string;
  /** Directories of the root by their names, single components, and for each one an empty directory that shows it. */
  readonly targets: Readonly<Record<string, string>>;
  /** Directories that the command writes to. */
  readonly writable: readonly string[];
  /** Mount points that the command writes to, with everything that is mounted below them. */
  readonly writableMounts: readonly string[];
}

/**
 * Starts a command that boots a container, in a mount namespace of its own. The command gets the session's directories by
 * descriptors that are held before it begins, so a link that is swapped in afterwards changes nothing. Everything else of the
 * machine is read-only for it: runsc makes missing mount points by their paths, and a link that is swapped in at that moment
 * could make it create files outside. runsc's own read-only bind mounts do not protect the files of the machine either: opening
 * one to truncate it is refused inside, but empties it (directfs).
 */
export function launchBoot(
  { rootPath, rootTarget, targets, writable, writableMounts }: BootView,
  spec: CommandSpec,
  { perlPath = PERL, arch = process.arch }: { readonly perlPath?: string; readonly arch?: string } = {},
): CommandSpec {
  const calls = CALLS[arch];
  if (calls === undefined) throw new Error(`gVisor does not run on ${arch}`);
  const numbers = [calls.unshare, calls.mount, MOUNT_SETATTR, HOLD].map(String);
  const counted = (words: readonly string[]): readonly string[] => [String(words.length), ...words];
  const view = [rootPath, rootTarget, ...counted(Object.entries(targets).flat())];
  const places = [...counted(writable), ...counted(writableMounts)];
  const args = ["-e", LAUNCHER, ...numbers, ...view, ...places, spec.command, ...spec.args];
  return { ...spec, command: perlPath, args };
}
