import { Code } from "@turnbox/client/internal";
import type { Reason, SandboxError } from "@turnbox/core";
import { wrapWords } from "./format/wrap-words.ts";
import { printableText } from "./printable.ts";
import { PLAIN, type Style } from "./style.ts";
import { columnsOf, type OutputStream } from "./surroundings.ts";

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

/** `remedy` stands in for the usual one if the verb knows a better one. */
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

export interface ErrorLook {
  /** Where it is shown: a terminal gets its lines broken between words, and nothing that would act upon it. */
  readonly stream?: Pick<OutputStream, "isTTY" | "columns">;
  readonly style?: Style;
  /** Stands in for the usual one. */
  readonly remedy?: string | undefined;
}

const INDENT = "  ";

/** The same for people: the reason and the message, and the remedy on a line of its own. */
export function formatError(error: SandboxError, { stream = {}, style = PLAIN, remedy }: ErrorLook = {}): string {
  const lay = (text: string): string =>
    stream.isTTY === true ? wrapWords(printableText(text), { width: columnsOf(stream), indent: INDENT }) : text;
  const set = (text: string, label: string, painted: string): string => painted + text.slice(label.length);
  const { reason } = error;
  const what = set(lay(`${reason}: ${error.message}`), reason, style.bold(style.paint("red", reason)));
  const how = set(lay(`remedy: ${remedy ?? remedyOf(error)}`), "remedy", style.bold("remedy"));
  return `${what}\n${how}\n`;
}

const codeName = (code: Code): string => Code[code].replaceAll(/(?<=[a-z])[A-Z]/g, "_$&").toLowerCase();

/** The table speaks to programs, of requests and their keys. Whoever types commands has neither. */
const AT_THE_COMMAND_LINE: Readonly<Partial<Record<Reason, string>>> = {
  CANCELLED: "Look at what has been done (`turnbox ls`), and run the command again if it is still wanted.",
  DEADLINE_EXCEEDED:
    "Run the command again, with more time where it takes a --timeout; `turnbox doctor` says what hangs.",
  COMMAND_OUTCOME_UNKNOWN: "Run `turnbox doctor`, which says what hangs, and then the same command again.",
  HOST_UNREACHABLE:
    "Wait a little and run the command again; `turnbox doctor` and the logs of the home say what is wrong.",
};

/** What a user of the command line can do about an error. What the error itself brings along knows best. */
export const remedyOf = (error: SandboxError): string =>
  error.metadata["remedy"] ?? AT_THE_COMMAND_LINE[error.reason] ?? error.remedy;
