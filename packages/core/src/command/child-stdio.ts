import type { Readable, Writable } from "node:stream";

/** This process's ends of a child's input and outputs. */
export interface Stdio {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
}

/** The input and the outputs of a child. Disposal closes the child's ends in this process, whose copies the child has by then. */
export interface ChildStdio extends Disposable {
  /** What the child is given, in the order of 0, 1, 2. */
  readonly descriptors: readonly number[];
  readonly stdio: Stdio;
  /** For a child that could not be started. */
  destroyStreams(this: void): void;
}
