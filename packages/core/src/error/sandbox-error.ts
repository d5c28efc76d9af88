import { type Admitted, ERROR_TABLE, type Reason, type ReasonRow } from "./reason.ts";

/** What an error says beyond its reason and message. */
export interface SandboxErrorOptions {
  /** Facts a caller can act on: field, rule, sessionId, state. Never secrets, never host paths. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Overrides what the table says about the effect. */
  readonly admitted?: Admitted;
  readonly retryAfterMs?: number;
  readonly currentGeneration?: number;
  /** For the log only; it never reaches the wire. */
  readonly cause?: unknown;
}

/** The one error of Turnbox. Code, retry class and remedy follow from the reason. */
export class SandboxError extends Error {
  override readonly name = "SandboxError";
  readonly reason: Reason;
  readonly metadata: Readonly<Record<string, string>>;
  readonly admitted: Admitted;
  readonly retryAfterMs: number | undefined;
  readonly currentGeneration: number | undefined;

  constructor(reason: Reason, message: string, options: SandboxErrorOptions = {}) {
    super(message, "cause" in options ? { cause: options.cause } : undefined);
    this.reason = reason;
    this.metadata = options.metadata ?? {};
    this.admitted = options.admitted ?? ERROR_TABLE[reason].admitted;
    this.retryAfterMs = options.retryAfterMs;
    this.currentGeneration = options.currentGeneration;
  }

  get row(): ReasonRow {
    return ERROR_TABLE[this.reason];
  }

  get retryable(): boolean {
    return this.row.retry !== "never";
  }

  get remedy(): string {
    return this.row.remedy;
  }

  /** The only way from an unknown throw to a `SandboxError`: ours pass, aborts are named, the rest is INTERNAL. */
  static from(thrown: unknown): SandboxError {
    if (thrown instanceof SandboxError) return thrown;
    const name = nameOf(thrown);
    if (name === "TimeoutError") return new SandboxError("DEADLINE_EXCEEDED", "the deadline passed", { cause: thrown });
    if (name === "AbortError") return new SandboxError("CANCELLED", "the call was cancelled", { cause: thrown });
    return new SandboxError("INTERNAL", "an unexpected failure", { cause: thrown });
  }
}

/** By name, not by class: aborts are DOMExceptions, and those of another realm are no Error of this one. */
function nameOf(thrown: unknown): string {
  return typeof thrown === "object" && thrown !== null && "name" in thrown ? String(thrown.name) : "";
}

/** The outcome of the work. If it rejects with the abort of a signal, that is named as a `SandboxError`. */
export async function namingAborts<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (thrown) {
    const isAbort = ["AbortError", "TimeoutError"].includes(nameOf(thrown));
    throw isAbort ? SandboxError.from(thrown) : thrown;
  }
}

/** Whether `thrown` is a `SandboxError` of one of these reasons. */
export function hasReason(thrown: unknown, ...reasons: readonly Reason[]): thrown is SandboxError {
  return thrown instanceof SandboxError && reasons.includes(thrown.reason);
}

/** A refusal of one field of a request: the message names the field and the rule, and the metadata carries both. */
export function invalidArgument(field: string, rule: string): SandboxError {
  return new SandboxError("INVALID_ARGUMENT", `${field}: ${rule}`, { metadata: { field, rule } });
}
