import { afterAll } from "@jest/globals";
import { createAide } from "@turnbox/core";
import { runtimeSuite } from "../../runtime.suite.ts";
import { createGvisorHarness } from "../gvisor-harness.suite.ts";

const aide = createAide();
afterAll(() => {
  aide[Symbol.dispose]();
});

// A container does the same whether it was booted in a spare or not, and whether or not it was frozen while idle.
runtimeSuite("gvisor, in spares and frozen while idle", () => createGvisorHarness({ aide, thrift: "all" }), {
  shell: "yes",
  addedVariables: ["TURNBOX_EXEC"],
  crashes: "yes",
  instances: "one",
});
