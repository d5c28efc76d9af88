import { lstat, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SandboxError } from "@turnbox/core";
import type { ContainerSpec } from "../../runtime.ts";
import { launchBoot } from "./boot-launcher.ts";
import { readCgroupMounts } from "./cgroup.ts";
import { removeClientGroup } from "./client-group.ts";
import { cgroupOf, cgroupPath, type GvisorContext, runsc, runscWithNetwork, sandboxOf } from "../context.ts";
import { endRunscClients, findRunscClients } from "./runsc-clients.ts";
import { containerLayout, resolvConfPath, sandboxNote, spawnMark } from "./layout.ts";
import { createOciSpec, MOUNT_POINTS, type OciNetwork, RESOLVER_FILE } from "./oci-spec.ts";
import { withHiddenSettings } from "../runsc-command.ts";
import { isBooted, readStateFile, stateFilePath } from "./state-file.ts";
import { tearDown } from "./teardown.ts";

const BOOT_DEADLINE_MS = 60_000;
const NEVER = new AbortController().signal;
const LOG_TAIL_CHARS = 2000;

/**
 * Boots a container that is not there, in a spare if one is given, which is then its own. Whatever a
 * failure has left is removed again.
 */
export async function bootContainer(
  context: GvisorContext,
  spec: ContainerSpec,
  { signal, sandboxId = spec.id }: { readonly signal: AbortSignal; readonly sandboxId?: string },
): Promise<void> {
  await prepareRoot(context, spec, signal);
  const paths = containerLayout(context.layout, spec.id);
  // The directory is there before anything runs: a crash from here on leaves something that `list` finds.
  await mkdir(paths.execDirectory, { recursive: true, mode: 0o700 });
  for (const target of [paths.rootTarget, paths.tmpTarget]) await mkdir(target, { recursive: true, mode: 0o700 });
  if (sandboxId !== spec.id) await writeFile(sandboxNote(context.layout, spec.id), sandboxId, { mode: 0o600 });
  context.sandboxes.set(spec.id, sandboxId);
  const oci = createOciSpec({
    rootPath: paths.rootTarget,
    tmpPath: paths.tmpTarget,
    hostname: spec.hostname,
    limits: { ...context.defaultLimits, ...spec.limits },
    initDirectory: context.layout.initDirectory,
    cgroupsPath: cgroupPath(context, sandboxId),
    ...(sandboxId === spec.id ? {} : { sandboxId }),
    ...(await prepareNetwork(context, spec)),
  });
  await writeFile(paths.specPath, JSON.stringify(oci), { mode: 0o600 });
  const busybox = join(context.layout.initDirectory, "busybox");
  const args = ["run", "--detach", `--bundle=${paths.bundleDirectory}`, spec.id];
  const run =
    spec.network === undefined
      ? runsc(context, args, BOOT_DEADLINE_MS)
      : withHiddenSettings(spec.network.netnsPath, busybox, runscWithNetwork(context, args, BOOT_DEADLINE_MS));
  const view = {
    rootPath: spec.rootPath,
    rootTarget: paths.rootTarget,
    targets: { tmp: paths.tmpTarget },
    writable: [context.layout.runscRoot],
    writableMounts: ["/proc", ...(await readCgroupMounts()).map(({ mountPoint }) => mountPoint)],
  };
  const command = launchBoot(view, run);
  try {
    const { exitCode } = await context.runner.run({ ...command, outputPath: paths.bootLogPath }, { signal });
    if (exitCode !== 0) throw new Error(await readTail(paths.bootLogPath));
  } catch (cause) {
    await removeContainer(context, spec.id);
    signal.throwIfAborted();
    throw new SandboxError("RUNTIME_UNAVAILABLE", `container ${spec.id} did not boot`, { cause });
  }
}

/** Ends a container, in whatever condition it is, and removes everything of it. Idempotent. */
export async function removeContainer(context: GvisorContext, id: string, signal: AbortSignal = NEVER): Promise<void> {
  const { bundleDirectory } = containerLayout(context.layout, id);
  if (!(await wasEverBooted(context, id))) {
    context.sandboxes.delete(id);
    return;
  }
  const sandboxId = await sandboxOf(context, id);
  await endBoot(context, id, bundleDirectory);
  await tearDown({
    id,
    sandboxId,
    runscRoot: context.layout.runscRoot,
    cgroup: await cgroupOf(context, id),
    cgroupPath: cgroupPath(context, sandboxId),
    clock: context.clock,
    signal,
    repair: async (deadlineMs) => {
      for (const name of new Set([id, sandboxId]))
        await context.runner.run(runsc(context, ["delete", "--force", name], deadlineMs), { signal });
    },
  });
  await endSpawnedClients(context, id);
  if (sandboxId !== id) await rm(join(context.layout.sparesDirectory, sandboxId), { recursive: true, force: true });
  await rm(bundleDirectory, { recursive: true, force: true });
  context.sandboxes.delete(id);
}

/** Its directory is there before anything else of it, and its state goes last. */
async function wasEverBooted({ layout }: GvisorContext, id: string): Promise<boolean> {
  const { bundleDirectory } = containerLayout(layout, id);
  const paths = [bundleDirectory, stateFilePath(layout.runscRoot, id)];
  return (await Promise.all(paths.map(kindOf))).some((kind) => kind !== "missing");
}

/** The commands that wait for spawned processes end by themselves, but only soon. */
async function endSpawnedClients(context: GvisorContext, id: string): Promise<void> {
  if ((await kindOf(spawnMark(context.layout, id))) === "missing") return;
  const clients = await findRunscClients(context.layout, id);
  await endRunscClients(
    clients.filter(({ subcommand }) => subcommand === "spawn"),
    context.clock,
  );
  await removeClientGroup(context, id);
}

/** A boot that outlives the service that asked for it must not come to its end after its container was removed. */
async function endBoot(context: GvisorContext, id: string, bundleDirectory: string): Promise<void> {
  const { layout, clock } = context;
  const state = readStateFile(layout.runscRoot, id, await sandboxOf(context, id));
  if ((state !== undefined && isBooted(state)) || (await kindOf(bundleDirectory)) === "missing") return;
  const clients = await findRunscClients(layout, id);
  await endRunscClients(
    clients.filter(({ subcommand }) => subcommand === "run"),
    clock,
  );
}

/** Has the mount points made that are missing. The service itself touches nothing in a session's files. */
async function prepareRoot(
  context: GvisorContext,
  { rootPath, network }: ContainerSpec,
  signal: AbortSignal,
): Promise<void> {
  const files = network === undefined ? [] : [RESOLVER_FILE];
  await context.prepareRoot(rootPath, { directories: MOUNT_POINTS, files }, { signal });
}

/** What a container with a network needs of the host: a file with its resolver. */
async function prepareNetwork(
  { layout }: GvisorContext,
  { id, network }: ContainerSpec,
): Promise<{ readonly network?: OciNetwork }> {
  if (network === undefined) return {};
  const resolver = resolvConfPath(layout, id);
  await writeFile(resolver, `nameserver ${network.nameserver}\noptions timeout:5 attempts:2\n`, { mode: 0o644 });
  return { network: { netnsPath: network.netnsPath, resolvConfPath: resolver } };
}

async function kindOf(path: string): Promise<"directory" | "missing" | "other"> {
  const stats = await lstat(path).catch(() => undefined);
  if (stats === undefined) return "missing";
  return stats.isDirectory() ? "directory" : "other";
}

async function readTail(path: string): Promise<string> {
  const text = await readFile(path, "utf8").catch(() => "");
  return text.trim().slice(-LOG_TAIL_CHARS);
}
