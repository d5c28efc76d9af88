import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll } from "@jest/globals";
import { type Aide, createAide, createChildCommandRunner } from "@turnbox/core";
import { runtimeSuite } from "../runtime.suite.ts";
import type { RuntimeHarness } from "../suite/harness.suite.ts";
import { createWorkbench, processesNaming, SHELL_PROGRAMS } from "../suite/host-harness.suite.ts";
import { createCgroup, readCgroupMounts } from "./cgroup.ts";
import { gvisorSuite } from "./gvisor.suite.ts";
import { createGvisorRuntime } from "./gvisor-runtime.ts";
import { readStateFile } from "./state-file.ts";

const aide = createAide();
afterAll(() => {
  aide[Symbol.dispose]();
});

async function createHarness(options: { readonly aide?: Aide } = {}): Promise<RuntimeHarness> {
  const bench = await createWorkbench();
  const runner = createChildCommandRunner(options);
  const reopen = () => createGvisorRuntime({ runner, ...options, stateDirectory: bench.stateDirectory });
  return {
    runtime: reopen(),
    programs: SHELL_PROGRAMS,
    reopen,
    newContainer: bench.newContainer,
    crash: async (id) => {
      const state = await readStateFile(join(bench.stateDirectory, "runsc"), id);
      process.kill(state?.sandboxPid ?? Number.NaN, "SIGKILL");
    },
    leftovers: async (ids) => await leftoversOf(ids, bench.stateDirectory),
    [Symbol.asyncDispose]: async () => {
      await bench[Symbol.asyncDispose]();
    },
  };
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

// What every runtime does is shown of processes that the sentry starts, the rest of those that runsc does.
runtimeSuite("gvisor", () => createHarness({ aide }), {
  shell: "yes",
  addedVariables: ["TURNBOX_EXEC"],
  crashes: "yes",
});
gvisorSuite(() => createHarness(), createWorkbench);
