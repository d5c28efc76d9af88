import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Sandbox } from "@turnbox/client";
import type { BareRunsc } from "../floor/bare-runsc.ts";
import type { Bench } from "../run/bench.ts";
import type { Measured, Row } from "../row.ts";
import { interleave, timed } from "../run/sample.ts";
import { median, summarize, type Summary } from "../statistics.ts";

const BURST = 20;
const SETTLE_MS = 1200;

/** What a row has made, and how long the create itself took of each sample. */
class Creates {
  readonly #bench: Bench;
  readonly #createMs: number[] = [];
  readonly #commandMs: number[] = [];

  constructor(bench: Bench) {
    this.#bench = bench;
  }

  /** Create to first command done, so many at once; they are destroyed outside of the time. */
  async burst(count: number): Promise<readonly number[]> {
    const made: Sandbox[] = [];
    const times = await Promise.all(Array.from({ length: count }, () => this.#one(made)));
    await Promise.all(made.map((sandbox) => sandbox[Symbol.asyncDispose]()));
    return times;
  }

  /** Which of the two the time went to. */
  note(): string {
    const [create, first] = [summarize(this.#createMs), summarize(this.#commandMs)];
    const show = ({ p50, p99 }: Summary): string => `p50 ${p50.toFixed(0)} and p99 ${p99.toFixed(0)} ms`;
    return `create: ${show(create)}; first command: ${show(first)}`;
  }

  async #one(made: Sandbox[]): Promise<number> {
    const startedMs = performance.now();
    const sandbox = await this.#bench.server().turnbox.create();
    made.push(sandbox);
    const createMs = performance.now() - startedMs;
    const commandMs = await timed(() => sandbox.bash("echo hi"));
    this.#createMs.push(createMs);
    this.#commandMs.push(commandMs);
    return createMs + commandMs;
  }
}

async function runAndExec(runsc: BareRunsc, id: string): Promise<number> {
  return await timed(async () => {
    await runsc.run(id);
    await runsc.exec(id, "echo hi");
  });
}

async function burstOfBare(runsc: BareRunsc): Promise<readonly number[]> {
  const ids = await Promise.all(Array.from({ length: BURST }, () => runsc.bundle()));
  const times = await Promise.all(ids.map((id) => runAndExec(runsc, id)));
  for (const id of ids) await runsc.end(id);
  return times;
}

/** Bursts of both in turns; the pool is as `ready` leaves it before each. */
async function burst(bench: Bench, ready: () => Promise<void>): Promise<Measured> {
  const runsc = await bench.runsc();
  const creates = new Creates(bench);
  const ours: number[] = [];
  const floor: number[] = [];
  for (let round = bench.count(5, 1); round > 0; round -= 1) {
    bench.signal.throwIfAborted();
    await ready();
    ours.push(...(await creates.burst(BURST)));
    await ready();
    floor.push(...(await burstOfBare(runsc)));
  }
  return { ours, floor, notes: [creates.note()] };
}

async function sequential(bench: Bench, ready: () => Promise<void>, count: number): Promise<Measured> {
  const runsc = await bench.runsc();
  const creates = new Creates(bench);
  const ours = async (): Promise<number> => {
    await ready();
    const [ms = 0] = await creates.burst(1);
    return ms;
  };
  const floor = async (): Promise<number> => {
    const id = await runsc.bundle();
    await ready();
    const ms = await runAndExec(runsc, id);
    await runsc.end(id);
    return ms;
  };
  const measured = await interleave({ ours, floor }, { count, signal: bench.signal });
  return { ...measured, notes: [creates.note()] };
}

/** There is no pool; what was destroyed before has its time to go, and a sandbox to be made that stands by. */
const settled = (): Promise<void> => delay(SETTLE_MS);

async function hitsOf({ server }: Bench): Promise<string> {
  const { warmHits, warmMisses } = await server().host.host.getStats({});
  return `the pool served ${warmHits} creates and had none ready for ${warmMisses}, since the server's start`;
}

const warm: Row = {
  id: "create.warm",
  title: "create to first command done, warm pool",
  unit: "ms",
  server: "warm",
  floor: "runsc run + runsc exec",
  bar: { kind: "at_most_ratio", value: 0.25 },
  measure: async (bench) => {
    const measured = await sequential(bench, () => bench.server().poolIsFull(), bench.count(100, 5));
    return { ...measured, notes: [...(measured.notes ?? []), await hitsOf(bench)] };
  },
};

const cold: Row = {
  id: "create.cold",
  title: "create to first command done, no pool",
  unit: "ms",
  server: "cold",
  floor: "runsc run + runsc exec",
  measure: (bench) => sequential(bench, settled, bench.count(100, 5)),
};

const burstFull: Row = {
  id: "create.burst-full",
  title: "create to first command done, 20 at once, full pool",
  unit: "ms",
  server: "warm",
  floor: "20 x (runsc run + runsc exec) at once",
  by: "p99",
  measure: async (bench) => {
    const measured = await burst(bench, () => bench.server().poolIsFull());
    return { ...measured, notes: [...(measured.notes ?? []), await hitsOf(bench)] };
  },
};

const burstEmpty: Row = {
  id: "create.burst-empty",
  title: "create to first command done, 20 at once, empty pool",
  unit: "ms",
  server: "cold",
  floor: "20 x (runsc run + runsc exec) at once",
  by: "p99",
  bar: { kind: "at_most_ratio", value: 1.5 },
  measure: (bench) => burst(bench, settled),
};

const overhead: Row = {
  id: "create.orchestrator",
  title: "create through the orchestrator, warm pool",
  unit: "ms",
  server: "warm",
  floor: "CreateSession on the host itself",
  bar: { kind: "at_most_added", value: 6 },
  measure: async (bench) => {
    const { turnbox, host } = bench.server();
    const ours = async (): Promise<number> => {
      await bench.server().poolIsFull();
      const startedMs = performance.now();
      await using _sandbox = await turnbox.create();
      return performance.now() - startedMs;
    };
    const floor = async (): Promise<number> => {
      await bench.server().poolIsFull();
      const sessionId = `bench-${randomUUID()}`;
      const ms = await timed(() => host.sessions.createSession({ sessionId, idempotencyKey: randomUUID() }));
      await host.sessions.destroySession({ sessionId, idempotencyKey: randomUUID() });
      return ms;
    };
    const measured = await interleave({ ours, floor }, { count: bench.count(50, 5), signal: bench.signal });
    const addedMs = median(measured.ours) - median(measured.floor ?? []);
    return { ...measured, notes: [`the orchestrator adds ${addedMs.toFixed(1)} ms to a create`] };
  },
};

export const CREATE_ROWS = [cold, burstEmpty, warm, burstFull, overhead] as const;
