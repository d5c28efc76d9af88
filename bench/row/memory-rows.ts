import { setTimeout as delay } from "node:timers/promises";
import type { Sandbox } from "@turnbox/client";
import type { Row } from "../row.ts";
import { availableKib, pssKib, sandboxesOf } from "../server/proc.ts";
import { destroyInParallel } from "./sandbox-work.ts";

/** Shells that stand ready for the next command end after a minute without one. */
const SLOTS_END_MS = 65_000;
const DENSITY_KIB = 8 * 1024 * 1024;
const MOST_SESSIONS = 1000;

interface Pids {
  readonly sentryPid: number;
  readonly goferPid: number;
}

const memoryOf = ({ sentryPid, goferPid }: Pids): number => pssKib(sentryPid) + pssKib(goferPid);

const idle: Row = {
  id: "memory.idle",
  title: "memory of an idle session (PSS of sentry and gofer)",
  unit: "KiB",
  server: "cold",
  floor: "a bare runsc sandbox that has run the same command",
  bar: { kind: "at_most_ratio", value: 1.2 },
  measure: async (bench) => {
    const [runsc, { turnbox, home }] = [await bench.runsc(), bench.server()];
    const sessions = bench.count(10, 3);
    const made: Sandbox[] = [];
    const ids: string[] = [];
    try {
      for (let index = 0; index < sessions; index += 1) {
        const sandbox = await turnbox.create();
        made.push(sandbox);
        await sandbox.bash("echo hi");
        const id = await runsc.bundle();
        ids.push(id);
        await runsc.run(id);
        await runsc.exec(id, "echo hi");
      }
      await delay(SLOTS_END_MS, undefined, { signal: bench.signal });
      const ours = sandboxesOf(home).map(memoryOf);
      const failures = ours.length === sessions ? [] : [`${ours.length} sandboxes are there for ${sessions} sessions`];
      return { ours, floor: ids.map((id) => memoryOf(runsc.find(id))), failures };
    } finally {
      await destroyInParallel(made);
      for (const id of ids) await runsc.end(id);
    }
  },
};

/** So many sessions are made at once, which takes less time. */
const AT_ONCE = 5;

const density: Row = {
  id: "memory.density",
  title: "memory that the machine has less of, for each session, until 8 GiB are used",
  unit: "KiB",
  server: "cold",
  measure: async (bench) => {
    const { turnbox } = bench.server();
    const most = bench.count(MOST_SESSIONS, 5);
    const beforeKib = availableKib();
    const made: Sandbox[] = [];
    const ours: number[] = [];
    const add = async (): Promise<void> => {
      const sandbox = await turnbox.create();
      made.push(sandbox);
      await sandbox.bash("echo hi");
    };
    try {
      while (made.length < most && beforeKib - availableKib() < Math.min(DENSITY_KIB, beforeKib * 0.8)) {
        bench.signal.throwIfAborted();
        await Promise.all(Array.from({ length: Math.min(AT_ONCE, most - made.length) }, add));
        ours.push((beforeKib - availableKib()) / made.length);
      }
      const usedMib = Math.round((beforeKib - availableKib()) / 1024);
      return {
        ours,
        notes: [`${made.length} sessions took ${usedMib} MiB, their waiting shells and page tables with them`],
      };
    } finally {
      await destroyInParallel(made);
    }
  },
};

export const MEMORY_ROWS = [idle, density] as const;
