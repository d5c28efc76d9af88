import { constants } from "node:fs";
import { type CommandSpec } from "@turnbox/core";
import { PERL } from "../../../system/program.ts";
import { programPath } from "../../../system/program.ts";

/** Numbers of system calls in the kernel's tables, by processor. runsc runs on no other one. */
const CALLS: Readonly<Partial<Record<string, { readonly unshare: number; readonly mount: number }>>> = {
  x64: { unshare: 272, mount: 165 },
  arm64: { unshare: 97, mount: 40 },
};
const MOUNT_SETATTR = 442;

/** Not in Node's constants: a descriptor that only marks a file. */
const O_PATH = 0o10000000;
const HOLD = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;

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
  const writables = [...counted(writable), ...counted(writableMounts)];
  const args = [programPath("boot-launcher.pl"), ...numbers, ...view, ...writables, spec.command, ...spec.args];
  return { ...spec, command: perlPath, args };
}
