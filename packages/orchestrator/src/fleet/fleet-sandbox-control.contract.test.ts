import { newSessionId } from "@turnbox/core";
import { sandboxControlSuite } from "../control/sandbox-control.suite.ts";
import { createFakeFleet } from "./fake-fleet.suite.ts";

sandboxControlSuite("fleet over fake hosts", async () => {
  const fleet = await createFakeFleet();
  return {
    control: fleet.control,
    absentId: `fleet:i-1:${newSessionId()}`,
    malformedId: newSessionId(),
    tenants: ["t1", "t2"],
    names: "supported",
    [Symbol.asyncDispose]: () => fleet[Symbol.asyncDispose](),
  };
});
