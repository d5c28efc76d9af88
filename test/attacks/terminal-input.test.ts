import { createHash, randomUUID } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import type { Client } from "@connectrpc/connect";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { ProcessService } from "@turnbox/protocol/turnbox/host/v1/process_pb";
import { startHost, type TestHost } from "../support/host.ts";
import { hostClient } from "../support/host-client.ts";
import { createSession, destroy, health, script } from "../support/host-calls.ts";
import { expectNothingLeft } from "../support/invariants.ts";
import { poll } from "../support/process.ts";
import { createRandom, IS_FULL, SEED, SLACK } from "../support/random.ts";

const MiB = 1024 * 1024;
/** As the terminal that held up a whole host was given. */
const EXPLOIT_BYTES = 734_003;
const ROUNDS = IS_FULL ? 30 : 2;
const WRITERS = 10;
const HEALTH_P99_MS = 200;
const SAMPLES = 100;
/** What the service may grow by: ten requests of 1 MiB in flight, some times over before they are collected. */
const GROWTH_BYTES = 192 * MiB;
/** The system's buffers of a terminal hold some 64 KiB; nothing else may hold input that was accepted. */
const MOST_ACCEPTED_BYTES = 256 * 1024;

let host: TestHost;
let pid: number;
let processes: Client<typeof ProcessService>;
beforeAll(async () => {
  host = await startHost();
  pid = host.pid;
  processes = hostClient(host, ProcessService);
  await createSession(host, "s");
  await createSession(host, "neighbour");
}, 120_000);
afterAll(async () => {
  for (const sessionId of ["s", "neighbour"]) await destroy(host, sessionId);
  await expectNothingLeft(host);
  await host[Symbol.asyncDispose]();
}, 120_000);
afterEach(async () => {
  expect(await script(host, "neighbour", "echo well")).toBe("well\n");
  expect(host.pid).toBe(pid);
  process.kill(pid, 0);
});

interface SeenProcess {
  readonly processId: string;
  readonly state: string;
  readonly exitReason?: string;
  readonly inputBytes?: string;
  readonly outputBytes?: string;
}

async function launch(cmd: string): Promise<string> {
  const terminal = { columns: 80, rows: 24 };
  const program = { binary: "/bin/bash", args: ["-c", cmd], terminal, idempotencyKey: randomUUID() };
  const answer = await host.call("ProcessService/LaunchProcess", { sessionId: "s", ...program });
  return (answer["process"] as SeenProcess).processId;
}

const status = async (processId: string): Promise<SeenProcess> =>
  (await host.call("ProcessService/GetProcessStatus", { sessionId: "s", processId }))["process"] as SeenProcess;

const type = async (processId: string, offset: number, data: Buffer): Promise<number> =>
  Number((await processes.writeInput({ sessionId: "s", processId, offset: BigInt(offset), data })).acceptedBytes);

/** Waits until the program has its terminal in raw mode. */
const isShown = async (processId: string): Promise<void> => {
  await poll("the program to run", async () => (Number((await status(processId)).outputBytes) > 0 ? true : undefined));
};

const residentBytes = (): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;

