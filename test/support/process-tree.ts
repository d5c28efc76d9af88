import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** A process below another one that runs or has loaded a file of some directory. */
export interface Loaded {
  readonly pid: number;
  readonly path: string;
}

/**
 * What the processes below `pid`, itself included, run, have mapped or stand in of a directory. Sandboxes are left out:
 * what runs in them is theirs.
 */
export function loadedBelow(pid: number, directory: string): readonly Loaded[] {
  return descendantsOf(pid).flatMap((one) => {
    const program = linkOf(one, "exe");
    if (/\/runsc[^/]*$|\(deleted\)$|^$/.test(program) || isSandbox(one)) return [];
    const mapped = read(one, "maps")
      .split("\n")
      .map((line) => line.slice(line.indexOf("/")));
    return [program, linkOf(one, "cwd"), ...mapped]
      .filter((path) => path.startsWith(`${directory}/`))
      .map((path) => ({ pid: one, path }));
  });
}

function descendantsOf(pid: number): readonly number[] {
  const parents = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => [Number(name), Number(/^PPid:\s+(\d+)$/m.exec(read(Number(name), "status"))?.[1])] as const);
  const found = [pid];
  for (const one of found) found.push(...parents.filter(([, parent]) => parent === one).map(([child]) => child));
  return found;
}

/** A stub of the sentry shows its application's memory. */
function isSandbox(pid: number): boolean {
  return read(pid, "cmdline").includes("runsc");
}

function read(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return "";
  }
}

function linkOf(pid: number, name: string): string {
  try {
    return readlinkSync(`/proc/${pid}/${name}`);
  } catch {
    return "";
  }
}
