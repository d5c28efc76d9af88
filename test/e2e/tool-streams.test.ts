import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { ExitReason, type ToolProgress, ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { type Json, startHost, type TestHost } from "../support/host.ts";
import { bash, createSession, script } from "../support/host-calls.ts";
import { expectNothingLeft } from "../support/invariants.ts";
import { poll } from "../support/process.ts";
import { SLACK } from "../support/random.ts";
import { hostClient } from "../support/host-client.ts";

const MiB = 1024 * 1024;
const READERS = 4;
/** Numbered blocks of numbered lines: a byte that is lost, doubled or out of order changes the digest. */
const BLOCKS = 100;
const LINES = 400_000;
const FLOOD = `for block in $(seq 1 ${BLOCKS}); do echo $block; cat /tmp/block; done`;

/** What the flood is made of. */
function* flood(): Generator<Buffer> {
  const block = Buffer.from(Array.from({ length: LINES }, (_, line) => `${line + 1}\n`).join(""));
  for (let number = 1; number <= BLOCKS; number += 1) {
    yield Buffer.from(`${number}\n`);
    yield block;
  }
}

function residentBytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1024;
}

describe("output of tools on a real host", () => {
  let host: TestHost;
  beforeAll(async () => {
    host = await startHost();
    await createSession(host, "s");
    await script(host, "s", `seq 1 ${LINES} > /tmp/block`);
  }, 180_000);
  afterAll(async () => {
    await host[Symbol.asyncDispose]();
  }, 120_000);

  const call = (toolCallId: string, cmd: string) => ({ sessionId: "s", toolCallId, toolName: "bash", params: { cmd } });

  it("arrives whole and in order, 256 MiB of it, also over a stream that breaks, in bounded memory (attack 34)", async () => {
    const tools = hostClient(host, ToolService);
    const before = residentBytes(host.pid);
    let peak = before;
    const watch = setInterval(() => (peak = Math.max(peak, residentBytes(host.pid))), 50);
    const hash = createHash("sha256");
    let seen = 0;
    let ends = 0;
    const take = ({ data, offset, droppedBytes }: ToolProgress): void => {
      expect([Number(offset), Number(droppedBytes)]).toEqual([seen, 0]);
      hash.update(data);
      seen += data.length;
    };
    const startedMs = performance.now();
    const leave = new AbortController();
    try {
      for await (const { event } of tools.executeToolStream({ call: call("flood", FLOOD) }, leave)) {
        if (event.case === "progress") take(event.value);
        if (seen > 32 * MiB) break;
      }
      leave.abort();
      const from = { sessionId: "s", toolCallId: "flood", stdoutOffset: BigInt(seen) };
      for await (const { event } of tools.attachToolCall(from)) {
        if (event.case === "progress") take(event.value);
        else if (event.value?.exitReason === ExitReason.EXITED) ends += 1;
      }
    } finally {
      clearInterval(watch);
    }
    const seconds = (performance.now() - startedMs) / 1000;
    const wanted = createHash("sha256");
    let total = 0;
    for (const part of flood()) {
      wanted.update(part);
      total += part.length;
    }
    process.stdout.write(
      `streamed ${Math.round(total / MiB)} MiB: ${Math.round(total / MiB / seconds)} MiB/s, the host grew by ${Math.round((peak - before) / MiB)} MiB\n`,
    );
    expect(total).toBeGreaterThan(256 * MiB);
    expect([seen, ends]).toEqual([total, 1]);
    expect(hash.digest("hex")).toBe(wanted.digest("hex"));
    expect(peak - before).toBeLessThan(512 * MiB);
  }, 180_000);

  it("does not fill the host when readers stall, and the tools of readers that vanish are killed (attack 52, M4)", async () => {
    const leave = new AbortController();
    const before = residentBytes(host.pid);
    const tools = Array.from({ length: READERS }, () => hostClient(host, ToolService));
    const stalled = tools.map(async (client, index) => {
      const request = { call: { ...call(`stall-${index}`, "cat /dev/zero"), onDisconnect: 2 } };
      const stream = client.executeToolStream(request, leave)[Symbol.asyncIterator]();
      await stream.next();
      return stream;
    });
    await Promise.all(stalled);
    const running = async (): Promise<number> =>
      Number((await script(host, "s", "ps | grep -c '[c]at /dev/zero' || true")).trim());
    expect(await running()).toBeGreaterThan(0);
    expect(residentBytes(host.pid) - before).toBeLessThan(512 * MiB);
    leave.abort();
    const leftMs = performance.now();
    const activeTools = async (): Promise<unknown> =>
      ((await host.call("SessionService/GetSession", { sessionId: "s" }))["session"] as Json)["activeTools"];
    await poll("the tools to be gone", async () => ((await activeTools()) === undefined ? true : undefined));
    const releasedMs = performance.now() - leftMs;
    process.stdout.write(`${READERS} stalled readers were let go after ${Math.round(releasedMs)} ms\n`);
    expect(releasedMs).toBeLessThan(1_000 * SLACK);
    expect(await running()).toBe(0);
  }, 60_000);

  it("ends with everything that the call has started when it is cancelled (attack 37, M10)", async () => {
    const tools = hostClient(host, ToolService);
    const cmd = "trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 4321' & sleep 4321";
    const running = tools.executeTool(call("cancel", cmd));
    const sleeping = async (): Promise<string> => await script(host, "s", "ps | grep -c '[s]leep 4321' || true");
    await poll("it to run", async () => ((await sleeping()).trim() === "0" ? undefined : true));
    expect((await tools.cancelToolCall({ sessionId: "s", toolCallId: "cancel" })).wasRunning).toBe(true);
    expect((await running).exitReason).toBe(ExitReason.KILLED);
    expect((await sleeping()).trim()).toBe("0");
    expect((await tools.cancelToolCall({ sessionId: "s", toolCallId: "cancel" })).wasRunning).toBe(false);
  }, 60_000);

  it("stays within the limits of its call: time, memory and what the result keeps", async () => {
    const tools = hostClient(host, ToolService);
    const slow = await tools.executeTool({ ...call("slow", "sleep 100"), limits: { timeout: durationFromMs(300) } });
    expect([slow.exitCode, slow.exitReason]).toEqual([124, ExitReason.TIMED_OUT]);
    const greedy = "x=$(head -c 40000000 /dev/zero | tr '\\0' x); echo ${#x}";
    expect((await bash(host, "s", greedy)).content).toBe("40000000\n");
    const bounded = await tools.executeTool({ ...call("greedy", greedy), limits: { memoryBytes: BigInt(48 * MiB) } });
    expect(bounded.isError).toBe(true);
    expect(bounded.content).toMatch(/allocate|memory/);
    const long = await tools.executeTool({ ...call("long", "seq 1000"), limits: { outputBytes: 10n } });
    expect(long.stdout).toMatchObject({ totalBytes: 3893n, truncatedBytes: 3883n });
    await expectNothingLeft(host);
  }, 120_000);
});
