import { copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ContainerLimits } from "../../runtime.ts";
import { createCgroup, readCgroupMounts } from "../container/cgroup.ts";
import { cgroupPath, type GvisorContext, runsc } from "../context.ts";
import { endRunscClients, findRunscClients } from "../container/runsc-clients.ts";
import { createSpareSpec, INIT_MOUNT, INIT_PROGRAM } from "../container/oci-spec.ts";
import { tearDown } from "../container/teardown.ts";

const IMAGE_DEADLINE_MS = 20_000;
const BOOT_DEADLINE_MS = 60_000;
const DIRECTORIES = ["proc", "sys", "dev", INIT_MOUNT];

/** What a spare is bound by, and so the containers that fit into it. */
export interface SpareShape {
  readonly hostname: string;
  readonly limits: ContainerLimits;
}

/** Makes the image that spares run on: one program. Returns whether there is one; it takes `mkfs.erofs`. */
export async function makeSpareImage({ runner, layout }: GvisorContext, signal: AbortSignal): Promise<boolean> {
  const program = join(layout.initDirectory, "busybox");
  const [source, present] = await Promise.all([stat(program), stat(layout.spareImagePath).catch(() => undefined)]);
  if (present !== undefined && present.mtimeMs >= source.mtimeMs) return true;
  const files = await mkdtemp(`${layout.spareImagePath}-`);
  const image = `${files}.new`;
  try {
    for (const name of DIRECTORIES) await mkdir(join(files, name), { recursive: true });
    await copyFile(program, join(files, INIT_PROGRAM));
    // gVisor reads files that lie in blocks of their own.
    const args = ["-E", "noinline_data", image, files];
    const { exitCode } = await runner.run({ command: "mkfs.erofs", args, deadlineMs: IMAGE_DEADLINE_MS }, { signal });
    if (exitCode !== 0) return false;
    await rename(image, layout.spareImagePath);
    return true;
  } catch {
    signal.throwIfAborted();
    return false;
  } finally {
    await rm(files, { recursive: true, force: true });
    await rm(image, { force: true });
  }
}

/** Boots one. Whatever a failure has left is removed again. */
export async function bootSpare(
  context: GvisorContext,
  id: string,
  { shape, signal }: { readonly shape: SpareShape; readonly signal: AbortSignal },
): Promise<void> {
  const { layout } = context;
  const bundle = join(layout.sparesDirectory, id);
  const rootPath = join(bundle, "root");
  const bootLogPath = join(bundle, "boot.log");
  // As with containers, the directory comes first and goes last.
  await mkdir(rootPath, { recursive: true, mode: 0o700 });
  const cgroupsPath = cgroupPath(context, id);
  const oci = createSpareSpec({ ...shape, rootPath, imagePath: layout.spareImagePath, cgroupsPath });
  await writeFile(join(bundle, "config.json"), JSON.stringify(oci), { mode: 0o600 });
  try {
    const command = runsc(context, ["run", "--detach", `--bundle=${bundle}`, id], BOOT_DEADLINE_MS);
    const { exitCode } = await context.runner.run({ ...command, outputPath: bootLogPath }, { signal });
    if (exitCode !== 0) throw new Error(await readFile(bootLogPath, "utf8").catch(() => ""));
  } catch (thrown) {
    await removeSpare(context, id, AbortSignal.timeout(BOOT_DEADLINE_MS));
    throw thrown;
  }
}

/** Freezes one that has not been taken for a while. */
export async function freezeSpare(context: GvisorContext, id: string, isWanted: () => boolean): Promise<void> {
  const path = cgroupPath(context, id);
  const pids = await createCgroup(await readCgroupMounts(), path).pids();
  if (isWanted()) context.freezer?.freeze(path, pids);
}

/** Called before a container is booted in it. */
export function thawSpare(context: GvisorContext, id: string): void {
  context.freezer?.thaw(cgroupPath(context, id));
}

/** Ends one that no container is in. Idempotent. */
export async function removeSpare(context: GvisorContext, id: string, signal: AbortSignal): Promise<void> {
  const { layout, clock } = context;
  const path = cgroupPath(context, id);
  const clients = await findRunscClients(layout, id);
  // A boot that outlives the service that asked for it must not come to its end behind this.
  await endRunscClients(
    clients.filter(({ subcommand }) => subcommand === "run"),
    clock,
  );
  await tearDown({
    id,
    sandboxId: id,
    runscRoot: layout.runscRoot,
    cgroup: createCgroup(await readCgroupMounts(), path),
    cgroupPath: path,
    clock,
    signal,
    repair: async (deadlineMs) => {
      await context.runner.run(runsc(context, ["delete", "--force", id], deadlineMs), { signal });
    },
  });
  await rm(join(layout.sparesDirectory, id), { recursive: true, force: true });
}

/** Ends all but those that containers are in. */
export async function removeUnusedSpares(
  context: GvisorContext,
  used: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<void> {
  const ids = await readdir(context.layout.sparesDirectory).catch(() => []);
  for (const id of ids) if (!used.has(id)) await removeSpare(context, id, signal);
}
