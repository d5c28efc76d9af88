import { afterAll } from "@jest/globals";
import { HelperProcess } from "../../../system/helper/helper-process.ts";
import { runtimeSuite } from "../../runtime.suite.ts";
import { createGvisorHarness } from "../gvisor-harness.suite.ts";

const helper = new HelperProcess();
afterAll(() => {
  helper[Symbol.dispose]();
});

// A container does the same whether it was booted in a spare or not, and whether or not it was frozen while idle.
runtimeSuite("gvisor, in spares and frozen while idle", () => createGvisorHarness({ helper, thrift: "all" }), {
  shell: "yes",
  addedVariables: ["TURNBOX_EXEC"],
  crashes: "yes",
  instances: "one",
});
