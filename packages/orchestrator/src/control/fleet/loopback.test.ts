import { describe, expect, it } from "@jest/globals";
import { createFakeFleet } from "./fake-fleet.suite.ts";
import { onHost } from "./loopback.ts";

const T1 = { signal: new AbortController().signal, tenant: "t1" };
const REQUEST = { idempotencyKey: "", labels: {}, template: "", resources: {}, lifetime: {}, env: {} };

describe("addresses of processes (D26)", () => {
  it.each([
    ["127.0.0.1:8080", "10.0.0.7:8080"],
    ["127.9.9.9:8080", "10.0.0.7:8080"],
    ["0.0.0.0:8080", "10.0.0.7:8080"],
    ["localhost:8080", "10.0.0.7:8080"],
    ["[::1]:8080", "10.0.0.7:8080"],
    ["10.1.1.1:8080", "10.1.1.1:8080"],
    ["web.test:8080", "web.test:8080"],
    ["", ""],
  ])("%s is reached at %s", (address, expected) => {
    expect(onHost(address, "10.0.0.7:9100")).toBe(expected);
  });

  it("mean the instance and not the caller's own machine", async () => {
    await using fleet = await createFakeFleet({ instances: ["i-1"] });
    const { sandboxId } = await fleet.control.createSandbox(REQUEST, T1);
    const launch = { sandboxId, idempotencyKey: "", binary: "web", args: [], env: {}, exposePort: 8080 };
    const { processId, address } = await fleet.control.launchProcess(launch, T1);
    expect(address).toBe("i-1.test:8080");
    expect(await fleet.control.getProcessStatus({ sandboxId, processId }, T1)).toMatchObject({ address });
  });
});
