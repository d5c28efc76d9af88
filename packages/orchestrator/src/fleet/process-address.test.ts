import { expect, it } from "@jest/globals";
import { createFakeFleet } from "./fake-fleet.suite.ts";

const T1 = { signal: new AbortController().signal, tenant: "t1" };
const REQUEST = { idempotencyKey: "", labels: {}, template: "", resources: {}, lifetime: {}, env: {} };

it("gives addresses of processes that mean the instance and not the caller's own machine (D26)", async () => {
  await using fleet = await createFakeFleet({ instances: ["i-1"] });
  const { sandboxId } = await fleet.control.createSandbox(REQUEST, T1);
  const launch = { sandboxId, idempotencyKey: "", binary: "web", args: [], env: {}, exposePort: 8080 };
  const { processId, address } = await fleet.control.launchProcess(launch, T1);
  expect(address).toBe("i-1.test:8080");
  expect(await fleet.control.getProcessStatus({ sandboxId, processId }, T1)).toMatchObject({ address });
});
