import { describe, expect, it } from "@jest/globals";
import { Admission, HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { SessionState } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { reasonOf } from "./client.suite.ts";
import { CLOSED, epoch, FleetRig, OPEN } from "./fleet.suite.ts";

describe("the fence interceptor", () => {
  it("refuses an epoch below the highest seen, on any method, and nothing happens", async () => {
    await using rig = await FleetRig.start();
    const { hosts, sessions } = rig;
    const { session } = await sessions.createSession({});
    const sessionId = session?.sessionId ?? "";
    await hosts.healthCheck({}, epoch(7));
    expect(await reasonOf(sessions.pauseSession({ sessionId }, epoch(6)))).toBe("EPOCH_STALE");
    expect(await reasonOf(sessions.destroySession({ sessionId }, epoch(1)))).toBe("EPOCH_STALE");
    expect(await reasonOf(hosts.setAdmission(CLOSED, epoch(6)))).toBe("EPOCH_STALE");
    expect((await sessions.getSession({ sessionId })).session?.state).toBe(SessionState.ACTIVE);
    expect((await hosts.healthCheck({})).admission).toBe(Admission.OPEN);
    expect(await reasonOf(sessions.pauseSession({ sessionId }, epoch(7)))).toBe("none");
  });

  it("records an epoch before its command has any effect, so that a crash forgets none", async () => {
    await using rig = await FleetRig.start();
    const { sessions } = rig;
    await reasonOf(sessions.pauseSession({ sessionId: "nowhere" }, epoch(9)));
    await rig.restart();
    expect(await reasonOf(rig.sessions.listSessions({}, epoch(8)))).toBe("EPOCH_STALE");
    expect(await reasonOf(rig.sessions.listSessions({}, epoch(9)))).toBe("none");
  });

  it("lets the highest epoch through if many come at once", async () => {
    await using rig = await FleetRig.start();
    const { started, hosts } = rig;
    await Promise.all([3, 9, 5, 1, 9, 7].map((one) => reasonOf(hosts.setAdmission(CLOSED, epoch(one)))));
    await expect(started.host.fence.pass(8)).rejects.toMatchObject({ reason: "EPOCH_STALE" });
    await started.host.fence.pass(9);
  });

  it("takes whole numbers from 1 on", async () => {
    await using rig = await FleetRig.start();
    const { hosts } = rig;
    for (const garbage of ["", "0", "-1", "1.5", "abc", "0x10", "1e3", "99999999999999999999", "5, 6"]) {
      expect([garbage, await reasonOf(hosts.healthCheck({}, epoch(garbage)))]).toEqual([garbage, "INVALID_ARGUMENT"]);
    }
  });

  it("takes no epoch from a tenant, which could keep the leader out with it", async () => {
    await using rig = await FleetRig.start();
    const { access, hosts } = rig;
    const tenant = access.client(HostService, access.sign({ tenant: "acme" }));
    expect(await reasonOf(tenant.healthCheck({}, epoch(1_000_000)))).toBe("PERMISSION_DENIED");
    expect(await reasonOf(hosts.setAdmission(CLOSED, epoch(1)))).toBe("none");
  });

  it("lets a call without an epoch through", async () => {
    await using rig = await FleetRig.start();
    const { hosts, sessions } = rig;
    await hosts.setAdmission(OPEN, epoch(5));
    expect(await reasonOf(sessions.createSession({}))).toBe("none");
  });
});
