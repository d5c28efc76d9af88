import { afterEach, describe, expect, it } from "@jest/globals";
import { ANY_TENANT, systemClock } from "@turnbox/core";
import { createTestAccess } from "@turnbox/core/testing";
import { Admission, HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { SessionService, SessionState } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { SnapshotService } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import { startTestHost, type TestHost } from "../compose.suite.ts";
import { accessTo, reasonOf } from "./client.suite.ts";

let running: TestHost | undefined;

afterEach(async () => {
  await running?.[Symbol.asyncDispose]();
  running = undefined;
});

const epoch = (value: number | string) => ({ headers: { "turnbox-fleet-epoch": String(value) } });
const OPEN = { admission: Admission.OPEN };
const CLOSED = { admission: Admission.CLOSED };

async function start() {
  const started = await startTestHost();
  running = started;
  return { started, ...clientsOf(started) };
}

function clientsOf({ host }: TestHost) {
  const access = accessTo(host);
  return {
    access,
    hosts: access.client(HostService),
    sessions: access.client(SessionService),
    snapshots: access.client(SnapshotService),
  };
}

async function restart(started: TestHost) {
  const again = await started.restart();
  running = again;
  return clientsOf(again);
}

describe("SetAdmission", () => {
  it("keeps new sessions out while it is closed, and says so", async () => {
    const { hosts, sessions, snapshots } = await start();
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
    const { hosts, sessions, snapshots } = await start();
    const { session } = await sessions.createSession({});
    const sessionId = session?.sessionId ?? "";
    await hosts.setAdmission(CLOSED, epoch(1));
    expect((await snapshots.turnComplete({ sessionId })).turnNumber).toBe(1);
    await sessions.pauseSession({ sessionId });
    expect((await sessions.resumeSession({ sessionId })).session?.state).toBe(SessionState.ACTIVE);
  });

  it("answers a create that was made before under its key, so that its caller learns of it", async () => {
    const { hosts, sessions } = await start();
    const first = await sessions.createSession({ idempotencyKey: "k1" });
    await hosts.setAdmission(CLOSED, epoch(1));
    const again = await sessions.createSession({ idempotencyKey: "k1" });
    expect(again.session?.sessionId).toBe(first.session?.sessionId);
  });

  it("waits, when it closes, for the sessions that are being made", async () => {
    const { started, hosts, sessions } = await start();
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
    const { started, hosts } = await start();
    await hosts.setAdmission(CLOSED, epoch(4));
    const after = await restart(started);
    expect((await after.hosts.healthCheck({})).admission).toBe(Admission.CLOSED);
    expect(await reasonOf(after.sessions.createSession({}))).toBe("HOST_CORDONED");
    expect(await reasonOf(after.hosts.setAdmission(OPEN, epoch(3)))).toBe("EPOCH_STALE");
    await after.hosts.setAdmission(OPEN, epoch(4));
    expect(await reasonOf(after.sessions.createSession({}))).toBe("none");
  });

  it("has to be told what, and in which epoch", async () => {
    const { hosts } = await start();
    expect(await reasonOf(hosts.setAdmission(CLOSED))).toBe("INVALID_ARGUMENT");
    expect(await reasonOf(hosts.setAdmission({}, epoch(1)))).toBe("INVALID_ARGUMENT");
    expect((await hosts.healthCheck({})).admission).toBe(Admission.OPEN);
  });

  it("is for the fleet and the home alone", async () => {
    const { access, hosts } = await start();
    const tenant = access.client(HostService, access.sign({ tenant: "acme" }));
    const fleet = access.client(HostService, access.sign({ tenant: ANY_TENANT }));
    expect(await reasonOf(tenant.setAdmission(CLOSED, epoch(1)))).toBe("PERMISSION_DENIED");
    expect((await hosts.healthCheck({})).admission).toBe(Admission.OPEN);
    expect(await reasonOf(fleet.setAdmission(CLOSED, epoch(1)))).toBe("none");
  });
});

describe("the epoch of a command", () => {
  it("is refused below the highest seen, on any method, and nothing happens", async () => {
    const { hosts, sessions } = await start();
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

  it("is on record before the command has any effect, so that a crash forgets none", async () => {
    const { started, sessions } = await start();
    await reasonOf(sessions.pauseSession({ sessionId: "nowhere" }, epoch(9)));
    const after = await restart(started);
    expect(await reasonOf(after.sessions.listSessions({}, epoch(8)))).toBe("EPOCH_STALE");
    expect(await reasonOf(after.sessions.listSessions({}, epoch(9)))).toBe("none");
  });

  it("lets the highest through where many come at once", async () => {
    const { started, hosts } = await start();
    await Promise.all([3, 9, 5, 1, 9, 7].map((one) => reasonOf(hosts.setAdmission(CLOSED, epoch(one)))));
    await expect(started.host.fence.pass(8)).rejects.toMatchObject({ reason: "EPOCH_STALE" });
    await started.host.fence.pass(9);
  });

  it("is a whole number from 1 on", async () => {
    const { hosts } = await start();
    for (const garbage of ["", "0", "-1", "1.5", "abc", "0x10", "1e3", "99999999999999999999", "5, 6"]) {
      expect([garbage, await reasonOf(hosts.healthCheck({}, epoch(garbage)))]).toEqual([garbage, "INVALID_ARGUMENT"]);
    }
  });

  it("is not taken from a tenant, who could keep the leader out with it", async () => {
    const { access, hosts } = await start();
    const tenant = access.client(HostService, access.sign({ tenant: "acme" }));
    expect(await reasonOf(tenant.healthCheck({}, epoch(1_000_000)))).toBe("PERMISSION_DENIED");
    expect(await reasonOf(hosts.setAdmission(CLOSED, epoch(1)))).toBe("none");
  });

  it("needs not be there", async () => {
    const { hosts, sessions } = await start();
    await hosts.setAdmission(OPEN, epoch(5));
    expect(await reasonOf(sessions.createSession({}))).toBe("none");
  });
});

describe("a host", () => {
  it("belongs to one fleet: tokens of another one are nobody's", async () => {
    const { access } = await start();
    const token = createTestAccess({ clock: systemClock }).sign({ tenant: ANY_TENANT });
    const hosts = access.client(HostService, token);
    expect(await reasonOf(hosts.setAdmission(CLOSED, epoch(1)))).toBe("UNAUTHENTICATED");
    expect(await reasonOf(access.client(SessionService, token).listSessions({}))).toBe("UNAUTHENTICATED");
  });

  it("names the tenant of each session to the fleet, which sees them all", async () => {
    const { access } = await start();
    for (const tenant of ["acme", "umbrella"]) {
      await access.client(SessionService, access.sign({ tenant })).createSession({});
    }
    const { sessions } = await access.client(SessionService, access.sign({ tenant: ANY_TENANT })).listSessions({});
    expect(sessions.map(({ tenant }) => tenant).sort()).toEqual(["acme", "umbrella"]);
  });
});
