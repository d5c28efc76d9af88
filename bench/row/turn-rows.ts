import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { BareZfs } from "../floor/bare-zfs.ts";
import { command } from "../run/command.ts";
import type { Bench } from "../run/bench.ts";
import type { Row } from "../row.ts";
import { interleave, timed } from "../run/sample.ts";
import { bornOf, changeFiles, destroyInParallel, failedForks } from "./sandbox-work.ts";

const CHILDREN = 20;
/** By then another sandbox stands by, and nothing goes on in the background. */
const REST_MS = 1200;
const MANY = "many";

const complete: Row = {
  id: "turn.complete",
  title: "TurnComplete after a small change",
  unit: "ms",
  server: "cold",
  floor: "zfs snapshot after the same change",
  bar: { kind: "at_most_ratio", value: 1.7 },
  measure: async (bench) => {
    const zfs = await bench.zfs();
    await using sandbox = await bench.server().turnbox.create();
    let serial = 0;
    const ours = async (): Promise<number> => {
      serial += 1;
      await sandbox.files.write("change.txt", `${String(serial)}\n`);
      return await timed(() => sandbox.turn());
    };
    const floor = async (): Promise<number> => {
      await zfs.change();
      const name = zfs.newName();
      return await timed(() => zfs.snapshot(name));
    };
    return await interleave({ ours, floor }, { count: bench.count(100, 5), signal: bench.signal });
  },
};

/** What a person would do by hand: a clone of the snapshot, a sandbox on it, a command in it. */
async function bareRollback(bench: Bench, snapshot: string): Promise<number> {
  const [zfs, runsc] = [await bench.zfs(), await bench.runsc()];
  const startedMs = performance.now();
  const clone = await zfs.clone(snapshot);
  const id = await runsc.bundle(clone.path);
  await runsc.run(id);
  await runsc.exec(id, "echo hi");
  const ms = performance.now() - startedMs;
  await runsc.end(id);
  await zfs.destroyClone(clone);
  return ms;
}

const rollback: Row = {
  id: "turn.rollback",
  title: "RollbackSession to first command done",
  unit: "ms",
  server: "cold",
  floor: "zfs clone + runsc run + runsc exec",
  bar: { kind: "at_most_ratio", value: 0.8 },
  measure: async (bench) => {
    const zfs = await bench.zfs();
    const snapshot = zfs.newName();
    await zfs.snapshot(snapshot);
    await using sandbox = await bench.server().turnbox.create();
    await sandbox.files.write("change.txt", "0\n");
    const { number } = await sandbox.turn();
    let serial = 0;
    const ours = async (): Promise<number> => {
      serial += 1;
      await sandbox.bash(`echo ${String(serial)} > change.txt`);
      return await timed(async () => {
        await sandbox.rollback(number);
        await sandbox.bash("echo hi");
      });
    };
    const floor = () => bareRollback(bench, snapshot);
    const pace = { count: bench.count(50, 3), pauseMs: bench.count(REST_MS, 0), signal: bench.signal };
    return await interleave({ ours, floor }, pace);
  },
};

/** Not every ZFS has a `zfs diff`: two trees side by side, compared by the machine's own program. */
async function bareDiff(zfs: BareZfs, snapshot: string): Promise<number> {
  const startedMs = performance.now();
  const clone = await zfs.clone(snapshot);
  // It exits with 1 where there are differences.
  await command("sh", [
    "-c",
    'diff -rq "$0" "$1" > /dev/null || [ $? = 1 ]',
    join(clone.path, MANY),
    join(zfs.path, MANY),
  ]);
  const ms = performance.now() - startedMs;
  await zfs.destroyClone(clone);
  return ms;
}

const diff: Row = {
  id: "turn.diff-10000",
  title: "diff of 10,000 changed files",
  unit: "ms",
  server: "cold",
  floor: "zfs clone of the snapshot + diff -rq of the machine",
  measure: async (bench) => {
    const files = bench.count(10_000, 500);
    const zfs = await bench.zfs();
    const directory = join(zfs.path, MANY);
    await mkdir(directory);
    const writeAll = async (text: string): Promise<void> => {
      for (let index = 0; index < files; index += 1) await writeFile(join(directory, String(index)), text);
    };
    await writeAll("before\n");
    const snapshot = zfs.newName();
    await zfs.snapshot(snapshot);
    await writeAll("after it\n");
    await using sandbox = await bench.server().turnbox.create();
    await changeFiles(sandbox, { files, text: "before" });
    const { number } = await sandbox.turn();
    await changeFiles(sandbox, { files, text: "after it" });
    const changes = await sandbox.diff({ from: number });
    const failures = changes.length < files ? [`it names ${changes.length} of ${files} files`] : [];
    const ours = () => timed(() => sandbox.diff({ from: number }));
    const floor = () => bareDiff(zfs, snapshot);
    const pace = { count: bench.count(5, 2), signal: bench.signal, warmUp: 0 };
    return { ...(await interleave({ ours, floor }, pace)), failures };
  },
};

const fork: Row = {
  id: "turn.fork-20",
  title: "fork of 20, each to its first command done",
  unit: "ms",
  server: "cold",
  floor: "zfs snapshot, 20 x zfs clone, then 20 x (runsc run + runsc exec) at once",
  measure: async (bench) => {
    const children = bench.count(CHILDREN, 3);
    const [zfs, runsc] = [await bench.zfs(), await bench.runsc()];
    await using sandbox = await bench.server().turnbox.create();
    await sandbox.files.write("change.txt", "0\n");
    const failures: string[] = [];
    const ours = async (): Promise<number> => {
      const startedMs = performance.now();
      const forks = await sandbox.fork({ count: children });
      const born = bornOf(forks);
      await Promise.all(born.map((child) => child.bash("echo hi")));
      const ms = performance.now() - startedMs;
      failures.push(...failedForks(forks));
      await destroyInParallel(born);
      return ms;
    };
    const floor = async (): Promise<number> => {
      const startedMs = performance.now();
      const snapshot = zfs.newName();
      await zfs.snapshot(snapshot);
      const clones = [];
      for (let index = 0; index < children; index += 1) clones.push(await zfs.clone(snapshot));
      const ids = await Promise.all(clones.map(({ path }) => runsc.bundle(path)));
      await Promise.all(ids.map((id) => runsc.run(id).then(() => runsc.exec(id, "echo hi"))));
      const ms = performance.now() - startedMs;
      for (const id of ids) await runsc.end(id);
      for (const clone of clones) await zfs.destroyClone(clone);
      return ms;
    };
    const pace = { count: bench.count(5, 1), signal: bench.signal, warmUp: 0 };
    return { ...(await interleave({ ours, floor }, pace)), failures };
  },
};

export const TURN_ROWS = [complete, rollback, diff, fork] as const;
