import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { replaceMembers } from "@turnbox/core";
import { HostCommandRunner } from "../../system/command/host-command-runner.ts";
import type { Helper } from "../../system/helper/helper.ts";
import type { Runtime } from "../runtime.ts";
import { call, type RuntimeHarness, until } from "../suite/harness.suite.ts";
import { createWorkbench, processesNaming, SHELL_PROGRAMS, type Workbench } from "../suite/host-harness.suite.ts";
import { createCgroup, readCgroupMounts } from "./container/cgroup.ts";
import { createGvisorRuntime } from "./gvisor-runtime.ts";
import { createLayout, sandboxNote } from "./container/layout.ts";
import { readStateFile } from "./container/state-file.ts";

/** In the pauses between a test's own steps. */
const FREEZE_IDLE_AFTER_MS = 20;

export interface GvisorHarnessOptions {
  readonly helper?: Helper;
  /** `all`: every container is booted in a spare, and frozen whenever it is idle. */
  readonly thrift?: "all";
}

export async function createGvisorHarness({ helper, thrift }: GvisorHarnessOptions = {}): Promise<RuntimeHarness> {
  const bench = await createWorkbench();
  const { prepareRoot, stateDirectory } = bench;
  const byHelper = helper === undefined ? {} : { helper };
  const runner = new HostCommandRunner(byHelper);
  const opened: Runtime[] = [];
  const reopen = (): Runtime => {
    const thrifty =
      thrift === undefined ? {} : ({ spareSandbox: "one", freezeIdleAfterMs: FREEZE_IDLE_AFTER_MS } as const);
    const runtime = createGvisorRuntime({ runner, ...byHelper, prepareRoot, stateDirectory, ...thrifty });
    opened.push(runtime);
    return thrift === undefined ? runtime : bootingInSpares(runtime, bench);
  };
  const runtime = reopen();
  return {
    runtime,
    programs: SHELL_PROGRAMS,
    // A second one would not know what the first lets rest. That a later service wakes it has tests of its own.
    reopen: thrift === undefined ? reopen : () => runtime,
    newContainer: bench.newContainer,
    crash: async (id) => {
      const sandboxId = (await notedSandbox(bench, id)) ?? id;
      const state = readStateFile(join(stateDirectory, "runsc"), id, sandboxId);
      process.kill(state?.sandboxPid ?? Number.NaN, "SIGKILL");
    },
    leftovers: async (ids) => await leftoversOf(ids, stateDirectory),
    [Symbol.asyncDispose]: async () => {
      for (const runtime of opened) await runtime.close(call);
      await runner[Symbol.asyncDispose]();
      await bench[Symbol.asyncDispose]();
    },
  };
}

/** Starts a container until it is one in a sandbox that stood by: the first of a kind finds none. */
function bootingInSpares(runtime: Runtime, bench: Workbench): Runtime {
  return replaceMembers(runtime, {
    start: async (spec, options) => {
      await until(async () => {
        if ((await runtime.liveness(spec.id, call)) !== "gone") return true;
        runtime.prewarm?.hurry(spec.id);
        await runtime.start(spec, options);
        if ((await notedSandbox(bench, spec.id)) !== undefined) return true;
        await runtime.stop(spec.id, call);
        return false;
      });
    },
  });
}

async function notedSandbox({ stateDirectory }: Workbench, id: string): Promise<string | undefined> {
  return await readFile(sandboxNote(createLayout(stateDirectory), id), "utf8").catch(() => undefined);
}

async function leftoversOf(ids: readonly string[], stateDirectory: string): Promise<readonly string[]> {
  const mounts = await readCgroupMounts();
  const mountInfo = (await readFile("/proc/self/mountinfo", "utf8")).split("\n");
  const files = await readdir(stateDirectory, { recursive: true });
  const members = await Promise.all(ids.map((id) => createCgroup(mounts, `/turnbox/${id}`).pids()));
  const groups = await Promise.all(
    mounts.map(async ({ mountPoint }) => await readdir(join(mountPoint, "turnbox")).catch(() => [])),
  );
  return [
    ...(await processesNaming(ids)),
    ...mountInfo.filter((line) => ids.some((id) => line.includes(id))),
    ...files.filter((file) => ids.some((id) => file.includes(id))),
    ...members.flat().map((pid) => `member ${String(pid)}`),
    ...groups.flat().filter((name) => ids.includes(name)),
  ];
}
