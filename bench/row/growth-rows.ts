import type { Sandbox } from "@turnbox/client";
import type { Bench } from "../run/bench.ts";
import type { Row } from "../row.ts";
import { timed } from "../run/sample.ts";
import { median, type Point } from "../statistics.ts";
import { changeFiles, destroyInParallel } from "./sandbox-work.ts";

const AT_EACH = 5;

/** The median of a few samples. */
async function medianOf(sample: () => Promise<number>, samples = AT_EACH): Promise<number> {
  const times: number[] = [];
  while (times.length < samples) times.push(await sample());
  return median(times);
}

const steps = (bench: Bench, full: readonly number[], quick: readonly number[]): readonly number[] =>
  bench.size === "full" ? full : quick;

const lastOf = (points: readonly Point[]): readonly number[] => points.slice(-1).map(({ y }) => y);

const sessions: Row = {
  id: "growth.sessions",
  title: "create to first command done, with n sessions on the host",
  unit: "ms",
  server: "cold",
  growth: { of: "each", things: "sessions on the host" },
  measure: async (bench) => {
    const made: Sandbox[] = [];
    const points: Point[] = [];
    const create = () =>
      timed(async () => {
        const sandbox = await bench.server().turnbox.create();
        made.push(sandbox);
        await sandbox.bash("echo hi");
      });
    try {
      for (const x of steps(bench, [10, 25, 50, 100, 200], [5, 10])) {
        bench.signal.throwIfAborted();
        while (made.length < x - AT_EACH) await create();
        points.push({ x, y: await medianOf(create) });
      }
      return { ours: lastOf(points), points };
    } finally {
      await destroyInParallel(made);
    }
  },
};

const snapshots: Row = {
  id: "growth.snapshots",
  title: "TurnComplete after a small change, with n snapshots of the session",
  unit: "ms",
  server: "cold",
  growth: { of: "each", things: "snapshots of a session" },
  measure: async (bench) => {
    await using sandbox = await bench.server().turnbox.create();
    const points: Point[] = [];
    let turns = 0;
    const turn = async (): Promise<number> => {
      turns += 1;
      await sandbox.files.write("change.txt", `${String(turns)}\n`);
      return await timed(() => sandbox.turn());
    };
    for (const x of steps(bench, [10, 30, 100, 250, 500], [5, 15])) {
      bench.signal.throwIfAborted();
      while (turns < x - AT_EACH) await turn();
      points.push({ x, y: await medianOf(turn) });
    }
    return { ours: lastOf(points), points };
  },
};

const FILES_FULL = [100, 1000, 5000, 20_000];
const FILES_QUICK = [100, 500];

const filesTurn: Row = {
  id: "growth.files-turn",
  title: "TurnComplete after a small change, with n files in the session",
  unit: "ms",
  server: "cold",
  growth: { of: "whole", things: "files of a session" },
  measure: async (bench) => {
    await using sandbox = await bench.server().turnbox.create();
    const points: Point[] = [];
    let serial = 0;
    for (const x of steps(bench, FILES_FULL, FILES_QUICK)) {
      bench.signal.throwIfAborted();
      await changeFiles(sandbox, { files: x, text: "some content" });
      await sandbox.turn();
      const turn = async (): Promise<number> => {
        serial += 1;
        await sandbox.files.write("change.txt", `${String(serial)}\n`);
        return await timed(() => sandbox.turn());
      };
      points.push({ x, y: await medianOf(turn) });
    }
    return { ours: lastOf(points), points };
  },
};

const filesDiff: Row = {
  id: "growth.files-diff",
  title: "diff of n changed files",
  unit: "ms",
  server: "cold",
  growth: { of: "whole", things: "changed files" },
  measure: async (bench) => {
    await using sandbox = await bench.server().turnbox.create();
    const points: Point[] = [];
    for (const x of steps(bench, FILES_FULL, FILES_QUICK)) {
      bench.signal.throwIfAborted();
      const directory = `n${String(x)}`;
      await sandbox.files.write("mark.txt", directory);
      const { number } = await sandbox.turn();
      await changeFiles(sandbox, { files: x, text: "some content", directory });
      points.push({ x, y: await medianOf(() => timed(() => sandbox.diff({ from: number })), 3) });
    }
    return { ours: lastOf(points), points };
  },
};

export const GROWTH_ROWS = [sessions, snapshots, filesTurn, filesDiff] as const;
