import { SandboxError } from "@turnbox/core";
import { extract } from "tar";

/** Bounds of what an archive may unpack to. */
export interface ArchiveLimits {
  readonly maxBytes: number;
  readonly maxEntries: number;
}

/**
 * Unpacks a tar archive (plain or gzip) of a root filesystem into an empty directory, keeping modes and owners. Entries
 * that lead out of the directory, devices and archives beyond the limits are refused with `TEMPLATE_INVALID`. What the
 * archive has in /dev is passed over: the sandbox makes its own.
 */
export async function unpackArchive(
  file: string,
  directory: string,
  options: ArchiveLimits & { readonly signal: AbortSignal },
): Promise<void> {
  const problems: string[] = [];
  let bytes = 0;
  let entries = 0;
  try {
    await extract({
      file,
      cwd: directory,
      preserveOwner: true,
      strict: true,
      filter: (path, entry) => {
        if (problems.length > 0 || options.signal.aborted || IN_DEV.test(path)) return false;
        entries += 1;
        bytes += entry.size;
        const problem = refusal(path, "type" in entry ? entry.type : "", { bytes, entries }, options);
        if (problem !== null) problems.push(problem);
        return problem === null;
      },
    });
  } catch (cause) {
    throw invalid(cause instanceof Error ? cause.message : "it cannot be read", cause);
  }
  options.signal.throwIfAborted();
  const [problem] = problems;
  if (problem !== undefined) throw invalid(problem);
  if (entries === 0) throw invalid("it has no entries");
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

function refusal(
  path: string,
  type: string,
  so: { readonly bytes: number; readonly entries: number },
  limits: ArchiveLimits,
): string | null {
  if (path.split("/").includes("..")) return `${JSON.stringify(path)} leads out of the root`;
  if (!ALLOWED.has(type)) return `${JSON.stringify(path)} is a ${type}, only files, directories and links are taken`;
  if (so.bytes > limits.maxBytes) return `it unpacks to more than ${limits.maxBytes} bytes`;
  if (so.entries > limits.maxEntries) return `it has more than ${limits.maxEntries} entries`;
  return null;
}

function invalid(why: string, cause?: unknown): SandboxError {
  return new SandboxError("TEMPLATE_INVALID", `the archive cannot be used: ${why}`, { metadata: { rule: why }, cause });
}
