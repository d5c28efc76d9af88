import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { startHost, type TestHost } from "../support/host.ts";
import {
  completeTurn,
  createSession,
  destroy,
  digest,
  fork,
  getSession,
  health,
  listSessions,
  listSnapshots,
  rollBack,
  script,
} from "../support/host-calls.ts";
import { expectConsistent, expectNothingLeft } from "../support/invariants.ts";
import { poll } from "../support/process.ts";
import { createRandom, IS_FULL, pick, SEED, SLACK } from "../support/random.ts";
import { readRecords } from "../support/records.ts";

const MAX_SNAPSHOTS = 4;

let host: TestHost;
beforeAll(async () => {
  host = await startHost({ env: { TURNBOX_MAX_SNAPSHOTS_PER_SESSION: String(MAX_SNAPSHOTS) } });
}, 120_000);
afterAll(async () => {
  await host[Symbol.asyncDispose]();
}, 120_000);

const gone = async (sessionId: string): Promise<void> => {
  await destroy(host, sessionId);
  await poll(`${sessionId} to be gone`, async () =>
    (await listSessions(host)).some((session) => session.sessionId === sessionId) ? undefined : true,
  );
};
const husks = (): number => readRecords(host.dataDirectory).husks.length;

describe("undo", () => {
  it("of a rollback returns every file byte for byte, with names, modes, owners and times", async () => {
    const sessionId = "undone";
    await createSession(host, sessionId);
    const make = [
      "cd /workspace",
      "mkdir -p d/e/f 'with space'",
      "head -c 300000 /dev/urandom > d/random && truncate -s 10M sparse",
      "ln d/random hard && ln -s d/random soft && ln -s /nowhere dangling",
      "chmod 4711 d/random && chmod 000 d/e && chown 1000:2000 sparse",
      "touch -d @1234567890 d/random sparse && echo x > 'with space/ä'",
      "echo etc >> /etc/motd && rm -f /bin/yes",
    ];
    await script(host, sessionId, make.join("\n"));
    const [workspace, etc] = [await digest(host, sessionId), await digest(host, sessionId, "/etc")];
    const first = await completeTurn(host, sessionId);
    await script(
      host,
      sessionId,
      "cd /workspace && rm -rf d hard && echo y > 'with space/ä' && mv sparse moved && touch new",
    );
    const changed = await digest(host, sessionId);
    expect(changed).not.toBe(workspace);

    const undo = await rollBack(host, sessionId, first.snapshotId);
    expect([await digest(host, sessionId), await digest(host, sessionId, "/etc")]).toEqual([workspace, etc]);
    const redo = await rollBack(host, sessionId, undo);
    expect([await digest(host, sessionId), await digest(host, sessionId, "/etc")]).toEqual([changed, etc]);
    await rollBack(host, sessionId, redo);
    expect([await digest(host, sessionId), await digest(host, sessionId, "/etc")]).toEqual([workspace, etc]);
    expect(await script(host, sessionId, "ls /bin/yes || echo gone")).toContain("gone");
    await expectNothingLeft(host);
  }, 120_000);
});

