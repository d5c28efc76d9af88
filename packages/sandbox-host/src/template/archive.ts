import { type CommandRunner, SandboxError } from "@turnbox/core";
import { list, type ReadEntry } from "tar";

/** Bounds of what an archive may unpack to. */
export interface ArchiveLimits {
  readonly maxBytes: number;
  readonly maxEntries: number;
}

/** More than any root filesystem has. */
export const MAX_TEMPLATE_ENTRIES = 2_000_000;

/** What was read so far, of all archives that make one root together. */
export interface ArchiveCounter {
  bytes: number;
  entries: number;
}

interface UnpackOptions extends ArchiveLimits {
  readonly runner: CommandRunner;
  readonly signal: AbortSignal;
}

const UNPACK_DEADLINE_MS = 600_000;

/**
 * Unpacks a tar archive (plain or gzip) of a root filesystem into an empty directory, keeping modes and owners. Entries
 * that lead out of the directory, devices and archives beyond the limits are refused with `TEMPLATE_INVALID`. What the
 * archive has in /dev is left out: the sandbox makes its own.
 *
 * All headers are read first. GNU tar then unpacks the archive: it keeps links as they are, also absolute ones, which a root
 * filesystem has many of, and never writes through one, because it makes those that lead elsewhere last.
 */
export async function unpackArchive(file: string, directory: string, options: UnpackOptions): Promise<void> {
  await inspect(file, options);
  const args = [
    // A colon in the path of the file would name a host to GNU tar.
    ...["--force-local", "--extract", "--file", file, "--directory", directory],
    ...[
      "--preserve-permissions",
      "--same-owner",
      "--numeric-owner",
      "--anchored",
      "--exclude=./dev/*",
      "--exclude=dev/*",
    ],
  ];
  const spec = { command: "tar", args, deadlineMs: UNPACK_DEADLINE_MS, env: { LC_ALL: "C" } };
  const { exitCode, stderr } = await options.runner.run(spec, { signal: options.signal });
  if (exitCode !== 0) throw invalid(stderr.trim().split("\n")[0] ?? "tar failed");
}

/** Reads every header; throws for the first that is not acceptable. */
async function inspect(file: string, options: UnpackOptions): Promise<void> {
  const counter: ArchiveCounter = { bytes: 0, entries: 0 };
  let problem: string | null = null;
  const onReadEntry = (entry: ReadEntry): void => {
    entry.resume();
    problem ??= countEntry(entry, counter, options);
  };
  try {
    await list({ file, strict: true, onReadEntry });
  } catch (cause) {
    throw invalid(cause instanceof Error ? cause.message : "it cannot be read", cause);
  }
  options.signal.throwIfAborted();
  if (counter.entries === 0) throw invalid("it has no entries");
  // TypeScript does not see the assignment in the callback.
  const found = problem as string | null;
  if (found !== null) throw invalid(found);
}

const IN_DEV = /^(\.\/|\/)*dev\/./;
const ALLOWED: ReadonlySet<string> = new Set([
  "File",
  "OldFile",
  "ContiguousFile",
  "Directory",
  "Link",
  "SymbolicLink",
]);

/** Counts an entry. Returns why it is not acceptable; null if it is. */
export function countEntry(
  { path, type, size }: Pick<ReadEntry, "path" | "type" | "size">,
  counter: ArchiveCounter,
  limits: ArchiveLimits,
): string | null {
  counter.entries += 1;
  counter.bytes += size;
  if (path.split("/").includes("..")) return `${JSON.stringify(path)} leads out of the root`;
  if (!ALLOWED.has(type) && !IN_DEV.test(path)) {
    return `${JSON.stringify(path)} is a ${type}, only files, directories and links are taken`;
  }
  if (counter.bytes > limits.maxBytes) return `it unpacks to more than ${limits.maxBytes} bytes`;
  if (counter.entries > limits.maxEntries) return `it has more than ${limits.maxEntries} entries`;
  return null;
}

function invalid(why: string, cause?: unknown): SandboxError {
  return new SandboxError("TEMPLATE_INVALID", `the archive cannot be used: ${why}`, { metadata: { rule: why }, cause });
}
