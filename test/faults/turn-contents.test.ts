import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { startHost, type TestHost } from "../support/host.ts";
import {
  bash,
  completeTurn,
  createSession,
  destroy,
  fork,
  listSnapshots,
  rollBack,
  script,
} from "../support/host-calls.ts";
import { expectNothingLeft } from "../support/invariants.ts";
import { MMAP_WRITE } from "../support/mmap-write.ts";
import { IS_FULL } from "../support/random.ts";

const ROUNDS = IS_FULL ? 50 : 2;

let host: TestHost;
beforeAll(async () => {
  host = await startHost();
}, 120_000);
afterAll(async () => {
  await host[Symbol.asyncDispose]();
}, 120_000);

/** What a script shows of the files that a snapshot holds, seen through a fork of it. */
async function inSnapshot(sessionId: string, snapshotId: string, cmd: string): Promise<string> {
  const { children } = await fork(host, sessionId, { snapshotId });
  const child = children[0]!.sessionId;
  const shown = await script(host, child, cmd);
  await destroy(host, child);
  return shown;
}

describe("a turn", () => {
  it("is sealed when something was only added, which `used` of the last snapshot does not show", async () => {
    const sessionId = "added";
    await createSession(host, sessionId);
    await script(host, sessionId, "cd /workspace && echo first > first && mkdir d");
    let last = await completeTurn(host, sessionId);
    // Each of these takes no block from the snapshot before it, or none that is known before the next sync.
    const changes = [
      "echo x > new",
      "chmod 600 first",
      "touch -d @1000000000 first",
      "ln first hard",
      "mkdir empty",
      "rmdir d",
    ];
    for (const change of changes) {
      await script(host, sessionId, `cd /workspace && ${change}`);
      const turn = await completeTurn(host, sessionId);
      expect([change, turn.unchanged ?? false, turn.turnNumber]).toEqual([change, false, last.turnNumber + 1]);
      last = turn;
    }
    const seen = await inSnapshot(sessionId, last.snapshotId, "cd /workspace && ls && stat -c '%a %Y %h' first");
    expect(seen).toBe("empty\nfirst\nhard\nnew\n600 1000000000 2\n");
    await destroy(host, sessionId);
  }, 60_000);

  it("is sealed with the bytes that were written just before it, over the same bytes of a file", async () => {
    const sessionId = "overwritten";
    await createSession(host, sessionId);
    await script(host, sessionId, "head -c 1048576 /dev/zero > /workspace/file");
    await completeTurn(host, sessionId);
    const sealed = new Map<string, string>();
    for (let round = 1; round <= ROUNDS; round += 1) {
      const word = `round${String(round).padStart(3, "0")}`;
      await script(host, sessionId, `printf ${word} | dd of=/workspace/file bs=1 seek=70000 conv=notrunc 2>/dev/null`);
      const turn = await completeTurn(host, sessionId);
      expect(turn.unchanged ?? false).toBe(false);
      sealed.set(turn.snapshotId, word);
    }
    expect(sealed.size).toBe(ROUNDS);
    for (const [snapshotId, word] of [...sealed].slice(-3)) {
      const cmd = "dd if=/workspace/file bs=1 skip=70000 count=8 2>/dev/null";
      expect(await inSnapshot(sessionId, snapshotId, cmd)).toBe(word);
    }
    await destroy(host, sessionId);
  }, 300_000);

  it("is sealed when the only change is a write through mapped memory that was never synced", async () => {
    const sessionId = "mapped";
    await createSession(host, sessionId);
    const install = "cat > /mmap-write && chmod +x /mmap-write";
    expect(await bash(host, sessionId, install, { stdin: MMAP_WRITE.toString("base64") })).toMatchObject({
      exitCode: 0,
    });
    for (let round = 1; round <= Math.min(ROUNDS, 10); round += 1) {
      await script(host, sessionId, `head -c 4096 /dev/zero > /workspace/f${round}`);
      await completeTurn(host, sessionId);
      await script(host, sessionId, `/mmap-write /workspace/f${round}`);
      const turn = await completeTurn(host, sessionId);
      expect(turn.unchanged ?? false).toBe(false);
      expect(await inSnapshot(sessionId, turn.snapshotId, `head -c 6 /workspace/f${round}`)).toBe("mapped");
    }
    await destroy(host, sessionId);
  }, 120_000);

  it("that only read is the last one, unchanged, and uses no number and no snapshot", async () => {
    const sessionId = "read";
    await createSession(host, sessionId);
    await script(host, sessionId, "cd /workspace && mkdir d && echo a > d/a && echo b > b");
    const sealed = await completeTurn(host, sessionId, "first");
    for (const [round, cmd] of ["cat b d/a", "ls -laR /", "find / -xdev -type f | wc -l", "true"].entries()) {
      expect(await bash(host, sessionId, `cd /workspace && ${cmd}`)).toMatchObject({ exitCode: 0 });
      const turn = await completeTurn(host, sessionId, `read ${round}`);
      expect([cmd, turn.unchanged, turn.snapshotId, turn.turnNumber]).toEqual([cmd, true, sealed.snapshotId, 1]);
    }
    expect(await listSnapshots(host, sessionId)).toHaveLength(1);
    // The key of an unchanged turn keeps its answer also after something was written.
    await script(host, sessionId, "echo c > /workspace/b");
    expect(await completeTurn(host, sessionId, "read 0")).toMatchObject({ unchanged: true, turnNumber: 1 });
    const next = await completeTurn(host, sessionId, "next");
    expect([next.unchanged ?? false, next.turnNumber]).toEqual([false, 2]);
    expect(await inSnapshot(sessionId, sealed.snapshotId, "cat /workspace/b")).toBe("b\n");
    expect(await inSnapshot(sessionId, next.snapshotId, "cat /workspace/b")).toBe("c\n");
    await destroy(host, sessionId);
  }, 120_000);

  it("that only read is unchanged after a pause, a crash of the host and a rollback too", async () => {
    const sessionId = "quiet";
    await createSession(host, sessionId);
    await script(host, sessionId, "echo one > /workspace/a");
    const one = await completeTurn(host, sessionId);
    await host.call("SessionService/PauseSession", { sessionId });
    await host.call("SessionService/ResumeSession", { sessionId });
    expect(await completeTurn(host, sessionId)).toMatchObject({ unchanged: true, snapshotId: one.snapshotId });
    await host.kill();
    await host.start();
    expect(await script(host, sessionId, "cat /workspace/a")).toBe("one\n");
    expect(await completeTurn(host, sessionId)).toMatchObject({ unchanged: true, snapshotId: one.snapshotId });
    await script(host, sessionId, "echo two > /workspace/a");
    expect(await completeTurn(host, sessionId)).toMatchObject({ turnNumber: 2 });
    await rollBack(host, sessionId, one.snapshotId);
    expect(await script(host, sessionId, "cat /workspace/a")).toBe("one\n");
    expect(await completeTurn(host, sessionId)).toMatchObject({ unchanged: true, snapshotId: one.snapshotId });
    await expectNothingLeft(host);
  }, 120_000);
});
