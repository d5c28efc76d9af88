import { mkdirSync, openSync, closeSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createOciSpec } from "../../packages/sandbox-host/src/runtime/gvisor/container/oci-spec.ts";
import { runscCommand } from "../../packages/sandbox-host/src/runtime/gvisor/runsc-command.ts";
import {
  stateFilePath,
  parseStateFile,
  lockFilePath,
} from "../../packages/sandbox-host/src/runtime/gvisor/container/state-file.ts";
import { environmentOf } from "../../packages/sandbox-host/src/session/environment.ts";
import { command, commandWithout } from "../run/command.ts";
import { until } from "../run/sample.ts";
import { BareCgroup } from "./bare-cgroup.ts";
import { fillBareRoot, fillInitDirectory } from "./bare-root.ts";

const CGROUP = "turnbox-bench";
const LIMITS = { memoryBytes: 2 * 1024 ** 3, pids: 4096 };
const DEADLINE_MS = 60_000;
const ENVIRONMENT = Object.entries(environmentOf()).map(([name, value]) => `--env=${name}=${value}`);

/** A sandbox that bare runsc runs. */
export interface BareSandbox {
  readonly id: string;
  readonly sentryPid: number;
  readonly goferPid: number;
}

/** `runsc` as a person calls it, with the flags, the spec and the limits that the host uses. */
export class BareRunsc implements AsyncDisposable {
  readonly #directory: string;
  readonly #running = new Set<string>();
  #serial = 0;

  private constructor(directory: string) {
    this.#directory = directory;
  }

  static async open(): Promise<BareRunsc> {
    const directory = await mkdtemp(join(tmpdir(), "turnbox-bench-runsc-"));
    await fillBareRoot(join(directory, "root"));
    await fillInitDirectory(join(directory, "init"));
    mkdirSync(join(directory, "runsc"), { mode: 0o700 });
    return new BareRunsc(directory);
  }

  /** A plain directory with static busybox and bash. */
  get rootPath(): string {
    return join(this.#directory, "root");
  }

  /** Writes a bundle: what is there before anybody runs it. Answers with its id. */
  async bundle(rootPath = this.rootPath): Promise<string> {
    this.#serial += 1;
    const id = `bare${String(this.#serial).padStart(8, "0")}`;
    await mkdir(this.#bundle(id), { recursive: true });
    const spec = createOciSpec({
      rootPath,
      tmpPath: join(rootPath, "tmp"),
      hostname: "bare",
      limits: LIMITS,
      initDirectory: join(this.#directory, "init"),
      cgroupsPath: `/${CGROUP}/${id}`,
    });
    await writeFile(join(this.#bundle(id), "config.json"), JSON.stringify(spec));
    return id;
  }

  /** `runsc run --detach`. */
  async run(id: string): Promise<void> {
    this.#running.add(id);
    const log = openSync(join(this.#bundle(id), "boot.log"), "w");
    try {
      const args = this.#args(["run", "--detach", `--bundle=${this.#bundle(id)}`, id]);
      await commandWithout(["ignore", log, log], "runsc", args);
    } catch (cause) {
      throw new Error(readFileSync(join(this.#bundle(id), "boot.log"), "utf8"), { cause });
    } finally {
      closeSync(log);
    }
  }

  /** `runsc exec ID sh -c SCRIPT`; the shell is bash unless given, and its environment the tool's. */
  async exec(id: string, script: string, shell: readonly string[] = ["/bin/sh"]): Promise<string> {
    return await command("runsc", this.#args(["exec", ...ENVIRONMENT, id, ...shell, "-c", script]));
  }

  find(id: string): BareSandbox {
    const state = parseStateFile(readFileSync(stateFilePath(this.#runscRoot, id), "utf8"));
    if (state === undefined) throw new Error(`runsc has no state of ${id}`);
    return { id, sentryPid: state.sandboxPid, goferPid: state.goferPid };
  }

  /** Ends a sandbox in the quick way: `runsc delete` polls for up to two seconds. */
  async end(id: string): Promise<void> {
    const cgroup = new BareCgroup(join(CGROUP, id));
    await until(`${id} to end`, () => {
      for (const pid of cgroup.pids()) kill(pid);
      return cgroup.remove();
    });
    for (const path of [lockFilePath(this.#runscRoot, id), stateFilePath(this.#runscRoot, id)])
      await rm(path, { force: true });
    await rm(this.#bundle(id), { recursive: true, force: true });
    this.#running.delete(id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const id of this.#running) await this.end(id);
    new BareCgroup(CGROUP).remove();
    await rm(this.#directory, { recursive: true, force: true });
  }

  get #runscRoot(): string {
    return join(this.#directory, "runsc");
  }

  #bundle(id: string): string {
    return join(this.#directory, "bundles", id);
  }

  #args(args: readonly string[]): readonly string[] {
    return runscCommand({ runscPath: "runsc", runscRoot: this.#runscRoot, args, deadlineMs: DEADLINE_MS }).args;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended in the meantime.
  }
}
