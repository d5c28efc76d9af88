import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { TestHost } from "../host.ts";

/** Everything that a call may change on a host, as lines that can be compared. */
export function hostState(host: TestHost): readonly string[] {
  return [...recordLines(host.dataDirectory), ...mountsOf(host.dataDirectory).flatMap(fileLines)].sort();
}

/** How many sessions of a host are destroyed and not yet gone: their datasets are removed after the call has returned. */
export function countDestroying(host: TestHost): number {
  using db = openRecords(host.dataDirectory);
  const rows = db.prepare("SELECT row FROM sessions").all() as unknown as readonly { readonly row: string }[];
  return rows.filter(({ row }) => (JSON.parse(row) as SeenRow).phase.kind === "destroying").length;
}

interface SeenRow {
  readonly phase: { readonly kind: string };
}

/** Tables in which every row is somebody's; sequences and counters of idle time move by themselves. */
const TABLES = ["sessions", "snapshots", "intents", "receipts", "calls", "husks", "heads", "processes"] as const;

function recordLines(dataDirectory: string): readonly string[] {
  using db = openRecords(dataDirectory);
  return TABLES.flatMap((table) =>
    db
      .prepare(`SELECT * FROM ${table}`)
      .all()
      .map((row) => `${table} ${JSON.stringify(row)}`),
  );
}

const openRecords = (dataDirectory: string): DatabaseSync =>
  new DatabaseSync(join(dataDirectory, "host.db"), { readOnly: true });

function mountsOf(dataDirectory: string): readonly string[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((path) => /\/mnt\/[a-z0-9]+\/g\d+$/.test(path) && path.startsWith(`${dataDirectory}/`));
}

/**
 * Names, kinds, sizes and times of all files below; links are not followed. What goes away meanwhile is left out, as are sizes and
 * times of directories: an upload that is refused halfway makes its temporary file and removes it.
 */
function fileLines(directory: string): readonly string[] {
  return listed(directory).flatMap((name) => {
    const path = join(directory, name);
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined) return [];
    const { mode, size, mtimeMs, ino } = found;
    const named = `${path} ${mode.toString(8)} ${ino}`;
    return (mode & 0o170000) === 0o040000 ? [named, ...fileLines(path)] : [`${named} ${size} ${mtimeMs}`];
  });
}

function listed(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
