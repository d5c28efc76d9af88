import { invalidArgument, SandboxError } from "@turnbox/core";
import { nearestWords } from "../nearest-words.ts";

/** What a sandbox can be called by. */
export interface SandboxNames {
  /** `fleet:<instance>:<session>`. */
  readonly sandboxId: string;
  /** Empty if none was given. */
  readonly name: string;
}

/** How many candidates an error lists. */
const CANDIDATES_SHOWN = 10;

/** A full id needs no look-up. */
export const isFullId = (reference: string): boolean => reference.includes(":");

/** The part of a sandbox's id that people type. */
export const sessionPart = (sandboxId: string): string => sandboxId.slice(sandboxId.lastIndexOf(":") + 1);

/**
 * The id of the one sandbox that is meant: by its session part, its name, or a unique prefix of its session part. An
 * exact match wins over prefixes. None is `SANDBOX_NOT_FOUND`; several are an error that lists them.
 */
export function matchSandbox(reference: string, sandboxes: readonly SandboxNames[]): string {
  if (reference === "") throw invalidArgument("id", "must not be empty");
  const exact = sandboxes.filter(({ sandboxId, name }) => sessionPart(sandboxId) === reference || name === reference);
  const matches =
    exact.length > 0 ? exact : sandboxes.filter(({ sandboxId }) => sessionPart(sandboxId).startsWith(reference));
  const [first, ...others] = matches;
  if (first === undefined) {
    const similar = nearestWords(
      reference,
      sandboxes.flatMap(({ sandboxId, name }) => [name, sessionPart(sandboxId)]),
    );
    const guess =
      similar.length === 0 ? "" : ` (did you mean ${similar.map((one) => JSON.stringify(one)).join(" or ")}?)`;
    throw new SandboxError(
      "SANDBOX_NOT_FOUND",
      `no sandbox has the id, the name or the beginning ${JSON.stringify(reference)}${guess}`,
      {
        metadata: { reference },
      },
    );
  }
  if (others.length > 0) throw ambiguous("id", reference, matches.map(describeSandbox));
  return first.sandboxId;
}

/** An error that lists what could be meant, so that the next try can be exact. */
export function ambiguous(field: string, reference: string, candidates: readonly string[]): SandboxError {
  const shown = candidates.slice(0, CANDIDATES_SHOWN);
  const more = candidates.length - shown.length;
  const list = `${shown.join(", ")}${more > 0 ? ` and ${String(more)} more` : ""}`;
  return new SandboxError("INVALID_ARGUMENT", `${field}: ${JSON.stringify(reference)} could be ${list}`, {
    metadata: { field, rule: "must name exactly one", candidates: shown.join(",") },
  });
}

const describeSandbox = ({ sandboxId, name }: SandboxNames): string =>
  name === "" ? sandboxId : `${sandboxId} (${name})`;
