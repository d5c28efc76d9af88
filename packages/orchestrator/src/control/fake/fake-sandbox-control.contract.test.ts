import { newSessionId, systemClock } from "@turnbox/core";
import { sandboxControlSuite } from "../sandbox-control.suite.ts";
import { createFakeSandboxControl } from "./fake-sandbox-control.ts";

sandboxControlSuite("fake", () =>
  Promise.resolve({
    control: createFakeSandboxControl({ clock: systemClock }),
    absentId: newSessionId(),
    malformedId: "no/such id",
    tenants: ["t1", "t2"],
    names: "supported",
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }),
);
