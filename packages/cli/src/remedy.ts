import type { Reason, SandboxError } from "@turnbox/core";

/** The table speaks to programs, of requests and their keys. Whoever types commands has neither. */
const AT_THE_COMMAND_LINE: Readonly<Partial<Record<Reason, string>>> = {
  CANCELLED: "Look at what has been done (`turnbox ls`), and run the command again if it is still wanted.",
  DEADLINE_EXCEEDED:
    "Run the command again, with more time where it takes a --timeout; `turnbox doctor` says what hangs.",
  COMMAND_OUTCOME_UNKNOWN: "Run `turnbox doctor`, which says what hangs, and then the same command again.",
  HOST_UNREACHABLE:
    "Wait a little and run the command again; `turnbox doctor` and the logs of the home say what is wrong.",
};

/** What somebody at a command line can do about an error. What the error itself brings along knows best. */
export const remedyOf = (error: SandboxError): string =>
  error.metadata["remedy"] ?? AT_THE_COMMAND_LINE[error.reason] ?? error.remedy;
