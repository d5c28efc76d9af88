import { afterAll } from "@jest/globals";
import { HelperProcess } from "../../system/helper/helper-process.ts";
import { runtimeSuite } from "../runtime.suite.ts";
import { createWorkbench } from "../suite/host-harness.suite.ts";
import { gvisorSuite } from "./gvisor.suite.ts";
import { createGvisorHarness } from "./gvisor-harness.suite.ts";

const helper = new HelperProcess();
afterAll(() => {
  helper[Symbol.dispose]();
});

// What every runtime does is shown of processes that the sentry starts, the rest of those that runsc does.
runtimeSuite("gvisor", () => createGvisorHarness({ helper }), {
  shell: "yes",
  addedVariables: ["TURNBOX_EXEC"],
  crashes: "yes",
});
gvisorSuite(() => createGvisorHarness(), createWorkbench);
