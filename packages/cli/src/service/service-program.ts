import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { SandboxError } from "@turnbox/core";
import type { Surroundings } from "../surroundings.ts";

export type ServicePackage = "@turnbox/orchestrator" | "@turnbox/sandbox-host";

/** A service's program: `[node, entry, ...args]` runs it. */
export interface ServiceProgram {
  readonly node: string;
  readonly entry: string;
  readonly version: string;
}

const MINIMUM_NODE_MAJOR = 24;
const NODE_CHECK_MS = 10_000;

type Search = Pick<Surroundings, "searchFrom" | "runner">;

/** The program of a service and the Node to run it with. `COMMAND_MISSING` says what is not there. */
export async function findServiceProgram(
  name: ServicePackage,
  search: Search,
  options: { readonly signal: AbortSignal },
): Promise<ServiceProgram> {
  const found = findPackage(name, search.searchFrom);
  if (found === undefined) {
    throw new SandboxError("COMMAND_MISSING", `the package ${name} is not installed beside this command line`, {
      metadata: { package: name },
    });
  }
  return { ...found, node: await findNode(search, options) };
}

/** Where a package's program is: in a `node_modules` of one of the directories or above it, the nearest first. */
export function findPackage(
  name: ServicePackage,
  searchFrom: readonly string[],
): { readonly entry: string; readonly version: string } | undefined {
  for (const directory of upwardsFrom(searchFrom)) {
    const root = join(directory, "node_modules", name);
    const manifestPath = join(root, "package.json");
    if (!existsSync(manifestPath)) continue;
    const manifest = JSON.parse(readFileSync(manifestPath, "utf8")) as {
      readonly version?: string;
      readonly bin?: string | Readonly<Record<string, string>>;
    };
    const bin = typeof manifest.bin === "string" ? manifest.bin : Object.values(manifest.bin ?? {})[0];
    if (bin !== undefined && existsSync(join(root, bin))) {
      return { entry: join(root, bin), version: manifest.version ?? "unknown" };
    }
  }
  return undefined;
}

/** This Node if it is new enough, else one that a workspace above the search directories brings. */
export async function findNode(
  { searchFrom, runner }: Search,
  options: { readonly signal: AbortSignal },
): Promise<string> {
  if (majorOf(process.version) >= MINIMUM_NODE_MAJOR) return process.execPath;
  for (const candidate of nodeCandidates(searchFrom)) {
    const spec = { command: candidate, args: ["--version"], deadlineMs: NODE_CHECK_MS };
    const answer = await runner.run(spec, options).catch(() => undefined);
    if (answer !== undefined && majorOf(answer.stdout.trim()) >= MINIMUM_NODE_MAJOR) return candidate;
  }
  const rule = `the services need Node ${String(MINIMUM_NODE_MAJOR)} or newer`;
  throw new SandboxError("COMMAND_MISSING", `${rule}; this is ${process.version} and no other was found`, {
    metadata: { command: "node", version: process.version },
  });
}

function* nodeCandidates(searchFrom: readonly string[]): Iterable<string> {
  for (const directory of upwardsFrom(searchFrom)) {
    for (const root of [directory, join(directory, ".toolchain")]) {
      const candidate = join(root, "node_modules", ".bin", "node");
      if (existsSync(candidate)) yield candidate;
    }
  }
}

/** Each directory and those above it, none twice. */
function* upwardsFrom(starts: readonly string[]): Iterable<string> {
  const seen = new Set<string>();
  for (const start of starts) {
    for (let directory = start; !seen.has(directory); directory = dirname(directory)) {
      seen.add(directory);
      yield directory;
    }
  }
}

const majorOf = (version: string): number => Number(/^v(\d+)\./.exec(version)?.[1] ?? 0);
