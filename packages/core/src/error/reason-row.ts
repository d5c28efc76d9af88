import type { Code } from "@connectrpc/connect";

/**
 * What a caller may do after a failure.
 *
 * - `never`: the same request fails again; something about the request or the state has to change first.
 * - `after_delay`: nothing happened; the same request may be sent again, after `retry_after` where one is given.
 * - `if_idempotent`: it may have happened; send it again only under the same idempotency key.
 */
export type Retry = "never" | "after_delay" | "if_idempotent";

/** Whether the effect of the failed request took place. */
export type Admitted = "yes" | "no" | "unknown";

/** One row of the error table. */
export interface ReasonRow {
  /** The Connect (and gRPC) status code on the wire. */
  readonly code: Code;
  readonly retry: Retry;
  /** What is known about the effect, unless the error itself says more. */
  readonly admitted: Admitted;
  /** When this is the answer, in one sentence. */
  readonly meaning: string;
  /** What to do about it, written for a person and for a model. */
  readonly remedy: string;
}

/** A row; its effect did not take place unless said otherwise. */
export const row = (
  code: Code,
  retry: Retry,
  meaning: string,
  remedy: string,
  admitted: Admitted = "no",
): ReasonRow => ({
  code,
  retry,
  admitted,
  meaning,
  remedy,
});
