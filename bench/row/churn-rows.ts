import { findResidue } from "../../test/support/residue.ts";
import { processesWith } from "../../test/support/process.ts";
import { prepareCollection } from "../profile/inspector.ts";
import type { Row } from "../row.ts";
import { timed, until } from "../run/sample.ts";
import { serviceUse } from "../server/proc.ts";
import { median } from "../statistics.ts";

const MORE_DESCRIPTORS = 5;
const MORE_MEMORY = 1.1;
/** Fewer say nothing about a slope. */
const ENOUGH_CYCLES = 100;
/** How often the services are made to give back what they no longer use, and their memory is looked at. */
const COLLECTIONS = 20;

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

/** What a service held over time. */
interface Uses {
  /** After each cycle: some are held in store, and taken one after the other. */
  readonly descriptors: number[];
  /** After collections. */
  readonly rssKib: number[];
}

/** Compares the last quarter with the second: the first is the time in which caches fill. */
function growthOf(name: string, uses: Uses): readonly string[] {
  const quarter = (values: readonly number[], index: number): number =>
    median(values.slice(Math.floor((values.length * index) / 4), Math.floor((values.length * (index + 1)) / 4)));
  const descriptors = quarter(uses.descriptors, 3) - quarter(uses.descriptors, 1);
  const memory = quarter(uses.rssKib, 3) / quarter(uses.rssKib, 1);
  return [
    ...(descriptors > MORE_DESCRIPTORS ? [`the ${name} holds ${descriptors} more file descriptors`] : []),
    ...(memory > MORE_MEMORY ? [`the ${name} has ${memory.toFixed(2)} times the memory`] : []),
  ];
}

const NONE: Uses = { descriptors: [], rssKib: [] };

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
    const collects = [];
    for (const { pid } of services) collects.push(await prepareCollection(pid));
    const uses = services.map((): Uses => ({ descriptors: [], rssKib: [] }));
    const ours: number[] = [];
    for (let cycle = 0; cycle < cycles; cycle += 1) {
      bench.signal.throwIfAborted();
      const ms = await timed(async () => {
        await using sandbox = await turnbox.create();
        await sandbox.bash("echo hi > file");
        await sandbox.turn();
      });
      ours.push(ms);
      const isDue = Math.floor(((cycle + 1) * COLLECTIONS) / cycles) > Math.floor((cycle * COLLECTIONS) / cycles);
      for (const [index, { pid }] of services.entries()) {
        uses[index]?.descriptors.push(serviceUse(pid).descriptors);
        if (!isDue) continue;
        await collects[index]?.();
        uses[index]?.rssKib.push(serviceUse(pid).rssKib);
      }
    }
    const left = await residueOf(home);
    const slopes =
      cycles < ENOUGH_CYCLES ? [] : services.flatMap(({ name }, index) => growthOf(name, uses[index] ?? NONE));
    const notes = services.map(({ name }, index) => describeUse(name, uses[index] ?? NONE));
    const unjudged = cycles < ENOUGH_CYCLES ? { unjudged: "too few cycles to judge growth" } : {};
    return { ours, notes, failures: [...left, ...slopes], ...unjudged };
  },
};

function describeUse(name: string, { descriptors, rssKib }: Uses): string {
  const mib = (kib: number | undefined): string => ((kib ?? 0) / 1024).toFixed(0);
  const held = `${mib(rssKib[0])} to ${mib(rssKib.at(-1))} MiB after collections`;
  return `${name}: ${held}, ${String(descriptors[0])} to ${String(descriptors.at(-1))} descriptors`;
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
