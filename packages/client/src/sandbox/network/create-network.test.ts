import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { Verb } from "@turnbox/protocol/turnbox/common/v1/access_pb";
import { openRoom } from "../../fake/room.suite.ts";

describe("the network of a sandbox", () => {
  it("is read with the token of the handle, and changed with one that is asked for and given up at once", async () => {
    using room = await openRoom();
    await room.sandbox.network.policy();
    const updated = await room.sandbox.network.update({ allowOutbound: true, allowList: ["pypi.org"] });
    expect(updated).toMatchObject({ allowOutbound: true, allowList: ["pypi.org"] });
    expect(room.harness.sent("ConnectSandbox").map(({ verbs }) => verbs)).toEqual([[], [Verb.READ, Verb.NETWORK]]);
    expect(room.harness.closed).toHaveLength(1);
    await room.sandbox.network.policy();
    expect(room.harness.sent("ConnectSandbox")).toHaveLength(2);
  });

  it("tells that the caller may not change it, without trying again", async () => {
    using room = await openRoom();
    room.harness.faults.set("ConnectSandbox", [new SandboxError("PERMISSION_DENIED", "verbs: not network")]);
    await expect(room.sandbox.network.update({})).rejects.toMatchObject({ reason: "PERMISSION_DENIED" });
    expect(room.harness.sent("UpdateNetworkPolicy")).toHaveLength(0);
    expect(room.harness.sleptMs).toEqual([]);
  });

  it("is not changed through a handle that was closed", async () => {
    using room = await openRoom();
    await room.sandbox[Symbol.asyncDispose]();
    await expect(room.sandbox.network.update({})).rejects.toMatchObject({ reason: "CANCELLED" });
    expect(room.harness.sent("UpdateNetworkPolicy")).toHaveLength(0);
  });
});
