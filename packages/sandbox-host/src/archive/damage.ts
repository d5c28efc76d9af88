import { SandboxError } from "@turnbox/core";

/** What can be wrong with a part, an object or a manifest. */
export type Fault =
  /** The store has nothing under its key. */
  | "missing"
  /** It is shorter or longer than its record says. */
  | "wrong size"
  /** Its bytes are not those that its name says. */
  | "wrong digest"
  /** Its bytes are those of its name, and it does not belong here: of another object or index, or under another key. */
  | "not authentic"
  /** All parts are authentic, and what they hold is not what was written. */
  | "wrong content"
  /** A field is missing or wrong; the metadata name it. */
  | "wrong field"
  /** What is stored here belongs to another owner. */
  | "wrong owner"
  /** A snapshot is an increment of one that the archive does not hold. */
  | "missing parent";

export interface DamageFacts {
  readonly fault: Fault;
  readonly object?: string;
  readonly part?: number;
  readonly field?: string;
  readonly cause?: unknown;
}

/** An error that names what is damaged, where, and how. */
export function damaged(what: string, { fault, object, part, field, cause }: DamageFacts): SandboxError {
  return new SandboxError("ARCHIVE_DAMAGED", what, {
    metadata: {
      fault,
      ...(object === undefined ? {} : { object }),
      ...(part === undefined ? {} : { part: String(part) }),
      ...(field === undefined ? {} : { field }),
    },
    cause,
  });
}
