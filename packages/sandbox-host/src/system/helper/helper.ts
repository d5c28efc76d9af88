/** The helper process has died: what it was asked for may have been done or not. */
export class HelperGone extends Error {}

/** The system has refused what was asked for, by its error code; nothing was done. */
export class HelperRefusal extends Error {
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

export interface HelperRun {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
  /** A file that both outputs are appended to; undefined returns them with the program's end. */
  readonly outputPath: string | undefined;
  readonly maxOutputBytes: number;
}

export interface HelperEnd {
  /** As wait(2) reports it: the exit code times 256, or a signal. */
  readonly status: number;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly droppedBytes: number;
}

export interface HelperProgram {
  /** Rejects with `HelperRefusal` if nothing has run, with `HelperGone` if it is not known how the program ended. */
  readonly ended: Promise<HelperEnd>;
  /** Signals its process group, unless it has ended. */
  kill(this: void, signal: number): void;
}

/** An open file for another process, by a name that the helper process can open it under. */
export interface SentFile {
  readonly path: string;
  readonly mode: "r" | "w";
}

export interface HelperMessage {
  readonly socketPath: string;
  readonly message: string;
  readonly files: readonly SentFile[];
  /** Closes the connection, and rejects with its reason. */
  readonly signal?: AbortSignal;
}

/**
 * A small process that does for the service what is slow or impossible for it. A `fork` of the service takes milliseconds, more
 * the more memory it has, in which it does nothing else; one of the helper process takes next to nothing. And Node cannot pass
 * open files to a process that is not its child.
 */
export interface Helper {
  /** Returns undefined if there is no helper process on this machine, or none at the moment: nothing has been done. */
  run(spec: HelperRun): HelperProgram | undefined;
  /**
   * Sends a message with open files to the process that listens on a socket. Resolves with the text of the JSON object that
   * comes back, or with a part of it if the connection ends. Rejects like a program's end, and if what comes back is no object,
   * or too long. Returns undefined if there is no helper process.
   */
  send(request: HelperMessage): Promise<string> | undefined;
}
