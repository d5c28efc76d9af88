import { existsSync } from "node:fs";
import { type CommandSpec, PERL } from "@turnbox/core";

/** Numbers of system calls in the kernel's tables, by processor. */
const CALLS: Readonly<Partial<Record<string, { readonly unshare: number; readonly mount: number }>>> = {
  x64: { unshare: 272, mount: 165 },
  arm64: { unshare: 97, mount: 40 },
};

/**
 * Leaves the mount namespace (CLONE_NEWNS), lets nothing get back (MS_REC | MS_SLAVE), binds the directory to itself, makes
 * it read-only, and becomes the rest of the arguments.
 */
const LAUNCHER = `my ($unshare, $mount, $place) = (0 + shift, 0 + shift, shift);
my ($root, $none) = ("/", "none");
syscall($unshare, 0x20000) == 0
  && syscall($mount, $none, $root, $none, 0x84000, 0) == 0
  && syscall($mount, $place, $place, $none, 0x1000, 0) == 0
  && syscall($mount, $none, $place, $none, 0x1021, 0) == 0 or die "$place cannot be made read-only: $!\\n";
exec { $ARGV[0] } @ARGV; die "$ARGV[0]: $!\\n"`;

/** The same by programs: `$1` is busybox, `$2` the directory. It takes five times as long. */
const SCRIPT = '"$1" mount --bind "$2" "$2" && "$1" mount -o remount,bind,ro "$2" && shift 2 && exec "$@"';

export interface ReadOnlyTools {
  readonly busyboxPath: string;
  readonly perlPath?: string;
  readonly arch?: string;
}

/**
 * Starts a command in a mount namespace of its own, in which `directory` is read-only. runsc's own read-only bind mounts do
 * not protect the host's files: opening one to truncate it is refused inside, but has emptied it by then (directfs).
 */
export function withReadOnly(
  directory: string,
  { busyboxPath, perlPath = PERL, arch = process.arch }: ReadOnlyTools,
  spec: CommandSpec,
): CommandSpec {
  const calls = CALLS[arch];
  if (calls !== undefined && existsSync(perlPath)) {
    const numbers = [String(calls.unshare), String(calls.mount)];
    return { ...spec, command: perlPath, args: ["-e", LAUNCHER, ...numbers, directory, spec.command, ...spec.args] };
  }
  const unshare = ["unshare", "--mount", "--propagation", "slave"];
  const script = [busyboxPath, "sh", "-c", SCRIPT, "sh", busyboxPath, directory];
  return { ...spec, command: busyboxPath, args: [...unshare, ...script, spec.command, ...spec.args] };
}
