import { Code } from "@connectrpc/connect";
import type { SandboxError } from "@turnbox/core";

/** What the exit code of a verb means. `exec` passes the command's own instead, see `EXEC_EXIT`. */
export const EXIT = {
  ok: 0,
  /** The request was understood and failed. */
  failed: 1,
  /** An argument or option breaks its rule, be it found here or by the server. */
  usage: 2,
  /** No server answers. */
  unreachable: 3,
  /** The sandbox, snapshot, template or file does not exist. */
  notFound: 4,
  /** Ctrl-C. */
  interrupted: 130,
} as const;

export const EXEC_EXIT = {
  /** The command ran into its timeout. */
  timedOut: 124,
  /** Turnbox failed, not the command: usage, no server, no sandbox, lost sandbox. */
  turnboxFailed: 125,
} as const;

export function exitCodeOf(error: SandboxError): number {
  if (error.reason === "SERVER_UNREACHABLE") return EXIT.unreachable;
  if (error.reason === "INVALID_ARGUMENT") return EXIT.usage;
  if (error.reason === "CANCELLED") return EXIT.interrupted;
  return error.row.code === Code.NotFound ? EXIT.notFound : EXIT.failed;
}
