import { afterAll } from "@jest/globals";
import { createAide } from "@turnbox/core";
import { runtimeSuite } from "../../runtime.suite.ts";
import { createGvisorHarness } from "../gvisor-harness.suite.ts";

const aide = createAide();
afterAll(() => {
  aide[Symbol.dispose]();
});

// A container is the same to whoever uses it, wherever it was booted.
runtimeSuite("gvisor, in sandboxes that stood by", () => createGvisorHarness({ aide, boots: "in-spares" }), {
  shell: "yes",
  addedVariables: ["TURNBOX_EXEC"],
  crashes: "yes",
});
