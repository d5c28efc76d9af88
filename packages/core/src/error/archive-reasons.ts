import { Code } from "@connectrpc/connect";
import { row } from "./reason-row.ts";

/** Reasons of archives. A part of the table in reason.ts. */
export const ARCHIVE_REASONS = {
  ARCHIVE_NOT_FOUND: row(
    Code.NotFound,
    "never",
    "No archive of this sandbox or template is in the object store.",
    "List the archives of the tenant; see that bucket and prefix are those that it was archived to.",
  ),
  ARCHIVE_DAMAGED: row(
    Code.DataLoss,
    "never",
    "What the archive holds is not what was written; the message names the object, the part or the field, and what is wrong.",
    "Run `verify` on the archive to see all that is damaged; restore the named objects from a copy of the bucket, or archive the sandbox again.",
  ),
  ARCHIVE_OUTDATED: row(
    Code.FailedPrecondition,
    "never",
    "The archive's manifest is older than one that is known to have been written: an older one was put back, or the bucket is another one.",
    "Find out who changed the bucket and put the newer version of the manifest back; see that bucket and prefix are right.",
  ),
  ARCHIVE_CHANGED: row(
    Code.Aborted,
    "never",
    "Another writer has written the archive's manifest since it was read; the metadata say what is there now.",
    "Read the manifest again. Under a higher epoch the sandbox belongs to another host; under the same one decide again and write.",
  ),
  ARCHIVE_KEY_WRONG: row(
    Code.FailedPrecondition,
    "never",
    "The key that the archive's data keys are wrapped by is not there or may not be used; the message names its id.",
    "Configure the named key beside the present one; the newest key wraps, and all of them unwrap.",
  ),
  ARCHIVE_KEY_UNAVAILABLE: row(
    Code.Unavailable,
    "after_delay",
    "The service that wraps the archive's data keys does not answer.",
    "Wait and send the request again; see that the key management service can be reached from the host.",
    "unknown",
  ),
} as const;