/** The processes that hold the host's terminals. */
const helpers = (): readonly number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((one) => {
      try {
        const parent = /^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${one}/status`, "utf8"))?.[1];
        return Number(parent) === pid && readFileSync(`/proc/${one}/cmdline`, "utf8").includes("terminal-helper");
      } catch {
        return false;
      }
    });

/** How long health takes while the work is done: the 99th of 100, and the most memory that was seen. */
async function whileWatched(
  work: () => Promise<unknown>,
): Promise<{ readonly p99Ms: number; readonly mostBytes: number }> {
  const tookMs: number[] = [];
  const watch = { over: false };
  let mostBytes = residentBytes();
  const watching = (async () => {
    while (!watch.over || tookMs.length < SAMPLES) {
      const begunMs = performance.now();
      const response = await fetch(`${host.url}/grpc.health.v1.Health/Check`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: "{}",
        signal: AbortSignal.timeout(20_000),
      });
      expect(response.ok).toBe(true);
      await response.text();
      tookMs.push(performance.now() - begunMs);
      mostBytes = Math.max(mostBytes, residentBytes());
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  })();
  try {
    await work();
  } finally {
    watch.over = true;
    await watching;
  }
  const sorted = tookMs.toSorted((a, b) => a - b);
  return { p99Ms: sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0, mostBytes };
}

const kill = async (processId: string): Promise<void> => {
  await host.call("ProcessService/KillProcess", { sessionId: "s", processId, signal: 9 });
};

const DEAF = "stty raw -echo; echo ready; sleep 1000";

describe("input for a terminal whose program does not read, on a real host", () => {
  let random: () => number;
  beforeEach(() => {
    random = createRandom(SEED);
  });
  const bytes = (length: number): Buffer => Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)));

  it("F12: one write of 734,003 bytes is accepted as far as the terminal takes it, and the host goes on", async () => {
    const processId = await launch(DEAF);
    await isShown(processId);
    const beforeBytes = residentBytes();
    let accepted = 0;
    const seen = await whileWatched(async () => {
      accepted = await type(processId, 0, Buffer.alloc(EXPLOIT_BYTES, 0x61));
    });
    expect(accepted).toBeGreaterThan(0);
    expect(accepted).toBeLessThan(MOST_ACCEPTED_BYTES);
    expect((await status(processId)).inputBytes).toBe(String(accepted));
    expect(seen.p99Ms).toBeLessThan(HEALTH_P99_MS * SLACK);
    expect(seen.mostBytes - beforeBytes).toBeLessThan(GROWTH_BYTES);
    await kill(processId);
    expect(await status(processId)).toMatchObject({ state: "PROCESS_STATE_EXITED", inputBytes: String(accepted) });
  }, 60_000);

  it(`F12: ${ROUNDS} times ten writes of 1 MiB at once stay within bounds, and all of it goes with a kill`, async () => {
    const others = helpers().length;
    const processId = await launch(DEAF);
    await isShown(processId);
    const beforeBytes = residentBytes();
    const big = Buffer.alloc(MiB, 0x62);
    let accepted = 0;
    const seen = await whileWatched(async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const counts = await Promise.all(Array.from({ length: WRITERS }, () => type(processId, accepted, big)));
        accepted = Math.max(...counts);
      }
    });
    process.stdout.write(
      `health p99 ${seen.p99Ms.toFixed(0)} ms, grown by ${((seen.mostBytes - beforeBytes) / MiB).toFixed(0)} MiB\n`,
    );
    expect(accepted).toBeLessThan(MOST_ACCEPTED_BYTES);
    expect(seen.p99Ms).toBeLessThan(HEALTH_P99_MS * SLACK);
    expect(seen.mostBytes - beforeBytes).toBeLessThan(GROWTH_BYTES);
    await host.call("ProcessService/ResizeTerminal", { sessionId: "s", processId, size: { columns: 132, rows: 50 } });
    expect(await script(host, "s", "ps | grep -c '[s]leep 1000' || true")).toBe("1\n");
    await kill(processId);
    expect(await script(host, "s", "ps | grep -c '[s]leep 1000' || true")).toBe("0\n");
    await poll("the helper to be gone", () => (helpers().length === others ? true : undefined));
  }, 120_000);

  it("F12: what was accepted is what the program gets, each byte once, when it reads at last", async () => {
    const total = 300_000;
    const data = bytes(total);
    const processId = await launch(
      `stty raw -echo; echo ready; until [ -e /workspace/go ]; do sleep 0.05; done; head -c ${total} > /workspace/got`,
    );
    await isShown(processId);
    let accepted = await type(processId, 0, data);
    expect(accepted).toBeLessThan(total);
    // The same bytes again, as a client does that lost the answer.
    expect(await type(processId, 0, data)).toBeGreaterThanOrEqual(accepted);
    await script(host, "s", "touch /workspace/go");
    await poll("all of it to be accepted", async () => {
      accepted = await type(processId, accepted, data.subarray(accepted));
      return accepted === total ? true : undefined;
    });
    await poll("the program to end", async () =>
      (await status(processId)).state === "PROCESS_STATE_EXITED" ? true : undefined,
    );
    const sum = createHash("sha256").update(data).digest("hex");
    expect(await script(host, "s", "sha256sum < /workspace/got")).toContain(sum);
  }, 60_000);

  it("F12: Ctrl-C by KillProcess reaches the foreground of a terminal that takes no more input", async () => {
    const processId = await launch("stty raw -echo; trap 'exit 5' INT; echo ready; while :; do sleep 0.1; done");
    await isShown(processId);
    await type(processId, 0, Buffer.alloc(EXPLOIT_BYTES, 0x61));
    await host.call("ProcessService/KillProcess", { sessionId: "s", processId, signal: 2 });
    const ended = await poll("the end", async () => {
      const seen = await status(processId);
      return seen.state === "PROCESS_STATE_EXITED" ? seen : undefined;
    });
    expect(ended).toMatchObject({ exitCode: 5, exitReason: "PROCESS_EXIT_REASON_EXITED" });
  }, 60_000);
});

describe("the process that holds a terminal", () => {
  it.each(["kill -9", "garbage"] as const)(
    "costs that terminal alone by %s",
    async (how) => {
      const other = await launch("echo ready; cat");
      await isShown(other);
      const others = helpers();
      const processId = await launch(DEAF);
      await isShown(processId);
      const victims = helpers().filter((one) => !others.includes(one));
      expect(victims).toHaveLength(1);
      if (how === "kill -9") process.kill(victims[0]!, "SIGKILL");
      // Its line to the service is its standard error.
      else writeFileSync(`/proc/${victims[0]!}/fd/2`, Buffer.alloc(4096, 0xff));
      const ended = await poll("the end", async () => {
        const seen = await status(processId);
        return seen.state === "PROCESS_STATE_EXITED" ? seen : undefined;
      });
      expect(ended).toMatchObject({ exitReason: "PROCESS_EXIT_REASON_TERMINAL_CLOSED" });
      expect(await script(host, "s", "ps | grep -c '[s]leep 1000' || true")).toBe("0\n");
      expect(await type(other, 0, Buffer.from("still here\n"))).toBe(11);
      expect((await status(other)).state).toBe("PROCESS_STATE_RUNNING");
      expect(await health(host)).toMatchObject({ status: "HEALTH_STATUS_HEALTHY" });
      await kill(other);
      await poll("the helpers to be gone", () => (helpers().length < others.length ? true : undefined));
    },
    60_000,
  );
});
