import { findResidue } from "../../test/support/residue.ts";
import { processesWith } from "../../test/support/process.ts";
import type { Row } from "../row.ts";
import { timed, until } from "../run/sample.ts";
import { type ServiceUse, serviceUse } from "../server/proc.ts";
import { median } from "../statistics.ts";

const MORE_DESCRIPTORS = 5;
const MORE_MEMORY = 1.1;
/** Fewer say nothing about a slope. */
const ENOUGH_CYCLES = 100;

interface Service {
  readonly name: string;
  readonly pid: number;
}

function servicesOf(home: string): readonly Service[] {
  return ["sandbox-host", "orchestrator"].map((name) => {
    const line = processesWith(`--home ${home}`).find((text) => text.includes(`turnbox-${name}.mjs serve`));
    if (line === undefined) throw new Error(`no process of the ${name} was found`);
    return { name, pid: Number.parseInt(line, 10) };
  });
}

/** Compares the last quarter with the second: the first is the time in which caches fill. */
export function growthOf(name: string, uses: readonly ServiceUse[]): readonly string[] {
  const quarter = (index: number): readonly ServiceUse[] =>
    uses.slice(Math.floor((uses.length * index) / 4), Math.floor((uses.length * (index + 1)) / 4));
  const [then, now] = [quarter(1), quarter(3)];
  const of = (some: readonly ServiceUse[], key: keyof ServiceUse): number => median(some.map((use) => use[key]));
  const descriptors = of(now, "descriptors") - of(then, "descriptors");
  const memory = of(now, "rssKib") / of(then, "rssKib");
  return [
    ...(descriptors > MORE_DESCRIPTORS ? [`the ${name} holds ${descriptors} more file descriptors`] : []),
    ...(memory > MORE_MEMORY ? [`the ${name} has ${memory.toFixed(2)} times the memory`] : []),
  ];
}

const churn: Row = {
  id: "churn.cycles",
  title: "create, command, turn, destroy, 500 times",
  unit: "ms",
  server: "cold",
  rule: "nothing left, no growth",
  measure: async (bench) => {
    const { turnbox, home } = bench.server();
    const cycles = bench.count(500, 20);
    const services = servicesOf(home);
    const uses = services.map((): ServiceUse[] => []);
    const ours: number[] = [];
    for (let cycle = 0; cycle < cycles; cycle += 1) {
      bench.signal.throwIfAborted();
      const ms = await timed(async () => {
        await using sandbox = await turnbox.create();
        await sandbox.bash("echo hi > file");
        await sandbox.turn();
      });
      ours.push(ms);
      services.forEach(({ pid }, index) => uses[index]?.push(serviceUse(pid)));
    }
    const left = await residueOf(home);
    const slopes =
      cycles < ENOUGH_CYCLES ? [] : services.flatMap(({ name }, index) => growthOf(name, uses[index] ?? []));
    const notes = services.map(({ name }, index) => describeUse(name, uses[index] ?? []));
    const unjudged = cycles < ENOUGH_CYCLES ? { unjudged: "too few cycles to judge growth" } : {};
    return { ours, notes, failures: [...left, ...slopes], ...unjudged };
  },
};

function describeUse(name: string, uses: readonly ServiceUse[]): string {
  const [first, last] = [uses[0], uses.at(-1)];
  const mib = (use: ServiceUse | undefined): string => ((use?.rssKib ?? 0) / 1024).toFixed(0);
  const descriptors = `${String(first?.descriptors)} to ${String(last?.descriptors)} descriptors`;
  return `${name}: ${mib(first)} to ${mib(last)} MiB, ${descriptors}`;
}

/** What is still there when the background has had its time. */
async function residueOf(home: string): Promise<readonly string[]> {
  let found: readonly string[] = [];
  const look = async (): Promise<boolean> => {
    const { mounts, ...rest } = await findResidue(home);
    const own = mounts.filter((path) => /\/mnt\/(?!\.)/.test(path));
    found = Object.entries({ ...rest, mounts: own }).flatMap(([kind, names]) =>
      names.map((name) => `${kind} left: ${name}`),
    );
    return found.length === 0;
  };
  await until("everything to be gone", look, 20_000).catch(() => undefined);
  return found;
}

export const CHURN_ROWS = [churn] as const;
