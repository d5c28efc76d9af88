import { randomUUID } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { OnDisconnect, ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { type Json, Refusal, startHost, type TestHost } from "../support/host.ts";
import { createSession, destroy, health, listSessions, listSnapshots, script } from "../support/host-calls.ts";
import { expectConsistent, expectNothingLeft } from "../support/invariants.ts";
import { poll, run } from "../support/process.ts";
import { IS_FULL, SLACK } from "../support/random.ts";
import { findPool } from "../support/residue.ts";
import { hostClient } from "../support/host-client.ts";

const MiB = 1024 * 1024;
const FLOOD_MIB = IS_FULL ? 8192 : 32;
const MAX_SERVICE_BYTES = 512 * MiB;
const FAILING_CALLS = IS_FULL ? 100_000 : 500;
/** What the log may grow by, however many calls fail. */
const MAX_LOG_BYTES = 1 * MiB;
const ORPHANS = IS_FULL ? 20_000 : 500;
const SNAPSHOTS = IS_FULL ? 10_000 : 60;
const MAX_SNAPSHOTS = 20;
const STORM = IS_FULL ? 1000 : 20;

let host: TestHost;
beforeAll(async () => {
  host = await startHost({ env: { TURNBOX_MAX_SNAPSHOTS_PER_SESSION: String(MAX_SNAPSHOTS) } });
  await createSession(host, "a");
}, 120_000);
afterAll(async () => {
  await host[Symbol.asyncDispose]();
}, 120_000);

/** Memory of the service process. */
function serviceBytes(): number {
  const [, kib] = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${host.pid}/status`, "utf8")) ?? [];
  return Number(kib) * 1024;
}

interface Counted {
  readonly content?: string;
  readonly exitCode?: number;
  readonly stdout: { readonly totalBytes: string; readonly truncatedBytes?: string };
}

async function counted(cmd: string): Promise<Counted> {
  const call = { sessionId: "a", toolCallId: randomUUID(), toolName: "bash", params: { cmd } };
  return (await host.call("ToolService/ExecuteTool", call)) as unknown as Counted;
}

describe("a sandbox that never stops, on a real host", () => {
  it(
    `attack 34: ${FLOOD_MIB} MiB of output, in one line too, is counted, cut and followed by the exit code`,
    async () => {
      const bytes = FLOOD_MIB * MiB;
      for (const filter of ["cat", "tr '\\000' x"]) {
        const ended = await counted(`head -c ${bytes} /dev/zero | ${filter}; exit 7`);
        const kept = Buffer.byteLength((ended.content ?? "").split("\n[")[0] ?? "");
        expect([filter, ended.exitCode, ended.stdout.totalBytes]).toEqual([filter, 7, String(bytes)]);
        expect(Number(ended.stdout.truncatedBytes)).toBe(bytes - kept);
        expect(ended.content).toContain(`${ended.stdout.truncatedBytes ?? ""} more bytes of stdout are not shown`);
        expect(serviceBytes()).toBeLessThan(MAX_SERVICE_BYTES);
      }
      expect(await counted("echo whole")).toMatchObject({
        content: "whole\n",
        exitCode: 0,
        stdout: { totalBytes: "6" },
      });
    },
    IS_FULL ? 1_200_000 : 90_000,
  );

  it("attack 34: bytes that are no text, and sequences for terminals, arrive unchanged and harm no other caller", async () => {
    const odd = await counted("printf 'a\\377\\376b\\300\\200\\n'; printf '\\033]0;title\\007\\033[2J\\n'; exit 3");
    expect(odd).toMatchObject({ exitCode: 3, stdout: { totalBytes: "22" } });
    expect(odd.content).toMatch(/^a\uFFFD+b\uFFFD+\n/);
    expect(odd.content).toContain("\u001b]0;title\u0007");
    const log = readFileSync(join(host.dataDirectory, "host.log"), "utf8");
    expect(log).not.toContain("\u001b");
    for (const line of log.trim().split("\n")) expect(() => JSON.parse(line) as unknown).not.toThrow();
  }, 60_000);

  it(
    `attack 35: ${FAILING_CALLS} calls that fail leave a log that is bounded`,
    async () => {
      const path = join(host.dataDirectory, "host.log");
      const before = statSync(path).size;
      const failures: readonly (readonly [string, Json])[] = [
        ["ToolService/ExecuteTool", { sessionId: "a", toolCallId: "x", toolName: "no_such_tool" }],
        ["ToolService/ExecuteTool", { sessionId: "nobody", toolCallId: "x", toolName: "bash", params: { cmd: "x" } }],
        ["FileService/Stat", { sessionId: "a", path: "/no/such/file" }],
        ["SnapshotService/RollbackSession", { sessionId: "a", snapshotId: "none" }],
        ["ProcessService/KillProcess", { sessionId: "a", processId: "none" }],
      ];
      let failed = 0;
      const lane = async (first: number): Promise<void> => {
        for (let index = first; index < FAILING_CALLS; index += 8) {
          const [method, body] = failures[index % failures.length] ?? ["", {}];
          await host.call(method, body).catch((thrown: unknown) => {
            if (!(thrown instanceof Refusal)) throw thrown;
            failed += 1;
          });
        }
      };
      await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map(lane));
      expect(failed).toBe(FAILING_CALLS);
      expect(statSync(path).size - before).toBeLessThan(MAX_LOG_BYTES);
      expect(await script(host, "a", "echo well")).toBe("well\n");
    },
    IS_FULL ? 1_200_000 : 90_000,
  );

  it(
    `attack 36: ${ORPHANS} children without a parent are reaped`,
    async () => {
      await script(host, "a", `i=0; while [ $i -lt ${ORPHANS} ]; do (: &); i=$((i+1)); done`);
      const zombies = "cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '; true";
      await poll("no zombie to be left", async () => ((await script(host, "a", zombies)) === "0\n" ? true : undefined));
      // One that lives is seen.
      expect(await script(host, "a", "sleep 5 & [ -d /proc/$! ] && echo seen")).toBe("seen\n");
    },
    IS_FULL ? 1_200_000 : 60_000,
  );

  it(
    `attack 38: of ${SNAPSHOTS} snapshots the newest ${MAX_SNAPSHOTS} stay, and listing them takes no longer`,
    async () => {
      await createSession(host, "sealed");
      for (let count = 1; count <= SNAPSHOTS; count += 1)
        await host.call("SnapshotService/CreateSnapshot", { sessionId: "sealed", name: `s${count}` });
      const settled = async () => ((await listSnapshots(host, "sealed")).length <= MAX_SNAPSHOTS ? true : undefined);
      await poll("old snapshots to go", settled);
      const kept = await listSnapshots(host, "sealed");
      expect(kept.map(({ name }) => name)).toEqual(
        Array.from({ length: MAX_SNAPSHOTS }, (_, index) => `s${SNAPSHOTS - MAX_SNAPSHOTS + 1 + index}`),
      );
      await expectConsistent(host);
      const begunMs = performance.now();
      await run("zfs", [
        "list",
        "-H",
        "-r",
        "-t",
        "snapshot",
        "-o",
        "name",
        `${(await findPool(host.home)) ?? ""}/sessions`,
      ]);
      expect(performance.now() - begunMs).toBeLessThan(1000 * SLACK);
      await destroy(host, "sealed");
    },
    IS_FULL ? 3_600_000 : 120_000,
  );

  it("attack 40: a tool whose client is gone ends by its policy, or at its deadline", async () => {
    const sleeping = async (seconds: number): Promise<boolean> =>
      (await script(host, "a", "ps")).includes(`sleep ${seconds}`);
    const start = async (seconds: number, onDisconnect: OnDisconnect, timeoutSeconds: number): Promise<void> => {
      const gone = new AbortController();
      const limits = { timeout: { seconds: BigInt(timeoutSeconds), nanos: 0 } };
      const params = { cmd: `sleep ${seconds}` };
      const call = { sessionId: "a", toolCallId: randomUUID(), toolName: "bash", params, onDisconnect, limits };
      const asked = hostClient(host, ToolService).executeTool(call, { signal: gone.signal });
      asked.catch(() => undefined);
      await poll("the tool to run", async () => ((await sleeping(seconds)) ? true : undefined));
      gone.abort();
      await expect(asked).rejects.toThrow();
    };
    const ended = (seconds: number) => async () => ((await sleeping(seconds)) ? undefined : true);
    await start(3001, OnDisconnect.KILL, 600);
    await poll("the tool of a reader that is gone to end", ended(3001), 2000 * SLACK);
    await start(3002, OnDisconnect.CONTINUE, 6);
    expect(await sleeping(3002)).toBe(true);
    await poll("the tool to end at its deadline", ended(3002), 6000 + 3000 * SLACK);
  }, 60_000);

  it(
    `attack 39: a storm of ${STORM} creates and destroys is taken or refused, and leaves nothing`,
    async () => {
      await destroy(host, "a");
      const outcomes = new Map<string, number>();
      const one = async (index: number): Promise<void> => {
        await new Promise((resolve) => setTimeout(resolve, index * 20));
        const sessionId = `storm-${index}`;
        const outcome = await createSession(host, sessionId).then(
          () => "made",
          (thrown: unknown) => (thrown instanceof Refusal ? thrown.reason : String(thrown)),
        );
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
        if (outcome === "made") await destroy(host, sessionId);
      };
      const storm = Promise.all(Array.from({ length: STORM }, (_, index) => one(index)));
      const begunMs = performance.now();
      await health(host);
      expect(performance.now() - begunMs).toBeLessThan(250 * SLACK);
      await storm;
      expect(outcomes.get("made") ?? 0).toBeGreaterThan(0);
      for (const outcome of outcomes.keys())
        expect(outcome).toMatch(/^(made|RESOURCE_EXHAUSTED|OVERLOADED|[A-Z_]*LIMIT[A-Z_]*)$/);
      expect(serviceBytes()).toBeLessThan(MAX_SERVICE_BYTES);
      await expectNothingLeft(host);
      expect(await listSessions(host)).toEqual([]);
    },
    IS_FULL ? 1_200_000 : 90_000,
  );
});
