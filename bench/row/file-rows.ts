import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Sandbox } from "@turnbox/client";
import { BareRead } from "../floor/bare-read.ts";
import { command } from "../run/command.ts";
import type { Bench } from "../run/bench.ts";
import type { Measured, Row } from "../row.ts";
import { interleave, timed } from "../run/sample.ts";
import { sessionIdOf, type Way } from "./sandbox-work.ts";

const KIB = 1024;
/** Services run for days: neither side is measured before its code is compiled. */
const WARM_UP = 1000;
const FILE_BYTES = 20 * KIB;
const FOLDERS = 50;
const LINE = "the quick brown fox jumps over the lazy dog, and nothing else happens in this line\n";
/** In one file of the tree. */
const NEEDLE = "needle-in-a-haystack";

/** A tree of source-like files, 100 MB of them in a full run. */
async function fillTree(directory: string, files: number): Promise<void> {
  const text = LINE.repeat(Math.ceil(FILE_BYTES / LINE.length));
  for (let index = 0; index < files; index += 1) {
    const folder = join(directory, `d${String(index % FOLDERS)}`);
    if (index < FOLDERS) await mkdir(folder, { recursive: true });
    const isLast = index === files - 1;
    await writeFile(
      join(folder, `f${String(index)}.${index % 10 === 0 ? "md" : "ts"}`),
      isLast ? `${text}${NEEDLE}\n` : text,
    );
  }
}

/** The same tree in the sandbox. */
async function uploadTree(sandbox: Sandbox, directory: string): Promise<void> {
  const tar = spawn("tar", ["-cf", "-", "-C", directory, "."], { stdio: ["ignore", "pipe", "ignore"] });
  await sandbox.files.makeDirectory("tree");
  await sandbox.files.upload("tree", tar.stdout);
}

interface Search {
  readonly tool: "grep" | "glob";
  readonly params: Readonly<Record<string, unknown>>;
  readonly bare: readonly [string, ...string[]];
}

/** The tool over the tree, against the machine's own program on the same files in the same pool. */
async function search(bench: Bench, { tool, params, bare: [program, ...args] }: Search): Promise<Measured> {
  const zfs = await bench.zfs();
  const directory = join(zfs.path, `tree-${tool}`);
  await fillTree(directory, bench.count(5000, 500));
  await using sandbox = await bench.server().turnbox.create();
  await uploadTree(sandbox, directory);
  const ours = () => timed(() => sandbox.tool(tool, { ...params, path: "tree" }));
  const floor = () => timed(() => command(program, [...args.map((arg) => (arg === "DIR" ? directory : arg))]));
  return await interleave({ ours, floor }, { count: bench.count(20, 3), signal: bench.signal });
}

const PAGE = LINE.repeat(Math.floor((4 * KIB) / LINE.length));

/** A read and an empty call, in turns. */
async function readAndEmpty(
  { count, signal }: Bench,
  { read, empty }: { readonly read: () => Promise<unknown>; readonly empty: () => Promise<unknown> },
): Promise<Measured> {
  const sides = { ours: () => timed(read), floor: () => timed(empty) };
  return await interleave(sides, { count: count(500, 50), warmUp: count(WARM_UP, 50), signal });
}

/** A file of a page, read in one of the two ways, beside an empty call by the same client. */
async function readPage(bench: Bench, way: Way): Promise<Measured> {
  const { turnbox, host } = bench.server();
  await using sandbox = await turnbox.create();
  const path = "page.txt";
  await sandbox.files.write(path, PAGE);
  const call = { sessionId: sessionIdOf(sandbox), toolName: "read_file", params: { path } };
  const read = {
    rpc: () => host.tools.executeTool({ ...call, toolCallId: randomUUID() }),
    library: () => sandbox.tool("read_file", { path }),
  }[way];
  const health = bench.server().health();
  return await readAndEmpty(bench, { read, empty: () => health.check({}) });
}

/** The same page in the same pool, read by next to nothing. */
async function readPageBarely(bench: Bench): Promise<Measured> {
  const zfs = await bench.zfs();
  const path = join(zfs.path, "workspace/page.txt");
  await writeFile(path, PAGE);
  using bare = await BareRead.open();
  const shown = await bare.read(path);
  if (!shown.startsWith("     1\tthe quick")) throw new Error(`the bare server shows something else: ${shown}`);
  return await readAndEmpty(bench, { read: () => bare.read(path), empty: () => bare.empty() });
}

const READ_FLOOR = "an empty unary RPC (grpc.health.v1 Check) to the same host by the same client";

const read: Row = {
  id: "files.read-4k",
  title: "read_file of 4 KiB over RPC",
  unit: "ms",
  server: "cold",
  floor: READ_FLOOR,
  bar: { kind: "at_most_ratio", value: 2 },
  measure: (bench) => readPage(bench, "rpc"),
};

const readLibrary: Row = {
  id: "files.read-4k-library",
  title: "read_file of 4 KiB by the client library",
  unit: "ms",
  server: "cold",
  floor: READ_FLOOR,
  measure: (bench) => readPage(bench, "library"),
};

/** What the bar of read_file is to be seen beside: how much of it is ours. */
const readBare: Row = {
  id: "files.read-4k-bare",
  title: "the same file by a bare Connect server and a bare worker process",
  unit: "ms",
  server: "cold",
  floor: "an empty unary RPC to the same bare server",
  measure: readPageBarely,
};

const grep: Row = {
  id: "files.grep",
  title: "grep over a tree of 100 MB, one match",
  unit: "ms",
  server: "cold",
  floor: "grep -rnI of the machine over the same tree",
  measure: (bench) =>
    search(bench, { tool: "grep", params: { pattern: NEEDLE }, bare: ["grep", "-rnI", NEEDLE, "DIR"] }),
};

const glob: Row = {
  id: "files.glob",
  title: "glob `**/*.md` over the same tree",
  unit: "ms",
  server: "cold",
  floor: "find -name '*.md' of the machine over the same tree",
  measure: (bench) =>
    search(bench, { tool: "glob", params: { pattern: "**/*.md" }, bare: ["find", "DIR", "-name", "*.md"] }),
};

export const FILE_ROWS = [read, readLibrary, readBare, grep, glob] as const;
