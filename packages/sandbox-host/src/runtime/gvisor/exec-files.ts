import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Layout } from "./layout.ts";
import { containerLayout } from "./layout.ts";

/**
 * The files of an execution. The process file holds what is to be started, environment included, and is there until it has
 * started; the pid file, written by runsc, from then on until it has ended. So what a service that died was looking
 * after is what there is a file of.
 */
export interface ExecFiles {
  readonly processPath: string;
  readonly pidPath: string;
}

export function execFiles(layout: Layout, id: string, marker: string): ExecFiles {
  const { execDirectory } = containerLayout(layout, id);
  return { processPath: join(execDirectory, `${marker}.json`), pidPath: join(execDirectory, `${marker}.pid`) };
}

/** Executions that there is a file of, with their inner pids; 0 where it is not known. */
export async function listExecFiles(layout: Layout, id: string): Promise<ReadonlyMap<string, number>> {
  const names = await readdir(containerLayout(layout, id).execDirectory).catch(() => []);
  const markers = new Set(names.map((name) => name.replace(/\.(json|pid)$/, "")));
  const pids = await Promise.all(
    [...markers].map(async (marker) => [marker, await readPid(execFiles(layout, id, marker).pidPath)] as const),
  );
  return new Map(pids);
}

/** The inner pid that runsc has written, 0 before it has. */
export async function readPid(pidPath: string): Promise<number> {
  const pid = Number(await readFile(pidPath, "utf8").catch(() => "0"));
  return Number.isSafeInteger(pid) ? pid : 0;
}

export async function removeExecFiles({ processPath, pidPath }: ExecFiles): Promise<void> {
  await Promise.all([rm(processPath, { force: true }), rm(pidPath, { force: true })]);
}
