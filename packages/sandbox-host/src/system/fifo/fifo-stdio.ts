import type { ChildStdio } from "@turnbox/core/command";
import type { FifoSupply } from "./fifo-supply.ts";

/** Takes three FIFOs for a child, all or none. */
export async function takeStdio(fifos: FifoSupply): Promise<ChildStdio> {
  const taken = await Promise.allSettled([fifos.take("to_child"), fifos.take("from_child"), fifos.take("from_child")]);
  const all = taken.filter((one) => one.status === "fulfilled").map(({ value }) => value);
  for (const { stream } of all) stream.on("error", () => undefined);
  const [stdin, stdout, stderr] = all;
  if (stdin === undefined || stdout === undefined || stderr === undefined) {
    for (const { stream } of all) stream.destroy();
    for (const { childEnd } of all) childEnd[Symbol.dispose]();
    throw taken.find((one) => one.status === "rejected")?.reason;
  }
  return {
    descriptors: all.map(({ childEnd }) => childEnd.fd),
    stdio: { stdin: stdin.stream, stdout: stdout.stream, stderr: stderr.stream },
    destroyStreams: () => {
      for (const { stream } of all) stream.destroy();
    },
    [Symbol.dispose]: () => {
      for (const { childEnd } of all) childEnd[Symbol.dispose]();
    },
  };
}
