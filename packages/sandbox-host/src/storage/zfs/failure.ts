import { SandboxError } from "@turnbox/core";

/** Why zfs or zpool refused, as far as both implementations and all their versions let it be known. */
export type Failure =
  | "not-found"
  | "exists"
  | "busy"
  | "dependents"
  | "children"
  | "no-space"
  | "quota"
  | "permission"
  | "daemon-not-running"
  | "already-mounted"
  | "not-mounted"
  | "not-empty"
  | "bad-stream"
  | "other";

/** The first pattern that matches wins, so the ones that name a cause stand before those that name a symptom. */
const PATTERNS: readonly (readonly [RegExp, Failure])[] = [
  [/permission denied|not permitted|must be run as root|insufficient privilege/, "permission"],
  [
    /daemon is running|connection refused|file descriptor closed|failed to initialize zfs library|modules? (are|is|cannot be) .*load/,
    "daemon-not-running",
  ],
  [/invalid (backup )?stream|checksum mismatch|incomplete stream|failed to read from stream/, "bad-stream"],
  [/dependent clone/, "dependents"],
  [/has children/, "children"],
  [/already mounted/, "already-mounted"],
  [/not (currently )?mounted/, "not-mounted"],
  [/directory is not empty/, "not-empty"],
  [/already exists|that name is already/, "exists"],
  [/busy|being held|u(n)?mount failed/, "busy"],
  [/does not exist|doesn't exist|no such (pool|dataset)|could not find any snapshots/, "not-found"],
  [/quota exceeded|exceeds .*quota/, "quota"],
  [/out of space|no space left|less than current used/, "no-space"],
];

/**
 * Sorts a refusal by its text. Wording and exit codes differ between versions, so patterns are loose; names are taken out
 * first, because a template may well be called `busybox`.
 */
export function classifyFailure(stderr: string): Failure {
  const text = withoutNames(stderr).toLowerCase();
  return PATTERNS.find(([pattern]) => pattern.test(text))?.[1] ?? "other";
}

/** The refusal without dataset names and paths, short enough for an error message. */
export function withoutNames(stderr: string): string {
  return stderr
    .split("\n")
    .map((line) =>
      line
        // An apostrophe within a word opens no quotation.
        .replace(/(?<!\w)'[^']*'/g, "")
        .replace(/"[^"]*"/g, "")
        .replace(/\S*[/@]\S*/g, "")
        .replace(/\s+/g, " ")
        .replace(/ :/g, ":")
        .trim(),
    )
    .filter((line) => line !== "")
    .slice(0, 4)
    .join("; ")
    .slice(0, 240);
}

/** The error for a refusal that the operation itself has no better reason for. */
export function storageError(
  doing: string,
  refusal: { readonly failure: Failure; readonly stderr: string },
): SandboxError {
  const cause = new Error(refusal.stderr.slice(0, 2000));
  if (refusal.failure === "no-space" || refusal.failure === "quota") {
    return new SandboxError("POOL_FULL", `no space in the pool while ${doing}`, { cause });
  }
  return new SandboxError(
    "STORAGE_UNAVAILABLE",
    `${doing} failed: ${withoutNames(refusal.stderr) || "no reason given"}`,
    {
      cause,
      metadata: { failure: refusal.failure },
    },
  );
}
