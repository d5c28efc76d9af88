import { type DestinationStream, destination, type LevelWithSilent, type Logger, pino } from "pino";

/** The log of a service: object first, constant message second; a failure under the key `err`. */
export type Log = Logger;

export interface LogOptions {
  /** The service; every line carries it. */
  readonly name: string;
  readonly level: LevelWithSilent;
  /** Standard output belongs to the ready line, so the choices are standard error, a file, or a stream of the caller's. */
  readonly to: "stderr" | { readonly path: string } | DestinationStream;
}

const CREDENTIALS = ["authorization", "cookie", "token"];

/**
 * JSON lines, written synchronously: a line that was logged before a crash is there after it. Secrets are redacted by
 * their type; raw credentials are redacted by the usual names as a second net.
 */
export function createLog({ name, level, to }: LogOptions): Log {
  return pino(
    {
      name,
      level,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: CREDENTIALS.flatMap((key) => [key, `*.${key}`, `*.*.${key}`]),
        censor: "[redacted]",
      },
    },
    openDestination(to),
  );
}

function openDestination(to: LogOptions["to"]): DestinationStream {
  if (to === "stderr") return destination({ dest: 2, sync: true });
  if ("path" in to) return destination({ dest: to.path, sync: true, append: true, mkdir: true, mode: 0o600 });
  return to;
}
