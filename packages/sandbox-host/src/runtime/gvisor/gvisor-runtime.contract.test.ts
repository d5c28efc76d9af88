import { afterAll } from "@jest/globals";
import { createAide } from "@turnbox/core";
import { runtimeSuite } from "../runtime.suite.ts";
import { createWorkbench } from "../suite/host-harness.suite.ts";
import { gvisorSuite } from "./gvisor.suite.ts";
import { createGvisorHarness } from "./gvisor-harness.suite.ts";

const aide = createAide();
afterAll(() => {
  aide[Symbol.dispose]();
});

// What every runtime does is shown of processes that the sentry starts, the rest of those that runsc does.
runtimeSuite("gvisor", () => createGvisorHarness({ aide }), {
  shell: "yes",
  addedVariables: ["TURNBOX_EXEC"],
  crashes: "yes",
});
gvisorSuite(() => createGvisorHarness(), createWorkbench);
