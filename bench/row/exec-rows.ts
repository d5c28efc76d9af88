import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { interleave, type Pace, timed } from "../run/sample.ts";
import type { Bench } from "../run/bench.ts";
import type { Measured, Row } from "../row.ts";
import { sessionIdOf, type Way } from "./sandbox-work.ts";

/** A model thinks between its calls. */
const AGENT_PAUSE_MS = 150;
const CALLERS = 16;
/** What a round has left to the background has ended by then, and takes no time from the other side. */
const ROUND_PAUSE_MS = 500;
/** A shell that does what its programs do without starting them. */
const BUSYBOX = ["/bin/busybox", "sh"];

type Paced = Pick<Pace, "count" | "pauseMs" | "block"> & { readonly shell?: readonly string[] };

/** The same command over RPC and by bare `runsc exec`, in turns. */
async function compare(
  bench: Bench,
  script: string,
  { shell, way = "rpc", ...pace }: Paced & { readonly way?: Way },
): Promise<Measured> {
  const [runsc, { turnbox, host }] = [await bench.runsc(), bench.server()];
  await using sandbox = await turnbox.create();
  const call = { sessionId: sessionIdOf(sandbox), toolName: "bash", params: { cmd: script } };
  const bash = {
    rpc: () => host.tools.executeTool({ ...call, toolCallId: randomUUID() }),
    library: () => sandbox.bash(script),
  }[way];
  const id = await runsc.bundle();
  await runsc.run(id);
  try {
    const ours = () => timed(bash);
    const floor = () => timed(() => runsc.exec(id, script, shell));
    return await interleave({ ours, floor }, { ...pace, signal: bench.signal });
  } finally {
    await runsc.end(id);
  }
}

const echoPaced: Row = {
  id: "exec.echo",
  title: "ExecuteTool bash `echo hi`, at the pace of an agent",
  unit: "ms",
  server: "cold",
  floor: "runsc exec sh -c 'echo hi'",
  bar: { kind: "at_most_ratio", value: 0.2 },
  measure: (bench) => compare(bench, "echo hi", { count: bench.count(200, 10), pauseMs: AGENT_PAUSE_MS }),
};

const echoBackToBack: Row = {
  id: "exec.echo-back-to-back",
  title: "ExecuteTool bash `echo hi`, without a pause",
  unit: "ms",
  server: "cold",
  floor: "runsc exec sh -c 'echo hi'",
  measure: (bench) => compare(bench, "echo hi", { count: bench.count(200, 20), block: 10 }),
};

const list: Row = {
  id: "exec.ls",
  title: "ExecuteTool bash `ls /`, at the pace of an agent",
  unit: "ms",
  server: "cold",
  floor: "runsc exec sh -c 'ls /'",
  bar: { kind: "at_most_ratio", value: 0.7 },
  measure: (bench) => compare(bench, "ls /", { count: bench.count(200, 10), pauseMs: AGENT_PAUSE_MS }),
};

const echoLibrary: Row = {
  id: "exec.echo-library",
  title: "bash `echo hi` by the client library, which follows every command as a stream",
  unit: "ms",
  server: "cold",
  floor: "runsc exec sh -c 'echo hi'",
  measure: (bench) =>
    compare(bench, "echo hi", { count: bench.count(60, 10), pauseMs: AGENT_PAUSE_MS, way: "library" }),
};

const listBusybox: Row = {
  id: "exec.ls-busybox",
  title: "the same against a shell that starts no program for it",
  unit: "ms",
  server: "cold",
  floor: "runsc exec busybox sh -c 'ls /'",
  measure: (bench) => compare(bench, "ls /", { count: bench.count(60, 10), pauseMs: AGENT_PAUSE_MS, shell: BUSYBOX }),
};

const echoBusybox: Row = {
  id: "exec.echo-busybox",
  title: "bash `echo hi` against a smaller shell",
  unit: "ms",
  server: "cold",
  floor: "runsc exec busybox sh -c 'echo hi'",
  measure: (bench) =>
    compare(bench, "echo hi", { count: bench.count(60, 10), pauseMs: AGENT_PAUSE_MS, shell: BUSYBOX }),
};

const parallel: Row = {
  id: "exec.parallel-16",
  title: "bash `echo hi` by 16 callers at once in one sandbox",
  unit: "ms",
  server: "cold",
  floor: "16 x runsc exec sh -c 'echo hi' at once",
  bar: { kind: "at_most_ratio", value: 1.1 },
  measure: async (bench) => {
    const [runsc, { turnbox }] = [await bench.runsc(), bench.server()];
    await using sandbox = await turnbox.create();
    const id = await runsc.bundle();
    await runsc.run(id);
    const atOnce = async (call: () => Promise<unknown>): Promise<number[]> =>
      await Promise.all(Array.from({ length: CALLERS }, () => timed(call)));
    const ours: number[] = [];
    const floor: number[] = [];
    await sandbox.bash("echo hi");
    for (let round = bench.count(10, 2); round > 0; round -= 1) {
      bench.signal.throwIfAborted();
      await delay(ROUND_PAUSE_MS, undefined, { signal: bench.signal });
      ours.push(...(await atOnce(() => sandbox.bash("echo hi"))));
      await delay(ROUND_PAUSE_MS, undefined, { signal: bench.signal });
      floor.push(...(await atOnce(() => runsc.exec(id, "echo hi"))));
    }
    await runsc.end(id);
    return { ours, floor };
  },
};

export const EXEC_ROWS = [echoPaced, echoLibrary, echoBusybox, echoBackToBack, list, listBusybox, parallel] as const;
