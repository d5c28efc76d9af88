import { Code } from "@connectrpc/connect";
import { row } from "./reason-row.ts";

/** Reasons of object stores, which keep what a machine may not lose. A part of the table in reason.ts. */
export const OBJECT_REASONS = {
  OBJECT_NOT_FOUND: row(
    Code.NotFound,
    "never",
    "The object store has no object under this key.",
    "List the objects and use a key from there.",
  ),
  OBJECT_CHANGED: row(
    Code.Aborted,
    "never",
    "Another writer has changed or made the object, so the condition of the write does not hold.",
    "Read the object, decide again on what it is now, and write under its present etag.",
  ),
  OBJECT_DAMAGED: row(
    Code.DataLoss,
    "never",
    "The object store gave back other bytes than were put.",
    "Read again, in case only the way was bad; otherwise put the object again or use an older one.",
  ),
  OBJECT_STORE_FULL: row(
    Code.ResourceExhausted,
    "after_delay",
    "The object store has no room for the object, or its quota is used up.",
    "Remove what is no longer needed, or give the store more space.",
  ),
  OBJECT_STORE_DENIED: row(
    Code.FailedPrecondition,
    "never",
    "The object store refuses this host: wrong credentials, no bucket, a directory that is not ours, or it cannot do what is asked of it.",
    "Correct the credentials, the bucket or the directory that the message names.",
  ),
  OBJECT_STORE_UNAVAILABLE: row(
    Code.Unavailable,
    "after_delay",
    "The object store does not answer, or fails for now; the message says what was tried.",
    "Wait and send the request again; see that the store can be reached from the host.",
    "unknown",
  ),
} as const;
