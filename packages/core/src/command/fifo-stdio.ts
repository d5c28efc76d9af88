import type { Readable, Writable } from "node:stream";
import type { FifoSupply } from "./fifo-supply.ts";

/** This process's ends of a child's input and outputs. */
export interface Stdio {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
}

/** The three fifos of a child. Disposal closes the child's ends in this process, whose copies the child has by then. */
export interface ChildStdio extends AsyncDisposable {
  /** What the child is given, in the order of 0, 1, 2. */
  readonly descriptors: readonly number[];
  readonly stdio: Stdio;
  /** Where no child has come of it. */
  destroyStreams(this: void): void;
}

/** Takes three fifos for a child, all or none. */
export async function takeStdio(fifos: FifoSupply): Promise<ChildStdio> {
  const taken = await Promise.allSettled([fifos.take("to_child"), fifos.take("from_child"), fifos.take("from_child")]);
  const all = taken.filter((one) => one.status === "fulfilled").map(({ value }) => value);
  for (const { stream } of all) stream.on("error", () => undefined);
  const [stdin, stdout, stderr] = all;
  if (stdin === undefined || stdout === undefined || stderr === undefined) {
    for (const { stream } of all) stream.destroy();
    await Promise.all(all.map(({ childEnd }) => childEnd.close()));
    throw taken.find((one) => one.status === "rejected")?.reason;
  }
  return {
    descriptors: all.map(({ childEnd }) => childEnd.fd),
    stdio: { stdin: stdin.stream, stdout: stdout.stream, stderr: stderr.stream },
    destroyStreams: () => {
      for (const { stream } of all) stream.destroy();
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(all.map(({ childEnd }) => childEnd.close()));
    },
  };
}
