import { setTimeout as delay } from "node:timers/promises";
import { BareRunsc } from "../floor/bare-runsc.ts";
import { BareZfs } from "../floor/bare-zfs.ts";
import { type Row, type ServerKind, Skipped } from "../row.ts";
import { BenchServer } from "../server/bench-server.ts";
import type { Bench } from "./bench.ts";
import { type RowResult, toFailed, toResult, toSkipped } from "./row-result.ts";

export interface RunOptions {
  readonly size: "full" | "quick";
  readonly signal: AbortSignal;
  readonly print: (line: string) => void;
  /** After each row. */
  readonly onResult: (result: RowResult) => void;
}

/** What an earlier row has left to the background has its time. */
const SETTLE_MS = 3000;

const ORDER: readonly ServerKind[] = ["none", "cold", "warm"];

/** Measures the rows, those of one kind of server together; only one server is there at a time. */
export async function runRows(rows: readonly Row[], options: RunOptions): Promise<readonly RowResult[]> {
  const results: RowResult[] = [];
  for (const kind of ORDER) {
    const group = rows.filter(({ server }) => server === kind);
    if (group.length === 0 || isCutOff(options.signal)) continue;
    await using stage = await openStage(kind, options);
    for (const row of group) {
      if (isCutOff(options.signal)) break;
      options.print(`measuring ${row.id}: ${row.title}`);
      await delay(stage.bench.count(SETTLE_MS, 0));
      const result = await measure(row, stage.bench);
      if (isCutOff(options.signal)) break;
      results.push(result);
      options.onResult(result);
    }
  }
  return results;
}

/** Asked anew: it changes while a row is measured. */
const isCutOff = (signal: AbortSignal): boolean => signal.aborted;

async function measure(row: Row, bench: Bench): Promise<RowResult> {
  try {
    return toResult(row, await row.measure(bench));
  } catch (thrown) {
    return thrown instanceof Skipped ? toSkipped(row, thrown.message) : toFailed(row, thrown);
  }
}

interface Stage extends AsyncDisposable {
  readonly bench: Bench;
}

/** A server with the bare tools beside it, each made when the first row asks for it. */
async function openStage(kind: ServerKind, { size, signal, print }: RunOptions): Promise<Stage> {
  await using made = new AsyncDisposableStack();
  if (kind !== "none") print(`starting a ${kind} server`);
  const server = kind === "none" ? undefined : made.use(await BenchServer.start(kind));
  const need = (): BenchServer => {
    if (server === undefined) throw new Error("this row has asked for no server");
    return server;
  };
  const owned = made.move();
  const runsc = once(async () => owned.use(await BareRunsc.open()));
  const zfs = once(async () => owned.use(await BareZfs.open(need().pool)));
  const bench: Bench = {
    size,
    signal,
    server: need,
    runsc,
    zfs,
    count: (full, quick) => (size === "full" ? full : quick),
  };
  return { bench, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

function once<Made>(make: () => Promise<Made>): () => Promise<Made> {
  let made: Promise<Made> | undefined;
  return () => (made ??= make());
}
