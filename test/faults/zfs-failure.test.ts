import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Json, Refusal, startHost, type TestHost } from "../support/host.ts";
import {
  completeTurn,
  createSession,
  destroy,
  getSession,
  listSessions,
  listSnapshots,
  script,
} from "../support/host-calls.ts";
import { expectConsistent, expectNothingLeft } from "../support/invariants.ts";
import { poll, run } from "../support/process.ts";

/** How `zfs` fails: before it has done anything, after it has done all, or by a signal before or after. */
const FAILURES = ["refuse", "refuse-after", "die", "die-after"] as const;
type Failure = (typeof FAILURES)[number];

let host: TestHost;
let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "turnbox-shim-"));
  const real = (await run("sh", ["-c", "command -v zfs"])).stdout.trim();
  // The file `plan` names a command of zfs, a failure, and how many times it is to happen.
  const shim = `#!/bin/bash
plan=${directory}/plan
if read -r command failure left 2>/dev/null < "$plan" && [ "$command" = "$1" ] && [ "$left" -gt 0 ]; then
  echo "$command $failure $((left - 1))" > "$plan"
  case "$failure" in *-after) ${real} "$@" ;; esac
  case "$failure" in die*) kill -9 $$ ;; esac
  echo "internal error: out of luck" >&2
  exit 1
fi
exec ${real} "$@"
`;
  await writeFile(join(directory, "zfs"), shim);
  await chmod(join(directory, "zfs"), 0o755);
  host = await startHost({ env: { PATH: `${directory}:${process.env["PATH"] ?? ""}` } });
}, 120_000);
afterAll(async () => {
  await rm(join(directory, "plan"), { force: true });
  await host[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
}, 120_000);

/** Lets the next `times` runs of a zfs command fail. */
async function plan(command: string, failure: Failure, times = 1): Promise<void> {
  await writeFile(join(directory, "plan"), `${command} ${failure} ${times}\n`);
}

/** How many of the planned failures have not happened. */
async function planned(): Promise<number> {
  return Number((await readFile(join(directory, "plan"), "utf8")).trim().split(" ")[2]);
}

/** Asks until there is a result, always with the same key. Every refusal on the way is one of the storage. */
async function insist(method: string, body: Json): Promise<Json> {
  return await poll(method, async () => {
    try {
      return await host.call(method, body);
    } catch (thrown) {
      expect(thrown).toBeInstanceOf(Refusal);
      expect((thrown as Refusal).reason).toMatch(/^(STORAGE_UNAVAILABLE|INTERNAL)$/);
      return undefined;
    }
  });
}

describe.each(FAILURES)("a zfs command that fails once (%s)", (failure) => {
  it("makes no snapshot twice and loses none", async () => {
    const sessionId = `seal-${failure}`;
    await createSession(host, sessionId);
    await script(host, sessionId, "echo one > /workspace/a");
    await plan("snapshot", failure);
    const turn = await insist("SnapshotService/TurnComplete", { sessionId, turnKey: "k" });
    expect(await planned()).toBe(0);
    expect(await completeTurn(host, sessionId, "k")).toMatchObject({ snapshotId: turn["snapshotId"], turnNumber: 1 });
    expect(await listSnapshots(host, sessionId)).toMatchObject([{ snapshotId: turn["snapshotId"], turnKey: "k" }]);
    await expectConsistent(host);
    await destroy(host, sessionId);
  }, 60_000);

  it("makes no session twice and leaves no half of one", async () => {
    const sessionId = `make-${failure}`;
    await plan("clone", failure);
    await insist("SessionService/CreateSession", { sessionId, idempotencyKey: `c-${failure}` });
    expect(await planned()).toBe(0);
    await script(host, sessionId, "echo one > /workspace/a");
    await plan("clone", failure);
    const forked = await insist("SessionService/ForkSession", { sessionId, count: 2, idempotencyKey: "f" });
    expect(await planned()).toBe(0);
    const results = forked["results"] as readonly {
      readonly session?: { readonly sessionId: string };
      readonly reason?: string;
    }[];
    expect(results).toHaveLength(2);
    for (const { session, reason } of results) {
      if (session === undefined) expect(reason).toMatch(/^(STORAGE_UNAVAILABLE|INTERNAL)$/);
      else expect(await script(host, session.sessionId, "cat /workspace/a")).toBe("one\n");
    }
    await expectConsistent(host);
    await expectNothingLeft(host);
  }, 90_000);

  it("leaves a session usable whose rollback it cuts off, and the rollback can be had", async () => {
    const sessionId = `back-${failure}`;
    await createSession(host, sessionId);
    await script(host, sessionId, "echo one > /workspace/a");
    const { snapshotId } = await completeTurn(host, sessionId);
    await script(host, sessionId, "echo two > /workspace/a");
    await plan("clone", failure);
    await insist("SnapshotService/RollbackSession", { sessionId, snapshotId, idempotencyKey: "r" });
    expect(await planned()).toBe(0);
    expect(await script(host, sessionId, "cat /workspace/a")).toBe("one\n");
    expect(await getSession(host, sessionId)).toMatchObject({ state: "SESSION_STATE_ACTIVE" });
    expect((await listSnapshots(host, sessionId)).map(({ kind }) => kind)).toEqual([
      "SNAPSHOT_KIND_TURN",
      "SNAPSHOT_KIND_UNDO",
    ]);
    await plan("destroy", failure, 2);
    await destroy(host, sessionId);
    await poll("the session to be gone", async () =>
      (await listSessions(host)).some((session) => session.sessionId === sessionId) ? undefined : true,
    );
    expect(await planned()).toBe(0);
    await expectNothingLeft(host);
  }, 90_000);
});
