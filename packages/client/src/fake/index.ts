/** The services in memory, for the tests of this repository. Not published. */
export { createManualClock, type ManualClock } from "@turnbox/core/testing";
export { connectServices, type Fault, NOW_MS, type SeenCall, type Services } from "./connect-services.ts";
export { type FleetAnswer, fleetInstance } from "./fake-fleet-service.ts";
export { type FakeSandbox, newSandbox, routeSandbox } from "./fake-sandbox.ts";
export { createServices, HOST_URL, newWorld, type World } from "./fake-services.ts";
export { MADE, newMcpWorld } from "./mcp-world.ts";
export { createSessionHost, type FakeHost, type SessionProvider } from "./session-host.ts";
export * from "./wire.ts";
