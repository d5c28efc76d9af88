import { createSessionHost, type FakeHost as SessionHost } from "@turnbox/client/fake";
import { createFakeSessions, type FakeSessions } from "./fake-sessions.suite.ts";

export type FakeHost = SessionHost<FakeSessions>;

/** A sandbox-host in memory with these sessions. */
export const createFakeHost = (provider: FakeSessions = createFakeSessions()): FakeHost => createSessionHost(provider);

export const ZFS_GVISOR: FakeHost["capabilities"] = {
  snapshots: true,
  rollback: true,
  tierRouting: true,
  storage: "zfs",
  runtime: "gvisor",
};
