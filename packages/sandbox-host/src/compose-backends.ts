import { mkdir } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import { type Clock, type CommandRunner, type Log, systemClock } from "@turnbox/core";
import { type Helper } from "./system/helper/helper.ts";
import { type CommandBounds, createBoundedCommandRunner } from "./system/command/bounded-command-runner.ts";
import { type HostConfig, poolSizeBytes } from "./config.ts";
import { createNetworkedRuntime } from "./container/networked-runtime.ts";
import { findCommand } from "./doctor/find-command.ts";
import { createFileWorkers, type FileWorkers } from "./file/workers.ts";
import { NetworkBounds } from "./network-policy/bounds.ts";
import { createLookUp } from "./network/netns/look-up.ts";
import { NetnsNetwork } from "./network/netns/netns-network.ts";
import type { LookUp } from "./network/netns/resolver.ts";
import type { Network } from "./network/network.ts";
import { createNoNetwork } from "./network/none/no-network.ts";
import { withSharedLooks } from "./network/shared-network.ts";
import type { PrepareRoot } from "./runtime/gvisor/context.ts";
import { createGvisorRuntime } from "./runtime/gvisor/gvisor-runtime.ts";
import { createNoneRuntime } from "./runtime/none/none-runtime.ts";
import type { Runtime } from "./runtime/runtime.ts";
import { sandboxMemory } from "./session-bounds.ts";
import { LocalDiskStorage } from "./storage/local-disk/local-disk-storage.ts";
import { withSharedReads } from "./storage/shared-reads.ts";
import type { Storage } from "./storage/storage.ts";
import { ZfsStorage } from "./storage/zfs/zfs-storage.ts";

/** Longer than the pause between an agent's tool calls, shorter than that between its turns as a rule. */
const FREEZE_IDLE_AFTER_MS = 5000;

/** More of a kind at once take longer together, and each is a process; further ones wait. */
const COMMANDS_AT_ONCE: CommandBounds = { zfs: 32, zpool: 8, ip: 16, nft: 16, runsc: 64 };

/** What the backends of a host are made with. */
export interface BackendOptions {
  readonly config: HostConfig;
  /** The directory of all state of this host. */
  readonly dataDirectory: string;
  /** The PATH that system programs are looked up in. */
  readonly path: string;
  /** Where given, it starts the programs of the backends. */
  readonly helper?: Helper;
  readonly log?: Log;
  readonly clock?: Clock;
  /** Finds the addresses of names that sandboxes ask for; the machine's resolvers unless given. */
  readonly lookUp?: LookUp;
}

export interface Backends {
  readonly storage: Storage;
  /** One whose containers take their networks with them. */
  readonly runtime: Runtime;
  readonly network: Network;
  /** The processes that touch the files of sessions; none is started before there is work. */
  readonly workers: FileWorkers;
}

/** The storage and the runtime that the configuration names, not opened yet. Their programs are started by `children`. */
export async function composeBackends(options: BackendOptions, children: CommandRunner): Promise<Backends> {
  const { config, dataDirectory } = options;
  const helper = options.helper === undefined ? {} : { helper: options.helper };
  const clock = options.clock ?? systemClock;
  const runner = createBoundedCommandRunner(children, { bounds: COMMANDS_AT_ONCE, clock });
  await mkdir(dataDirectory, { recursive: true, mode: 0o700 });
  const storage =
    config.storageBackend === "zfs"
      ? new ZfsStorage({
          runner,
          home: dataDirectory,
          poolSizeBytes: await poolSizeBytes(config, dataDirectory),
          ...(config.poolName === null ? {} : { poolName: config.poolName }),
          basesDataset: config.basesDataset,
          sessionsDataset: config.sessionsDataset,
        })
      : new LocalDiskStorage({ runner, root: config.sessionsRootDir ?? join(dataDirectory, "disk") });
  const workers = createFileWorkers({ runner, nodePath: process.execPath, clock });
  const stateDirectory = join(dataDirectory, "containers");
  const runtime =
    config.containerRuntime === "gvisor"
      ? createGvisorRuntime({
          runner,
          prepareRoot: prepareRootBy(workers),
          stateDirectory,
          spareSandbox: "one",
          freezeIdleAfterMs: FREEZE_IDLE_AFTER_MS,
          totalMemoryBytes: sandboxMemory(config, totalmem()),
          maxSpawned: config.maxProcessesPerSession,
          ...helper,
        })
      : createNoneRuntime({ runner, stateDirectory });
  const network = withSharedLooks(await composeNetwork({ ...options, runner }));
  return {
    storage: withSharedReads(storage, clock),
    runtime: createNetworkedRuntime(runtime, network),
    network,
    workers,
  };
}

export function logBackends(
  log: Log,
  { storage, runtime, version }: { readonly storage: string; readonly runtime: Runtime; readonly version: string },
): void {
  if (runtime.isolation === "none") log.warn("runtime none: tools run on this machine WITHOUT ISOLATION");
  log.info({ storage, runtime: runtime.kind, runtimeVersion: version }, "backends are open");
}

/** Has a file worker make the directories that a boot needs in a session's root. */
export function prepareRootBy(workers: FileWorkers): PrepareRoot {
  return async (root, input, call) => {
    await workers.run("prepareRoot", { root, input }, call);
  };
}

/** Namespaces and nftables if the machine has them; a host without them has sessions without a network. */
async function composeNetwork(options: BackendOptions & { readonly runner: CommandRunner }): Promise<Network> {
  const { config, dataDirectory, runner, log } = options;
  const bounds = new NetworkBounds(config);
  if (config.containerRuntime === "none")
    return createNoNetwork({ kind: "open", why: "the runtime none gives sandboxes the machine's own network" }, bounds);
  const found = await Promise.all(["ip", "nft"].map((name) => findCommand(name, options.path)));
  if (found.includes(undefined))
    return createNoNetwork(
      { kind: "absent", why: "this host has no ip or no nft, so sandboxes have no network" },
      bounds,
    );
  const clock = options.clock ?? systemClock;
  return new NetnsNetwork({
    runner,
    clock,
    dataDirectory,
    bounds,
    lookUp: options.lookUp ?? createLookUp(config.nameservers),
    ...(log === undefined ? {} : { log }),
  });
}
