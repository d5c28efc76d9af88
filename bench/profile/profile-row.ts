import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdtempDisposable, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type CallTree, toCallTree } from "./call-tree.ts";
import { drawFlames, type Flame } from "./flame-graph.ts";
import { readProfile, startProfile } from "./inspector.ts";

export interface ProfileOptions {
  readonly svgPath: string;
  /** The built repository that is measured, with its own harness. */
  readonly repository: string;
  readonly seconds: number;
  readonly print: (line: string) => void;
}

/** A row waits so long before its first sample; what it sets up first is left out of the picture too. */
const SETTLE_MS = 5000;
const START_LIMIT_MS = 120_000;
/** Less than this share of the work of all is not worth a picture. */
const MIN_SHARE = 0.02;

/** Runs a row of a repository's harness, in full size, and draws where its processes spend their time meanwhile. */
export async function profileRow(row: string, { svgPath, repository, seconds, print }: ProfileOptions): Promise<void> {
  await using directory = await mkdtempDisposable(join(tmpdir(), "turnbox-profile-"));
  const only = `^${row.replaceAll(".", "\\.")}$`;
  const bench = spawn(process.execPath, [join(repository, "bench/main.ts"), "--only", only], {
    cwd: repository,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exit = new Promise<void>((resolve) => bench.once("exit", () => resolve()));
  try {
    await measuring(bench);
    print(`profiling ${row} for ${seconds} s`);
    await delay(SETTLE_MS);
    const flames = await profileAll(nodeProcesses(bench), { seconds, directory: directory.path });
    if (flames.length === 0) throw new Error(`${row} was over before ${seconds} s were: profile it for less`);
    await writeFile(svgPath, drawFlames(`${row}, ${seconds} s`, worthShowing(flames)));
    for (const { title, tree } of flames) print(`${title}: ${describe(tree, seconds)}`);
    print(`written to ${svgPath}`);
  } finally {
    // It takes away what it has started.
    bench.kill("SIGINT");
    await exit;
  }
}

const describe = ({ totalUs }: CallTree, seconds: number): string =>
  `${(totalUs / seconds / 1e4).toFixed(0)} % of a core`;

function worthShowing(flames: readonly Flame[]): readonly Flame[] {
  const allUs = flames.reduce((sum, { tree }) => sum + tree.totalUs, 0);
  return flames
    .filter(({ tree }) => tree.totalUs >= allUs * MIN_SHARE)
    .toSorted((a, b) => b.tree.totalUs - a.tree.totalUs);
}

/** All at the same time, without those that end before: helpers of the server come and go. */
async function profileAll(
  processes: readonly NodeProcess[],
  { seconds, directory }: { readonly seconds: number; readonly directory: string },
): Promise<readonly Flame[]> {
  const pathOf = ({ pid }: NodeProcess): string => join(directory, String(pid));
  for (const one of processes) {
    await startProfile(one.pid, { seconds, path: pathOf(one) }).catch((thrown: unknown) => {
      if (existsSync(`/proc/${one.pid}`)) throw thrown;
    });
  }
  await delay(seconds * 1000);
  const profiles = await Promise.all(
    processes.map(async (one) => ({ title: one.title, profile: await readProfile(one.pid, pathOf(one)) })),
  );
  return profiles.flatMap(({ title, profile }) =>
    profile === undefined ? [] : [{ title, tree: toCallTree(profile) }],
  );
}

/** Waits for the row to begin. */
async function measuring({ stdout }: ChildProcess): Promise<void> {
  let output = "";
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no row has begun: ${output}`)), START_LIMIT_MS);
    stdout?.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      if (!/^measuring /m.test(output)) return;
      clearTimeout(timer);
      resolve();
    });
    stdout?.once("end", () => reject(new Error(`the benchmark ended before a row had begun: ${output}`)));
  });
}

interface NodeProcess {
  readonly pid: number;
  readonly title: string;
}

/** The benchmark itself and the parts of the server below it; the floors are none of them. */
function nodeProcesses({ pid: root }: ChildProcess): readonly NodeProcess[] {
  const all = readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? (describeProcess(Number(name)) ?? []) : []));
  const below = new Set([root]);
  // Parents are older than their children, though not always of a lower number.
  for (let size = 0; size !== below.size; ) {
    size = below.size;
    for (const { pid, parent } of all) if (below.has(parent)) below.add(pid);
  }
  return all
    .filter(({ pid, script }) => below.has(pid) && /turnbox|worker|bench\/main/.test(script))
    .map(({ pid, script }) => ({ pid, title: script.endsWith("bench/main.ts") ? "bench (client)" : basename(script) }));
}

function describeProcess(
  pid: number,
): { readonly pid: number; readonly parent: number; readonly script: string } | undefined {
  try {
    const [program = "", ...args] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    const parent = Number(/^\d+ \(.*\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1]);
    const script = basename(program).startsWith("node") ? (args.find((arg) => !arg.startsWith("-")) ?? "") : "";
    return { pid, parent, script };
  } catch {
    return undefined;
  }
}
