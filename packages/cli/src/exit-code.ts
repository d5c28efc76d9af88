import { Code } from "@turnbox/client/internal";
import type { SandboxError } from "@turnbox/core";

/** What the exit code of a verb means. `exec` passes the command's own instead, see `EXEC_EXIT`. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  unreachable: 3,
  notFound: 4,
  interrupted: 130,
} as const;

/** Of the verbs that pass the exit code of a command in a sandbox. */
export const EXEC_EXIT = { timedOut: 124, turnboxFailed: 125 } as const;

/** Verbs whose exit code is that of a command in a sandbox. */
export const PASSING_VERBS = ["exec", "run", "shell", "attach"] as const;

export interface ExitCodeRow {
  readonly code: string;
  readonly meaning: string;
}

/** Every exit code, for people. */
export const EXIT_CODES: readonly ExitCodeRow[] = [
  { code: String(EXIT.ok), meaning: "done" },
  { code: String(EXIT.failed), meaning: "the request failed; for `doctor`: something required is not there" },
  {
    code: String(EXIT.usage),
    meaning: "usage: an argument or option breaks its rule, be it found here or by the server",
  },
  { code: String(EXIT.unreachable), meaning: "no server answers" },
  { code: String(EXIT.notFound), meaning: "the sandbox, snapshot, template or file does not exist" },
  { code: String(EXEC_EXIT.timedOut), meaning: "`exec`: the command ran into its --timeout" },
  {
    code: String(EXEC_EXIT.turnboxFailed),
    meaning: `${PASSING_VERBS.map((verb) => `\`${verb}\``).join(", ")}: Turnbox failed and not the command (usage, no server, no such sandbox, a lost one)`,
  },
  { code: "128+n", meaning: "signal n ended the command that `exec`, `run`, `shell` or `attach` passes on" },
  { code: String(EXIT.interrupted), meaning: "interrupted, or a question answered with no" },
];

/** What the codes of the table do not say. */
export const EXIT_CODE_RULES =
  "`exec`, `run`, `shell` and `attach` pass the exit code of the command, `tool` that of what ran in the sandbox, and `up` that of the server.";

export function exitCodeOf(error: SandboxError): number {
  if (error.reason === "SERVER_UNREACHABLE") return EXIT.unreachable;
  if (error.reason === "INVALID_ARGUMENT") return EXIT.usage;
  if (error.reason === "CANCELLED") return EXIT.interrupted;
  return error.row.code === Code.NotFound ? EXIT.notFound : EXIT.failed;
}
