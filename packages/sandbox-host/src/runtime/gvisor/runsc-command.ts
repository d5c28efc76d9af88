import type { CommandSpec } from "@turnbox/core";

/**
 * - `overlay2=none`: else the sandbox's writes to its root stay in a hidden overlay and are in no snapshot.
 * - `file-access=shared`: else host and sandbox disagree about files that the other has written.
 */
const REQUIRED_FLAGS = ["--network=none", "--platform=systrap", "--overlay2=none", "--file-access=shared"] as const;

/** The oldest release whose flags and state files are the ones used here. */
const OLDEST_VERSION = 20_240_101;

export interface RunscRequest {
  readonly runscPath: string;
  readonly runscRoot: string;
  /** The subcommand and its own arguments. */
  readonly args: readonly string[];
  readonly deadlineMs: number;
  /** Absent means none, which only a boot needs to say otherwise. */
  readonly network?: "sandbox";
}

export function runscCommand({ runscPath, runscRoot, args, deadlineMs, network }: RunscRequest): CommandSpec {
  // Of a flag that is given twice the last one counts.
  const more = network === undefined ? [] : [`--network=${network}`];
  return { command: runscPath, args: [`--root=${runscRoot}`, ...REQUIRED_FLAGS, ...more, ...args], deadlineMs };
}

/** With the program `$1` in the namespace `$2`: hides the kernel's settings that would be misread, see below. */
const HIDE_SETTINGS_SCRIPT =
  'if "$1" nsenter "--net=$2" "$1" test -e /proc/sys/net/core/rmem_default; then ' +
  '"$1" mount -t tmpfs tmpfs /proc/sys/net || exit 1; fi; shift 2; exec "$@"';

/**
 * Starts a command that boots a container with a network. Newer kernels show `/proc/sys/net/core/rmem_default` in every
 * network namespace, and runsc refuses a network there; if it does not see the settings, it works. The command must
 * have a mount namespace of its own.
 */
export function withHiddenSettings(netnsPath: string, busyboxPath: string, spec: CommandSpec): CommandSpec {
  const script = ["sh", "-c", HIDE_SETTINGS_SCRIPT, "sh", busyboxPath, netnsPath];
  return { ...spec, command: busyboxPath, args: [...script, spec.command, ...spec.args] };
}

/** What `runsc --version` says: `runsc version release-20240729.0`, or `0.0~20240729.0` as packaged by Debian. */
export function parseVersion(
  output: string,
): { readonly version: string; readonly supported: "yes" | "too_old" } | undefined {
  const [, version, date] = /^runsc version (\S*?(\d{8})\S*)/m.exec(output) ?? [];
  if (version === undefined || date === undefined) return undefined;
  return { version, supported: Number(date) >= OLDEST_VERSION ? "yes" : "too_old" };
}

/** Releases whose control protocol has been read and tried. It is internal to runsc, and may be another one in the next. */
const KNOWN_PROTOCOLS: readonly string[] = ["20240729"];

export function isKnownProtocol(version: string): boolean {
  return KNOWN_PROTOCOLS.some((date) => version.includes(date));
}

/** Why `runsc exec` started nothing. */
export type StartFailure = "no_program" | "no_directory" | "paused" | "lost" | "other";

/**
 * Reads why from what runsc wrote. The text quotes the arguments of the program, so only what comes after them counts.
 */
export function classifyStartFailure(stderr: string): StartFailure {
  const text = stderr.slice(stderr.lastIndexOf('" in sandbox: ') + 1);
  if (text.includes("initial working directory")) return "no_directory";
  if (/failed to load |error finding executable/.test(text)) return "no_program";
  if (text.includes("in state paused")) return "paused";
  if (
    /loading sandbox|connecting to control server|in state (stopped|created)|EOF|broken pipe|connection reset/.test(
      text,
    )
  )
    return "lost";
  return "other";
}
