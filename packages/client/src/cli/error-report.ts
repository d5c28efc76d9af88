import { Code } from "@connectrpc/connect";
import type { SandboxError } from "@turnbox/core";
import { remedyOf } from "./remedy.ts";

/** The stable shape of a failure under `--json`. */
export interface ErrorReport {
  readonly error: {
    readonly reason: string;
    readonly message: string;
    readonly remedy: string;
    /** The Connect code in snake case, as on the wire. */
    readonly code: string;
    readonly retryable: boolean;
    readonly retryAfterMs?: number;
    readonly metadata: Readonly<Record<string, string>>;
  };
}

/** `remedy` stands in for the usual one where the verb knows a better one. */
export function toErrorReport(error: SandboxError, remedy: string = remedyOf(error)): ErrorReport {
  return {
    error: {
      reason: error.reason,
      message: error.message,
      remedy,
      code: codeName(error.row.code),
      retryable: error.retryable,
      ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
      metadata: error.metadata,
    },
  };
}

/** The same for people. */
export function formatError(error: SandboxError, remedy: string = remedyOf(error)): string {
  return `${error.reason}: ${error.message}\nremedy: ${remedy}\n`;
}

const codeName = (code: Code): string => Code[code].replaceAll(/(?<=[a-z])[A-Z]/g, "_$&").toLowerCase();