describe("forks", () => {
  it("of a session of 200 MB, twenty of them, take under 1 MB each and less than 5 s together", async () => {
    const sessionId = "large";
    await createSession(host, sessionId);
    await script(host, sessionId, "for i in 1 2 3 4; do head -c 50000000 /dev/urandom > /workspace/$i; done");
    const { snapshotId } = await completeTurn(host, sessionId);
    expect(Number((await getSession(host, sessionId)).spaceUsedBytes)).toBeGreaterThan(200_000_000);
    const begunMs = performance.now();
    const { children } = await fork(host, sessionId, { snapshotId, count: 20 });
    const tookMs = performance.now() - begunMs;
    expect(children).toHaveLength(20);
    const used = await Promise.all(
      children.map(async (child) => Number((await getSession(host, child.sessionId)).spaceUsedBytes ?? 0)),
    );
    process.stdout.write(
      `forks: 20 of a 200 MB session in ${Math.round(tookMs)} ms, at most ${Math.max(...used)} bytes each\n`,
    );
    expect(Math.max(...used)).toBeLessThan(1_000_000);
    expect(tookMs).toBeLessThan(5_000 * SLACK);
    // They are whole, and on their own.
    const [first, second] = children;
    const sums = await script(host, sessionId, "sha256sum /workspace/1");
    await script(host, first!.sessionId, "echo mine > /workspace/1");
    expect(await script(host, second!.sessionId, "sha256sum /workspace/1")).toBe(sums);
    expect(await script(host, sessionId, "sha256sum /workspace/1")).toBe(sums);
    await expectNothingLeft(host);
  }, 180_000);

  it("live on when their parent is destroyed first, and nothing of it is left after the last of them", async () => {
    await createSession(host, "parent");
    await script(host, "parent", "echo kept > /workspace/a; head -c 5000000 /dev/urandom > /workspace/b");
    const sum = await digest(host, "parent");
    await completeTurn(host, "parent");
    await fork(host, "parent", { count: 2, childSessionIds: ["child-1", "child-2"] });
    await fork(host, "child-1", { count: 1, childSessionIds: ["grandchild"] });
    await gone("parent");
    expect(husks()).toBe(1);
    expect((await health(host)).errors?.join()).toContain("destroyed session");
    // Its id is free for another one.
    await createSession(host, "parent");
    expect(await script(host, "parent", "ls /workspace")).toBe("");
    await gone("child-1");
    expect(husks()).toBe(2);
    for (const child of ["child-2", "grandchild"]) {
      expect(await digest(host, child)).toBe(sum);
      await script(host, child, "echo more >> /workspace/a");
      expect(await completeTurn(host, child)).toMatchObject({ turnNumber: 2 });
    }
    await gone("child-2");
    await gone("grandchild");
    await poll("the husks to be gone", () => (husks() === 0 ? true : undefined));
    expect((await health(host)).errors ?? []).toEqual([]);
    await expectNothingLeft(host);
  }, 180_000);

  it("that are destroyed before their parent leave it as it was, and its snapshots free", async () => {
    await createSession(host, "old");
    await script(host, "old", "echo one > /workspace/a");
    const { snapshotId } = await completeTurn(host, "old");
    await script(host, "old", "echo two > /workspace/a");
    await completeTurn(host, "old");
    await fork(host, "old", { snapshotId, count: 2, childSessionIds: ["young-1", "young-2"] });
    const remove = { sessionId: "old", snapshotId };
    await expect(host.call("SnapshotService/DeleteSnapshot", remove)).rejects.toMatchObject({
      reason: "SNAPSHOT_IN_USE",
    });
    await gone("young-1");
    await expect(host.call("SnapshotService/DeleteSnapshot", remove)).rejects.toMatchObject({
      reason: "SNAPSHOT_IN_USE",
    });
    await gone("young-2");
    await host.call("SnapshotService/DeleteSnapshot", remove);
    expect(await script(host, "old", "cat /workspace/a")).toBe("two\n");
    expect(await listSnapshots(host, "old")).toMatchObject([{ turnNumber: 2, head: true }]);
    expect(husks()).toBe(0);
    await expectNothingLeft(host);
  }, 120_000);

  it(`hold what they stand on against retention, random rollbacks and destroys, and no longer (seed ${SEED})`, async () => {
    const random = createRandom();
    await createSession(host, "root");
    const living = new Map<string, string>();
    for (let round = 1; round <= (IS_FULL ? 60 : 5); round += 1) {
      await script(host, "root", `echo ${round} > /workspace/a`);
      const { snapshotId } = await completeTurn(host, "root");
      if (random() < 0.5) {
        const child = `fork-${round}`;
        await fork(host, "root", { snapshotId, count: 1, childSessionIds: [child] });
        living.set(child, `${round}\n`);
      }
      if (random() < 0.3) {
        const target = pick(random, await listSnapshots(host, "root"));
        if (target !== undefined) await rollBack(host, "root", target.snapshotId);
      }
      const victim = pick(random, [...living.keys()]);
      if (victim !== undefined && random() < 0.4) {
        living.delete(victim);
        await destroy(host, victim);
      }
    }
    await expectConsistent(host);
    for (const [child, content] of living) expect(await script(host, child, "cat /workspace/a")).toBe(content);
    for (const child of living.keys()) await gone(child);
    // Nothing stands on the old snapshots any more: the next turns bring the session within its limit.
    const settled = async (): Promise<true | undefined> => {
      await script(host, "root", "date +%N > /workspace/a");
      await completeTurn(host, "root");
      return (await listSnapshots(host, "root")).length <= MAX_SNAPSHOTS + 1 ? true : undefined;
    };
    await poll("retention to catch up", settled, 60_000);
    expect(husks()).toBe(0);
    await expectConsistent(host);
    await expectNothingLeft(host);
  }, 600_000);
});
