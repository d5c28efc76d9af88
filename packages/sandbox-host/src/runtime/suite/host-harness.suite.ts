import { randomBytes } from "node:crypto";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createChildCommandRunner } from "@turnbox/core";
import { HostCommandRunner } from "../../system/command/host-command-runner.ts";
import { prepareRootBy } from "../../compose-backends.ts";
import { createFileWorkers } from "../../file/workers.ts";
import type { PrepareRoot } from "../gvisor/context.ts";
import type { ContainerSpec } from "../runtime.ts";
import { type RuntimePrograms, sh } from "./harness.suite.ts";

/** Real programs, asked for by a shell that is in every root. */
export const SHELL_PROGRAMS: RuntimePrograms = {
  prints: ({ stdout, stderr, exitCode }) => [
    "/bin/sh",
    "-c",
    'printf %s "$1"; printf %s "$2" >&2; exit "$3"',
    "sh",
    stdout,
    stderr,
    String(exitCode),
  ],
  copiesInput: () => ["cat"],
  printsEnvironment: () => ["env"],
  printsDirectory: () => ["pwd"],
  printsFile: (path) => ["cat", path],
  writesFile: (path, text) => ["/bin/sh", "-c", 'printf %s "$2" > "$1"', "sh", path, text],
  floods: (bytes) => ["head", "-c", String(bytes), "/dev/zero"],
  waits: () => ["sleep", "1000000"],
  counts: (path) => sh(`while :; do printf . >> ${path}; sleep 0.02; done`),
};

/** A directory of its own for a test, with roots of static programs in it. */
export interface Workbench extends AsyncDisposable {
  readonly stateDirectory: string;
  readonly directory: string;
  /** Of file workers that end with the workbench. */
  readonly prepareRoot: PrepareRoot;
  newContainer(limits?: ContainerSpec["limits"]): Promise<ContainerSpec>;
}

export async function createWorkbench(): Promise<Workbench> {
  const directory = await mkdtemp(join(tmpdir(), "turnbox-runtime-"));
  const stateDirectory = join(directory, "state");
  await mkdir(stateDirectory);
  const applets = await listApplets();
  const runner = new HostCommandRunner();
  const workers = createFileWorkers({ runner, nodePath: process.execPath });
  return {
    directory,
    stateDirectory,
    prepareRoot: prepareRootBy(workers),
    newContainer: async (limits = {}) => {
      const id = `t${randomBytes(8).toString("hex")}`;
      const rootPath = join(directory, "roots", id);
      await mkdir(join(rootPath, "bin"), { recursive: true });
      for (const name of ["workspace", "etc"]) await mkdir(join(rootPath, name));
      await writeFile(join(rootPath, "etc/passwd"), "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n");
      await copyFile("/bin/busybox", join(rootPath, "bin/busybox"));
      await copyFile("/bin/bash-static", join(rootPath, "bin/bash"));
      await Promise.all(applets.map((name) => symlink("busybox", join(rootPath, "bin", name))));
      return { id, rootPath, hostname: "test", limits };
    },
    [Symbol.asyncDispose]: async () => {
      await workers[Symbol.asyncDispose]();
      await runner[Symbol.asyncDispose]();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Processes of this machine whose environment or arguments name one of the ids. */
export async function processesNaming(ids: readonly string[]): Promise<readonly string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  const named = await Promise.all(
    pids.map(async (pid) => {
      const parts = ["environ", "cmdline"].map((part) => readFile(`/proc/${pid}/${part}`, "utf8").catch(() => ""));
      const text = (await Promise.all(parts)).join("\0");
      return ids.some((id) => text.includes(id)) ? [`process ${pid}`] : [];
    }),
  );
  return named.flat();
}

async function listApplets(): Promise<readonly string[]> {
  const { stdout } = await createChildCommandRunner().run({
    command: "/bin/busybox",
    args: ["--list"],
    deadlineMs: 5000,
  });
  return stdout.split("\n").filter((name) => name !== "" && name !== "busybox");
}
