import { afterAll } from "@jest/globals";
import { createAide } from "@turnbox/core";
import { runtimeSuite } from "../runtime.suite.ts";
import { createGvisorHarness } from "./gvisor-harness.suite.ts";

const aide = createAide();
afterAll(() => {
  aide[Symbol.dispose]();
});

// A container is the same to whoever uses it, wherever it was booted, and whether or not it has rested.
runtimeSuite("gvisor, in sandboxes that stood by and rest", () => createGvisorHarness({ aide, thrift: "all" }), {
  shell: "yes",
  addedVariables: ["TURNBOX_EXEC"],
  crashes: "yes",
  instances: "one",
});
