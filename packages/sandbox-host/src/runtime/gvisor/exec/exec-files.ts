import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Layout } from "../container/layout.ts";
import { containerLayout } from "../container/layout.ts";

/**
 * The files of an execution. The process file holds what is to be started, environment included, and is there until it has
 * started; the pid file, written by the one that started it, from then on until it has ended. So the executions of a service
 * that died are those that there is a file of. While a process has no work yet its pid file has another name, and does not count.
 *
 * All are small, in a directory of the runtime's own, and on the way of every call: they are changed at once, without a
 * turn through the threads of the I/O pool.
 */
export interface ExecFiles {
  readonly processPath: string;
  readonly pidPath: string;
  readonly idlePath: string;
}

export function execFiles(layout: Layout, id: string, marker: string): ExecFiles {
  const path = join(containerLayout(layout, id).execDirectory, marker);
  return { processPath: `${path}.json`, pidPath: `${path}.pid`, idlePath: `${path}.idle` };
}

/** Executions that there is a file of, with their inner pids; 0 if it is not known. */
export async function listExecFiles(layout: Layout, id: string): Promise<ReadonlyMap<string, number>> {
  const markers = new Set([...(await listMarkers(layout, id, "json")), ...(await listMarkers(layout, id, "pid"))]);
  return new Map([...markers].map((marker) => [marker, readPid(execFiles(layout, id, marker).pidPath)]));
}

/** Executions that had no work yet when their file was last written. */
export const listIdleFiles = (layout: Layout, id: string): Promise<readonly string[]> =>
  listMarkers(layout, id, "idle");

async function listMarkers(layout: Layout, id: string, kind: "json" | "pid" | "idle"): Promise<readonly string[]> {
  const names = await readdir(containerLayout(layout, id).execDirectory).catch(() => []);
  return names.filter((name) => name.endsWith(`.${kind}`)).map((name) => name.slice(0, -kind.length - 1));
}

/** The inner pid that was written down, 0 before it is. */
export function readPid(pidPath: string): number {
  // It is asked for again and again: that there is no file yet is not worth an exception.
  if (statSync(pidPath, { throwIfNoEntry: false }) === undefined) return 0;
  try {
    const pid = Number(readFileSync(pidPath, "utf8"));
    return Number.isSafeInteger(pid) ? pid : 0;
  } catch {
    return 0;
  }
}

/** Makes the process file of a start into its pid file: one file less to make and to remove. */
export function writePid({ processPath, pidPath }: ExecFiles, pid: number): void {
  writeFileSync(processPath, String(pid), { mode: 0o600 });
  renameSync(processPath, pidPath);
}

export function markWork({ pidPath, idlePath }: ExecFiles, work: "some" | "none"): void {
  if (work === "some") renameSync(idlePath, pidPath);
  else renameSync(pidPath, idlePath);
}

export function removeExecFiles({ processPath, pidPath, idlePath }: ExecFiles): void {
  // A process that has run has one; a look costs a fraction of a removal without effect.
  for (const path of [processPath, pidPath, idlePath]) removeFile(path);
}

/** One that is not there is removed, also if the end of its container removes it at the same time. */
export function removeFile(path: string): void {
  if (existsSync(path)) rmSync(path, { force: true });
}
