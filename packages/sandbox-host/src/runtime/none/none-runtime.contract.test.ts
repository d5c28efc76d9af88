import { readdir } from "node:fs/promises";
import { HostCommandRunner } from "../../system/command/host-command-runner.ts";
import { runtimeSuite } from "../runtime.suite.ts";
import { createWorkbench, processesNaming, SHELL_PROGRAMS } from "../suite/host-harness.suite.ts";
import { createNoneRuntime } from "./none-runtime.ts";

runtimeSuite(
  "none",
  async () => {
    const bench = await createWorkbench();
    const runner = new HostCommandRunner();
    const reopen = () => createNoneRuntime({ runner, stateDirectory: bench.stateDirectory });
    return {
      runtime: reopen(),
      programs: SHELL_PROGRAMS,
      reopen,
      newContainer: bench.newContainer,
      leftovers: async (ids) => [
        ...(await processesNaming(ids)),
        ...(await readdir(bench.stateDirectory)).filter((file) => ids.some((id) => file.includes(id))),
      ],
      [Symbol.asyncDispose]: async () => {
        await bench[Symbol.asyncDispose]();
        await runner[Symbol.asyncDispose]();
      },
    };
  },
  { shell: "yes", addedVariables: ["TURNBOX_EXEC", "TURNBOX_CONTAINER"], crashes: "no" },
);
