import { createHash } from "node:crypto";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { access, chmod, lstat, mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { type CommandRunner, createChildCommandRunner, systemClock } from "@turnbox/core";
import { HostCommandRunner } from "../../system/command/host-command-runner.ts";
import type { ContainerSpec } from "../runtime.ts";
import {
  call,
  countProcesses,
  execSpec,
  finish,
  ignoreOutput,
  reasonOf,
  type RuntimeHarness,
  run,
  sh,
  until,
} from "../suite/harness.suite.ts";
import type { Workbench } from "../suite/host-harness.suite.ts";
import { createGvisorRuntime } from "./gvisor-runtime.ts";

const TEST_TIMEOUT_MS = 60_000;
const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
const MIB = 1024 * 1024;
/** For runtimes that start no container. */
const bootsNothing = (): Promise<void> => Promise.reject(new Error("this runtime boots nothing"));

/** What is true of gVisor alone. */
export function gvisorSuite(
  createHarness: () => Promise<RuntimeHarness>,
  createWorkbench: () => Promise<Workbench>,
): void {
  describe("a gVisor container", () => {
    jest.setTimeout(TEST_TIMEOUT_MS);
    let harness: RuntimeHarness;
    let container: ContainerSpec;
    const text = async (script: string): Promise<string> =>
      (await run(harness.runtime, container.id, sh(script))).stdout.toString().trim();
    const startNew = async (limits = {}): Promise<ContainerSpec> => {
      const fresh = await harness.newContainer(limits);
      await harness.runtime.start(fresh, call);
      return fresh;
    };
    beforeAll(async () => {
      harness = await createHarness();
      await harness.runtime.open(call);
      container = await startNew();
    }, TEST_TIMEOUT_MS);
    afterAll(async () => {
      const ids = await harness.runtime.list(call);
      for (const id of ids) await harness.runtime.stop(id, call);
      const leftovers = await harness.leftovers(ids);
      await harness[Symbol.asyncDispose]();
      expect(leftovers).toEqual([]);
    }, TEST_TIMEOUT_MS);

    it("keeps /tmp on the root's own files, and /run and /dev/shm off them", async () => {
      await text("echo kept > /tmp/a; echo gone > /run/b; echo gone > /dev/shm/c");
      expect(await readFile(join(container.rootPath, "tmp/a"), "utf8")).toBe("kept\n");
      expect(await readdir(join(container.rootPath, "run"))).toEqual(["turnbox"]);
      expect(await readdir(join(container.rootPath, "dev"))).toEqual([]);
      expect((await lstat(join(container.rootPath, "tmp"))).mode & 0o7777).toBe(0o1777);
    });

    it("gives uid 0 inside the nine capabilities and no way to more", async () => {
      const status = await text("id -u; grep -E 'Cap(Prm|Eff|Bnd)|NoNewPrivs' /proc/self/status; ulimit -n; hostname");
      const granted = [0, 1, 3, 4, 5, 6, 7, 8, 10].reduce((bits, bit) => bits | (1 << bit), 0);
      const mask = granted.toString(16).padStart(16, "0");
      expect(status).toContain(`CapPrm:\t${mask}`);
      expect(status).toContain(`CapEff:\t${mask}`);
      expect(status).toContain(`CapBnd:\t${mask}`);
      expect(status).toContain("65536");
      expect(status).toContain("test");
      expect(
        await text("mount -t tmpfs none /mnt 2>&1; mkdir /mnt; mount -t tmpfs none /mnt && echo mounted"),
      ).not.toContain("mounted");
    });

    it("cannot change the program that all containers share, not even by emptying it", async () => {
      const shared = join(container.rootPath, "../../state/init/busybox");
      const before = sha256(await readFile(shared));
      for (const attempt of [
        "umount /run/turnbox",
        "echo x > /run/turnbox/busybox",
        "echo x >> /run/turnbox/busybox",
        "truncate -s 0 /run/turnbox/busybox",
        "rm -f /run/turnbox/busybox",
        "mv /run/turnbox/busybox /run/turnbox/other",
        "chmod 777 /run/turnbox/busybox",
        "echo x > /run/turnbox/new",
        "cat /dev/null > /proc/1/exe",
      ]) {
        expect(await text(`(${attempt}) 2>/dev/null && echo changed`)).toBe("");
      }
      expect(sha256(await readFile(shared))).toBe(before);
      expect(await readdir(join(shared, ".."))).toEqual(["busybox"]);
    });

    it("sees nothing of the host: no files, no processes, no network, no descriptors", async () => {
      await writeFile(join(container.rootPath, "..", "canary"), "secret");
      expect(await text("cat /../../canary /proc/1/root/../canary 2>/dev/null")).toBe("");
      expect(await text("ls /proc | grep -c '^[0-9]'")).toMatch(/^[3-9]$/);
      expect(await text("ls /sys/class/net 2>/dev/null | grep -v lo")).toBe("");
      expect(await text("for n in 3 4 5 6 7 8 9 64; do [ -e /proc/1/fd/$n ] && echo $n; done")).toBe("");
      for (const fd of [7, 8, 9]) {
        const spec = execSpec(sh("ls"), { cwd: `/proc/self/fd/${String(fd)}` });
        expect(await reasonOf(harness.runtime.exec(container.id, spec, call))).toBe("INVALID_ARGUMENT");
      }
    });

    it("reaps orphans: a thousand leave no zombie", async () => {
      await text("i=0; while [ $i -lt 1000 ]; do : & i=$((i+1)); done");
      await until(async () => (await text("cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '; true")) === "0");
    });

    it("keeps PID 1 when its sleep is killed and when it is asked to end", async () => {
      await text(
        "kill -s TERM 1; kill -s HUP 1; for p in $(cat /proc/[0-9]*/stat | awk '$4 == 1 {print $1}'); do kill -s KILL $p; done",
      );
      expect(await harness.runtime.liveness(container.id, call)).toBe("running");
      await text("i=0; while [ $i -lt 50 ]; do (true &); i=$((i+1)); done");
      await until(async () => (await text("cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') Z '; true")) === "0");
    });

    it("ends processes of other users too", async () => {
      const argv = sh("su -s /bin/sh nobody -c 'setsid sleep 8000001' & sleep 8000001");
      const execution = ignoreOutput(await harness.runtime.exec(container.id, execSpec(argv), call));
      await until(async () => (await countProcesses(harness.runtime, container.id, "8000001")) >= 2);
      await execution.kill();
      expect(await countProcesses(harness.runtime, container.id, "8000001")).toBe(0);
    });

    it("lets a process open its input again by name", async () => {
      const execution = await harness.runtime.exec(container.id, execSpec(sh("cat /dev/stdin")), call);
      expect((await finish(execution, "by name")).stdout.toString()).toBe("by name");
    });

    it("keeps the environment of a process out of every host process list and off the disk", async () => {
      const secret = "s3cret-value-of-a-variable";
      const spec = execSpec(["sleep", "100"], { env: { PATH: "/bin", SECRET: secret } });
      const execution = ignoreOutput(await harness.runtime.exec(container.id, spec, call));
      const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
      const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")));
      expect(lines.some((line) => line.includes("internal-pid-file"))).toBe(true);
      expect(lines.filter((line) => line.includes(secret))).toEqual([]);
      const execDirectory = join(container.rootPath, "../../state/containers", container.id, "exec");
      const execFiles = await readdir(execDirectory);
      expect(execFiles.map((name) => name.split(".")[1])).toEqual(["pid"]);
      await execution.kill();
      await execution.exit;
      expect(await readdir(execDirectory)).toEqual([]);
    });

    it("reports the whole sandbox's death for want of memory as oom", async () => {
      const { runtime } = harness;
      const small = await startNew({ memoryBytes: 48 * MIB });
      const waiting = ignoreOutput(await runtime.exec(small.id, execSpec(["sleep", "1000"]), call));
      const { exit } = await run(runtime, small.id, sh("dd if=/dev/zero of=/dev/shm/hog bs=1M count=60; sleep 1000"));
      expect(exit).toEqual({ kind: "oom" });
      expect(await waiting.exit).toEqual({ kind: "oom" });
      expect(await runtime.liveness(small.id, call)).toBe("gone");
      await runtime.stop(small.id, call);
    });

    it("reports why a sandbox died, also after it was removed", async () => {
      const { runtime } = harness;
      const small = await startNew({ memoryBytes: 48 * MIB });
      const directory = join(small.rootPath, "..", `${small.id}-spawned`);
      await mkdir(directory);
      const spawned = { name: "a".repeat(26), directory };
      const outputPath = join(directory, "output");
      await runtime.spawn(small.id, { ...execSpec(["sleep", "1000"]), ...spawned, outputPath }, call);
      const waiting = ignoreOutput(await runtime.exec(small.id, execSpec(["sleep", "1000"]), call));
      await run(runtime, small.id, sh("dd if=/dev/zero of=/dev/shm/hog bs=1M count=60; sleep 1000"));
      await runtime.stop(small.id, call);
      expect(await waiting.exit).toEqual({ kind: "oom" });
      await until(async () => (await runtime.inspect(small.id, spawned, call)).kind !== "running");
      expect(await runtime.inspect(small.id, spawned, call)).toEqual({ kind: "oom" });
    });

    it("takes a sandbox without its gofer for gone, and cleans up after it", async () => {
      const { runtime } = harness;
      const victim = await startNew();
      const stateFile = join(victim.rootPath, "../../state/runsc", `${victim.id}_sandbox:${victim.id}.state`);
      const { goferPid } = JSON.parse(await readFile(stateFile, "utf8")) as { goferPid: number };
      process.kill(goferPid, "SIGKILL");
      await until(async () => (await runtime.liveness(victim.id, call)) === "gone");
      await runtime.stop(victim.id, call);
      expect(await harness.leftovers([victim.id])).toEqual([]);
    });

    it("survives a kill -9 of the command that started a process, and ends what it started", async () => {
      const { runtime } = harness;
      const execution = ignoreOutput(await runtime.exec(container.id, execSpec(["sleep", "8000002"]), call));
      const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
      for (const pid of pids) {
        const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
        if (line.includes(container.id) && line.includes("internal-pid-file")) process.kill(Number(pid), "SIGKILL");
      }
      expect(await execution.exit).toEqual({ kind: "killed" });
      expect(await countProcesses(runtime, container.id, "8000002")).toBe(0);
    });

    it.each([
      ["is not answered", "exec sleep 1000"],
      ["is cut off", "kill -s KILL $$"],
    ])("does not claim that nothing ran where a start %s", async (_, behaviour) => {
      const directory = join(container.rootPath, "../..");
      const runscPath = join(directory, "runsc-that-fails");
      const script = `case "$*" in *--internal-pid-file*) ${behaviour};; *) exec runsc "$@";; esac`;
      await writeFile(runscPath, `#!/bin/sh\n${script}\n`);
      await chmod(runscPath, 0o755);
      // A clock by which half a minute is over in a second.
      const clock = { ...systemClock, monotonicMs: () => 30 * performance.now() };
      await using runner = new HostCommandRunner();
      const runtime = createGvisorRuntime({
        runner,
        prepareRoot: bootsNothing,
        stateDirectory: join(directory, "state"),
        runscPath,
        clock,
      });
      await expect(runtime.exec(container.id, execSpec(sh("true")), call)).rejects.toMatchObject({
        reason: "RUNTIME_UNAVAILABLE",
        admitted: "unknown",
      });
      const execDirectory = join(directory, "state/containers", container.id, "exec");
      expect(await readdir(execDirectory)).toEqual([]);
    });

    it("takes a container whose boot was cut off for gone, and away at the next open", async () => {
      const { runtime } = harness;
      const stateDirectory = join(container.rootPath, "../../state");
      const victim = await startNew();
      const stateFile = join(stateDirectory, "runsc", `${victim.id}_sandbox:${victim.id}.state`);
      const text = await readFile(stateFile, "utf8");
      await writeFile(stateFile, text.replace('"status":"running"', '"status":"created"'));
      expect(await runtime.liveness(victim.id, call)).toBe("gone");
      expect(await reasonOf(runtime.exec(victim.id, execSpec(sh("true")), call))).toBe("SANDBOX_LOST");

      const bundle = await harness.newContainer();
      await mkdir(join(stateDirectory, "containers", bundle.id, "exec"), { recursive: true });
      const args = ["-c", "read line", "sh", `--root=${join(stateDirectory, "runsc")}`, "--x", "run", bundle.id];
      const boot = spawn("/bin/sh", args, { stdio: ["pipe", "ignore", "ignore"] });
      const probe = `probe${"x".repeat(21)}`;
      await mkdir(join(stateDirectory, `containers.${probe}`, "proc"), { recursive: true });
      await mkdir(join(stateDirectory, "containers", probe));

      const ended = once(boot, "exit");
      await harness.reopen().open(call);
      expect((await ended)[1]).toBe("SIGKILL");
      expect(await harness.leftovers([victim.id, bundle.id, probe])).toEqual([]);
      expect(await runtime.liveness(container.id, call)).toBe("running");
    });

    it("pauses a container again although the work that it was thawed for failed", async () => {
      const { runtime } = harness;
      const frozen = await startNew();
      const execution = ignoreOutput(await runtime.exec(frozen.id, execSpec(["sleep", "1000"]), call));
      await runtime.pause(frozen.id, call);
      const runner = createChildCommandRunner();
      const cutOff: CommandRunner = {
        ...runner,
        run: (spec, options) =>
          spec.args.includes("exec") ? Promise.reject(new Error("cut off")) : runner.run(spec, options),
      };
      const stateDirectory = join(frozen.rootPath, "../../state");
      const second = createGvisorRuntime({ runner: cutOff, prepareRoot: bootsNothing, stateDirectory });
      await expect(second.quiesce(frozen.id, call)).rejects.toThrow("cut off");
      expect(await runtime.liveness(frozen.id, call)).toBe("paused");
      await runtime.stop(frozen.id, call);
      expect(await execution.exit).toEqual({ kind: "killed" });
    });

    it.each(["proc", "sys", "dev", "run", "tmp"])("refuses a root whose /%s is a link", async (name) => {
      const crafted = await harness.newContainer();
      await symlink("/etc", join(crafted.rootPath, name));
      expect(await reasonOf(harness.runtime.start(crafted, call))).toBe("PATH_REFUSED");
      expect(await harness.runtime.list(call)).not.toContain(crafted.id);
    });

    it("refuses ids and arguments that are not what they should be", async () => {
      const { runtime } = harness;
      for (const id of ["", "-rf", "../x", "A", "a b", "--root=/", "x".repeat(65)]) {
        expect(await reasonOf(runtime.start({ ...container, id }, call))).toBe("INVALID_ARGUMENT");
        expect(await reasonOf(runtime.stop(id, call))).toBe("INVALID_ARGUMENT");
      }
      const bad = [
        execSpec(["a\0b"]),
        execSpec(["true", "x".repeat(200_000)]),
        execSpec(["true"], { env: { "A=B": "c" } }),
        execSpec(["true"], { cwd: "relative" }),
      ];
      for (const spec of bad) expect(await reasonOf(runtime.exec(container.id, spec, call))).toBe("INVALID_ARGUMENT");
    });

    it("does not start a process whose start is cancelled, and leaves none behind", async () => {
      const { runtime } = harness;
      for (const delayMs of [5, 15, 25, 35]) {
        const signal = AbortSignal.timeout(delayMs);
        const started = await runtime
          .exec(container.id, execSpec(["sleep", "8000003"]), { signal })
          .catch(() => undefined);
        if (started !== undefined) await ignoreOutput(started).kill();
      }
      expect(await countProcesses(runtime, container.id, "8000003")).toBe(0);
    });

    it("leaves nothing of a boot that is cancelled", async () => {
      const { runtime } = harness;
      for (const delayMs of [20, 60, 100, 140]) {
        const fresh = await harness.newContainer();
        const result = await runtime.start(fresh, { signal: AbortSignal.timeout(delayMs) }).catch(() => "cancelled");
        if (result !== "cancelled") await runtime.stop(fresh.id, call);
        expect(await harness.leftovers([fresh.id])).toEqual([]);
      }
    });
  });

  describe("opening gVisor", () => {
    const runner = new HostCommandRunner();
    afterAll(async () => {
      await runner[Symbol.asyncDispose]();
    });

    it("says that runsc is not installed", async () => {
      await using bench = await createWorkbench();
      const runtime = createGvisorRuntime({
        runner,
        prepareRoot: bench.prepareRoot,
        stateDirectory: bench.stateDirectory,
        runscPath: "runsc-not-here",
      });
      await expect(runtime.open(call)).rejects.toMatchObject({
        reason: "RUNTIME_UNAVAILABLE",
        message: expect.stringContaining("not installed"),
      });
    });

    it.each([
      ["is too old", "echo runsc version release-20230101.0", "older than 20240101"],
      ["says nothing of its version", "echo something else", "what version"],
      [
        "does not boot",
        'case $1 in --version) echo runsc version release-20990101.0;; *) echo "no platform" >&2; exit 128;; esac',
        "no platform",
      ],
    ])("says that runsc %s", async (_, script, message) => {
      await using bench = await createWorkbench();
      const { prepareRoot, stateDirectory } = bench;
      const runscPath = join(bench.directory, "runsc");
      await writeFile(runscPath, `#!/bin/sh\n${script}\n`);
      await chmod(runscPath, 0o755);
      const runtime = createGvisorRuntime({ runner, prepareRoot, stateDirectory, runscPath });
      await expect(runtime.open(call)).rejects.toMatchObject({
        reason: "RUNTIME_UNAVAILABLE",
        message: expect.stringContaining(message),
      });
      expect(await runtime.list(call)).toEqual([]);
    });

    it("says that there is no static busybox", async () => {
      await using bench = await createWorkbench();
      const { prepareRoot, stateDirectory } = bench;
      const busyboxPath = join(bench.directory, "busybox");
      const runtime = createGvisorRuntime({ runner, prepareRoot, stateDirectory, busyboxPath });
      await expect(runtime.open(call)).rejects.toMatchObject({ reason: "RUNTIME_UNAVAILABLE" });
    });

    it("proves it by a run, once per boot, and again when the proof is gone", async () => {
      await using bench = await createWorkbench();
      const { prepareRoot, stateDirectory } = bench;
      const runtime = createGvisorRuntime({ runner, prepareRoot, stateDirectory });
      await runtime.open(call);
      const proofPath = join(bench.stateDirectory, "proof.json");
      await access(proofPath);
      await writeFile(proofPath, "a proof of another boot");
      await runtime.open(call);
      expect(await readFile(proofPath, "utf8")).toContain("bootId");
      expect(await runtime.list(call)).toEqual([]);
      expect((await readdir(bench.stateDirectory)).toSorted()).toEqual(["containers", "init", "proof.json", "runsc"]);
    });
  });
}
