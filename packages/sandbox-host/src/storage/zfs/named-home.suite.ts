import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createChildCommandRunner } from "@turnbox/core";
import type { Head, Storage } from "../storage.ts";
import { ZfsStorage } from "./zfs-storage.ts";

export const call: { readonly signal: AbortSignal } = { signal: new AbortController().signal };
export const base = { name: "mini", digest: "ab12" };
export const runner = createChildCommandRunner();
export const DEADLINE_MS = 60_000;
const exec = promisify(execFile);
const NAMES = { basesDataset: "images", sessionsDataset: "agents" };

export async function zfs(...args: readonly string[]): Promise<string> {
  return (await exec("zfs", args)).stdout;
}

/** A home whose names an operator has chosen, with one session. */
export async function createNamedHome() {
  const home = await realpath(await mkdtemp(join(tmpdir(), "turnbox-names-")));
  const pool = `tbxt${String(process.pid)}`;
  const create = (): Storage =>
    new ZfsStorage({
      runner,
      home,
      poolSizeBytes: 512 * 1024 ** 2,
      poolName: pool,
      ...NAMES,
      limits: { busyPatienceMs: 1000 },
    });
  const storage = create();
  await storage.open(call);
  await storage.createBase(base, (directory) => writeFile(join(directory, "hello"), "from the base"), call);
  const head = await storage.createSession({ token: "t1", origin: { kind: "base", base }, marks: {} }, call);
  return {
    home,
    pool,
    create,
    storage,
    head,
    cloneOf: (name: string, generation: number): Promise<Head> =>
      storage.createHead(
        { token: "t1", generation, origin: { kind: "snapshot", snapshot: { token: "t1", name } }, marks: {} },
        call,
      ),
    listed: async (): Promise<readonly string[]> =>
      (await zfs("list", "-H", "-r", "-t", "filesystem,snapshot", "-o", "name", pool))
        .trim()
        .split("\n")
        .map((name) => name.slice(pool.length)),
    [Symbol.asyncDispose]: async () => {
      await storage.destroyAll(call);
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** A process that works in the directory, until it is disposed. */
export async function use(directory: string) {
  const user = spawn("sleep", ["60"], { cwd: directory, stdio: "ignore" });
  await once(user, "spawn");
  return {
    [Symbol.asyncDispose]: async () => {
      user.kill("SIGKILL");
      await once(user, "exit");
    },
  };
}
