import { afterAll, afterEach, beforeAll, beforeEach, expect } from "@jest/globals";
import { HostCommandRunner } from "../../system/command/host-command-runner.ts";
import { HelperProcess } from "../../system/helper/helper-process.ts";
import type { Runtime } from "../runtime.ts";
import { call } from "../suite/harness.suite.ts";
import { createWorkbench, processesNaming, type Workbench } from "../suite/host-harness.suite.ts";
import { createGvisorRuntime, type GvisorRuntimeOptions } from "./gvisor-runtime.ts";

/** A runtime of its own for each test of a file, all in one directory; no process is left after any of them. */
export interface GvisorRig {
  readonly bench: Workbench;
  readonly runtime: Runtime;
  /** Goes on as a later service does; the one before is not closed. */
  reopen(): Promise<void>;
  /** Another one of the same place, as a command has that only ends things. */
  create(): Runtime;
}

type Options = Pick<GvisorRuntimeOptions, "spareSandbox" | "freezeIdleAfterMs" | "waitingShells">;

/** Called in a `describe`, whose hooks it adds. */
export function createGvisorRig(options: Options, timeoutMs: number): GvisorRig {
  let helper: HelperProcess;
  let runner: HostCommandRunner;
  let bench: Workbench;
  const opened: Runtime[] = [];
  const create = (): Runtime => {
    const { prepareRoot, stateDirectory } = bench;
    return createGvisorRuntime({ runner, helper, prepareRoot, stateDirectory, ...options });
  };
  const reopen = async (): Promise<void> => {
    const runtime = create();
    opened.push(runtime);
    await runtime.open(call);
  };
  const last = (): Runtime => {
    const runtime = opened.at(-1);
    if (runtime === undefined) throw new Error("there is no runtime between tests");
    return runtime;
  };
  beforeAll(async () => {
    helper = new HelperProcess();
    runner = new HostCommandRunner({ helper });
    bench = await createWorkbench();
  }, timeoutMs);
  beforeEach(reopen, timeoutMs);
  afterEach(async () => {
    for (const id of await last().list(call)) await last().stop(id, call);
    for (const runtime of opened.splice(0)) await runtime.close(call);
    expect(await processesNaming([bench.stateDirectory])).toEqual([]);
  }, timeoutMs);
  afterAll(async () => {
    await bench[Symbol.asyncDispose]();
    await runner[Symbol.asyncDispose]();
    helper[Symbol.dispose]();
  }, timeoutMs);
  return {
    get bench() {
      return bench;
    },
    get runtime() {
      return last();
    },
    reopen,
    create,
  };
}
