import { describe, expect, it } from "@jest/globals";
import { ANY_TENANT, systemClock } from "@turnbox/core";
import { createTestAccess } from "@turnbox/core/testing";
import { Admission, HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { SessionService, SessionState } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { reasonOf } from "./client.suite.ts";
import { CLOSED, epoch, FleetRig, OPEN } from "./fleet.suite.ts";

describe("SetAdmission", () => {
  it("keeps new sessions out while it is closed, and says so", async () => {
    await using rig = await FleetRig.start();
    const { hosts, sessions, snapshots } = rig;
    const { session } = await sessions.createSession({});
    const sessionId = session?.sessionId ?? "";
    const { snapshotId } = await snapshots.turnComplete({ sessionId });
    expect((await hosts.healthCheck({})).admission).toBe(Admission.OPEN);

    expect(await hosts.setAdmission(CLOSED, epoch(1))).toMatchObject(CLOSED);

    expect((await hosts.healthCheck({})).admission).toBe(Admission.CLOSED);
    expect(await reasonOf(sessions.createSession({}))).toBe("HOST_CORDONED");
    expect(await reasonOf(sessions.forkSession({ sessionId }))).toBe("HOST_CORDONED");
    expect(await reasonOf(snapshots.restoreSnapshot({ sessionId, snapshotId }))).toBe("HOST_CORDONED");
    expect((await sessions.listSessions({})).sessions.map((one) => one.sessionId)).toEqual([sessionId]);

    await hosts.setAdmission(OPEN, epoch(1));
    expect(await reasonOf(sessions.createSession({}))).toBe("none");
  });

  it("lets the sessions that are there go on", async () => {
    await using rig = await FleetRig.start();
    const { hosts, sessions, snapshots } = rig;
    const { session } = await sessions.createSession({});
    const sessionId = session?.sessionId ?? "";
    await hosts.setAdmission(CLOSED, epoch(1));
    expect((await snapshots.turnComplete({ sessionId })).turnNumber).toBe(1);
    await sessions.pauseSession({ sessionId });
    expect((await sessions.resumeSession({ sessionId })).session?.state).toBe(SessionState.ACTIVE);
  });

  it("returns a create that was made before under its key, so that its caller gets the session", async () => {
    await using rig = await FleetRig.start();
    const { hosts, sessions } = rig;
    const first = await sessions.createSession({ idempotencyKey: "k1" });
    await hosts.setAdmission(CLOSED, epoch(1));
    const again = await sessions.createSession({ idempotencyKey: "k1" });
    expect(again.session?.sessionId).toBe(first.session?.sessionId);
  });

  it("waits, when it closes, for the sessions that are being made", async () => {
    await using rig = await FleetRig.start();
    const { started, hosts, sessions } = rig;
    const entered = started.host.cordon.enter();
    let answered = false;
    const closing = hosts.setAdmission(CLOSED, epoch(1)).then(() => {
      answered = true;
    });
    while (started.host.cordon.state === "open") await new Promise(setImmediate);
    expect(await reasonOf(sessions.createSession({}))).toBe("HOST_CORDONED");
    expect(answered).toBe(false);
    entered[Symbol.dispose]();
    await closing;
    expect(answered).toBe(true);
  });

  it("stays as it was over a crash of the service", async () => {
    await using rig = await FleetRig.start();
    const { hosts } = rig;
    await hosts.setAdmission(CLOSED, epoch(4));
    await rig.restart();
    expect((await rig.hosts.healthCheck({})).admission).toBe(Admission.CLOSED);
    expect(await reasonOf(rig.sessions.createSession({}))).toBe("HOST_CORDONED");
    expect(await reasonOf(rig.hosts.setAdmission(OPEN, epoch(3)))).toBe("EPOCH_STALE");
    await rig.hosts.setAdmission(OPEN, epoch(4));
    expect(await reasonOf(rig.sessions.createSession({}))).toBe("none");
  });

  it("needs a state and an epoch", async () => {
    await using rig = await FleetRig.start();
    const { hosts } = rig;
    expect(await reasonOf(hosts.setAdmission(CLOSED))).toBe("INVALID_ARGUMENT");
    expect(await reasonOf(hosts.setAdmission({}, epoch(1)))).toBe("INVALID_ARGUMENT");
    expect((await hosts.healthCheck({})).admission).toBe(Admission.OPEN);
  });

  it("is for the fleet and the home alone", async () => {
    await using rig = await FleetRig.start();
    const { access, hosts } = rig;
    const tenant = access.client(HostService, access.sign({ tenant: "acme" }));
    const fleet = access.client(HostService, access.sign({ tenant: ANY_TENANT }));
    expect(await reasonOf(tenant.setAdmission(CLOSED, epoch(1)))).toBe("PERMISSION_DENIED");
    expect((await hosts.healthCheck({})).admission).toBe(Admission.OPEN);
    expect(await reasonOf(fleet.setAdmission(CLOSED, epoch(1)))).toBe("none");
  });
});

describe("HostService", () => {
  it("belongs to one fleet: tokens of another one are refused", async () => {
    await using rig = await FleetRig.start();
    const { access } = rig;
    const token = createTestAccess({ clock: systemClock }).sign({ tenant: ANY_TENANT });
    const hosts = access.client(HostService, token);
    expect(await reasonOf(hosts.setAdmission(CLOSED, epoch(1)))).toBe("UNAUTHENTICATED");
    expect(await reasonOf(access.client(SessionService, token).listSessions({}))).toBe("UNAUTHENTICATED");
  });

  it("names the tenant of each session to the fleet, which sees them all", async () => {
    await using rig = await FleetRig.start();
    const { access } = rig;
    for (const tenant of ["acme", "umbrella"]) {
      await access.client(SessionService, access.sign({ tenant })).createSession({});
    }
    const { sessions } = await access.client(SessionService, access.sign({ tenant: ANY_TENANT })).listSessions({});
    expect(sessions.map(({ tenant }) => tenant).sort()).toEqual(["acme", "umbrella"]);
  });
});
