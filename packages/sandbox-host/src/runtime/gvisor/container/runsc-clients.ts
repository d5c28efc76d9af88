import { readdir, readFile } from "node:fs/promises";
import { basename } from "node:path";
import { type Clock, identifyProcess, isLiving, type ProcessIdentity } from "@turnbox/core";
import type { Layout } from "./layout.ts";

const DEATH_PATIENCE_MS = 2000;
const POLL_MS = 5;
/** The process file of everything that is spawned. */
export const SPAWN_FILE = "/spawn.json";

/** A `runsc` command that runs on the host and belongs to one of our containers. */
export interface RunscClient {
  readonly process: ProcessIdentity;
  /** `spawn`: an `exec` that is meant to outlive the service. */
  readonly subcommand: "exec" | "run" | "spawn";
  /** Of an `exec`: which one, by the name of its process file. */
  readonly marker: string | undefined;
}

/** The commands of this runtime's own root for exactly this container. Sentry and gofer are none of them. */
export async function findRunscClients({ runscRoot }: Layout, id: string): Promise<readonly RunscClient[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const clients = await Promise.all(
    pids.map(async (pid) => {
      const identity = identifyProcess(pid);
      const argv = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0").slice(0, -1);
      const client = parseClient(argv, { root: `--root=${runscRoot}`, id });
      return identity === undefined || client === undefined ? [] : [{ process: identity, ...client }];
    }),
  );
  return clients.flat();
}

/** Ends them, and waits until they are gone. What an `exec` has started inside goes on without it. */
export async function endRunscClients(clients: readonly RunscClient[], clock: Clock): Promise<void> {
  const untilMs = clock.monotonicMs() + DEATH_PATIENCE_MS;
  for (const { process: identity } of clients) if (isLiving(identity)) kill(identity.pid);
  while (clients.some((client) => isLiving(client.process)) && clock.monotonicMs() < untilMs) {
    await clock.sleep(POLL_MS);
  }
}

function parseClient(
  argv: readonly string[],
  { root, id }: { readonly root: string; readonly id: string },
): Pick<RunscClient, "subcommand" | "marker"> | undefined {
  const rest = argv.slice(argv.indexOf(root) + 1);
  if (!argv.includes(root) || rest.at(-1) !== id) return undefined;
  // Between the root and the subcommand there are only flags.
  const subcommand = rest.find((argument) => !argument.startsWith("-"));
  if (subcommand !== "exec" && subcommand !== "run") return undefined;
  const processPath = rest.find((argument) => argument.startsWith("--process="));
  if (processPath?.endsWith(SPAWN_FILE) === true) return { subcommand: "spawn", marker: undefined };
  return { subcommand, marker: processPath === undefined ? undefined : basename(processPath, ".json") };
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended in the meantime.
  }
}
