import type { Clock, CommandRunner } from "@turnbox/core";
import type { Environment } from "@turnbox/client/internal";
import type { ConnectionFactory } from "@turnbox/client";
import type { Interrupts } from "./interrupts.ts";

/** Where bytes go. `write` calls back when they are on their way, so that a fast producer can be slowed down. */
export interface OutputStream {
  write(bytes: string | Uint8Array, done: (error?: Error | null) => void): unknown;
  readonly isTTY?: boolean;
  /** Lines that a terminal shows. */
  readonly rows?: number;
  /** Characters on each of them. */
  readonly columns?: number;
  /** Tells when a terminal has another size. */
  on?(event: "resize", listener: () => void): unknown;
  off?(event: "resize", listener: () => void): unknown;
}

export interface InputStream extends AsyncIterable<string | Uint8Array> {
  readonly isTTY?: boolean;
  /** Of a terminal: whether each key comes as it is, or lines do, with Ctrl-C as a signal. */
  setRawMode?(raw: boolean): Promise<void>;
}

/** Everything outside of itself that the command line touches. `main.ts` makes the real one. */
export interface Surroundings {
  readonly environment: Environment;
  readonly version: string;
  /** Directories from which the services' packages and a newer Node are looked for, the CLI's own first. */
  readonly searchFrom: readonly string[];
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** Asks the user at the terminal; absent if there is none. */
  readonly ask?: (question: string, options: { readonly signal: AbortSignal }) => Promise<string>;
  readonly clock: Clock;
  readonly runner: CommandRunner;
  readonly interrupts: Interrupts;
  readonly connect: ConnectionFactory;
}

const USUAL_COLUMNS = 80;

/** Characters on a line of the stream; a terminal that does not know its size says 0. */
export const columnsOf = ({ columns = 0 }: Pick<OutputStream, "columns">): number =>
  columns === 0 ? USUAL_COLUMNS : columns;

/** Writes all of it before it resolves. */
export async function writeTo(stream: OutputStream, bytes: string | Uint8Array): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    stream.write(bytes, (error) => {
      if (error instanceof Error) reject(error);
      else resolve();
    });
  });
}
