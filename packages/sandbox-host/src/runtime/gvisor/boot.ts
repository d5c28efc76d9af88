import { chmod, lstat, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { invalidArgument, SandboxError } from "@turnbox/core";
import type { ContainerSpec } from "../runtime.ts";
import { cgroupOf, cgroupPath, type GvisorContext, runsc } from "./context.ts";
import { endHostClients, findHostClients } from "./host-clients.ts";
import { containerLayout } from "./layout.ts";
import { createOciSpec, MOUNT_POINTS } from "./oci-spec.ts";
import { withReadOnly } from "./runsc-command.ts";
import { isBooted, readStateFile } from "./state-file.ts";
import { tearDown } from "./teardown.ts";

const BOOT_DEADLINE_MS = 60_000;
const NEVER = new AbortController().signal;
const LOG_TAIL_CHARS = 2000;

/** Boots a container that is not there. Whatever a failure has left is taken away again. */
export async function bootContainer(context: GvisorContext, spec: ContainerSpec, signal: AbortSignal): Promise<void> {
  await prepareRoot(spec.rootPath);
  const paths = containerLayout(context.layout, spec.id);
  // The directory is there before anything runs: a crash from here on leaves something that `list` finds.
  await mkdir(paths.execDirectory, { recursive: true, mode: 0o700 });
  const oci = createOciSpec({
    rootPath: spec.rootPath,
    hostname: spec.hostname,
    limits: { ...context.defaultLimits, ...spec.limits },
    initDirectory: context.layout.initDirectory,
    cgroupsPath: cgroupPath(context, spec.id),
  });
  await writeFile(paths.specPath, JSON.stringify(oci), { mode: 0o600 });
  const run = runsc(context, ["run", "--detach", `--bundle=${paths.bundleDirectory}`, spec.id], BOOT_DEADLINE_MS);
  const { initDirectory } = context.layout;
  const command = withReadOnly(initDirectory, join(initDirectory, "busybox"), run);
  try {
    const { exitCode } = await context.runner.run({ ...command, outputPath: paths.bootLogPath }, { signal });
    if (exitCode !== 0) throw new Error(await readTail(paths.bootLogPath));
  } catch (cause) {
    await removeContainer(context, spec.id);
    signal.throwIfAborted();
    throw new SandboxError("RUNTIME_UNAVAILABLE", `container ${spec.id} did not boot`, { cause });
  }
}

/** Ends a container, in whatever condition it is, and takes away everything of it. Idempotent. */
export async function removeContainer(context: GvisorContext, id: string, signal: AbortSignal = NEVER): Promise<void> {
  const { bundleDirectory } = containerLayout(context.layout, id);
  await endBoot(context, id, bundleDirectory);
  await tearDown({
    id,
    runscRoot: context.layout.runscRoot,
    cgroup: await cgroupOf(context, id),
    cgroupPath: cgroupPath(context, id),
    clock: context.clock,
    signal,
    repair: async (deadlineMs) => {
      await context.runner.run(runsc(context, ["delete", "--force", id], deadlineMs), { signal });
    },
  });
  await rm(bundleDirectory, { recursive: true, force: true });
}

/** A boot that outlives the service that asked for it must not come to its end after its container was taken away. */
async function endBoot({ layout, clock }: GvisorContext, id: string, bundleDirectory: string): Promise<void> {
  const state = await readStateFile(layout.runscRoot, id);
  if ((state !== undefined && isBooted(state)) || (await kindOf(bundleDirectory)) === "missing") return;
  const clients = await findHostClients(layout, id);
  await endHostClients(
    clients.filter(({ subcommand }) => subcommand === "run"),
    clock,
  );
}

/**
 * Makes the mount points that are missing. One that is anything but a directory is refused: a link there would have the
 * host mount what it points to.
 */
async function prepareRoot(rootPath: string): Promise<void> {
  if ((await kindOf(rootPath)) !== "directory") throw invalidArgument("rootPath", "is not a directory");
  for (const { path, mode } of MOUNT_POINTS) {
    const full = join(rootPath, path);
    const kind = await kindOf(full);
    if (kind === "other") throw invalidArgument("rootPath", `/${path} is not a directory`);
    if (kind === "directory") continue;
    await mkdir(full);
    await chmod(full, mode);
  }
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
