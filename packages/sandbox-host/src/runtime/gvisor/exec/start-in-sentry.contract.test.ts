import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { HostCommandRunner } from "../../../system/command/host-command-runner.ts";
import { type Helper } from "../../../system/helper/helper.ts";
import { HelperProcess } from "../../../system/helper/helper-process.ts";
import type { ContainerSpec, Runtime } from "../../runtime.ts";
import { call, execSpec, ignoreOutput, run, sh, until } from "../../suite/harness.suite.ts";
import { createWorkbench, type Workbench } from "../../suite/host-harness.suite.ts";
import { createGvisorRuntime } from "../gvisor-runtime.ts";
import { findRunscClients } from "../container/runsc-clients.ts";
import { createLayout } from "../container/layout.ts";

const TEST_MS = 60_000;

/** A helper process that goes away when it is told to. */
function createMortalHelper(): Helper & Disposable & { die(): void } {
  const helper = new HelperProcess();
  let isDead = false;
  return {
    run: (spec) => (isDead ? undefined : helper.run(spec)),
    send: (request) => (isDead ? undefined : helper.send(request)),
    die: () => {
      isDead = true;
    },
    [Symbol.dispose]: () => {
      helper[Symbol.dispose]();
    },
  };
}

describe("a process that the sentry starts", () => {
  jest.setTimeout(TEST_MS);
  const helper = createMortalHelper();
  const runner = new HostCommandRunner({ helper });
  let bench: Workbench;
  let runtime: Runtime;
  let container: ContainerSpec;
  const opened: Runtime[] = [];
  const open = (): Runtime => {
    const { prepareRoot, stateDirectory } = bench;
    const made = createGvisorRuntime({ runner, helper, prepareRoot, stateDirectory, waitingShells: 0 });
    opened.push(made);
    return made;
  };
  const clients = async (): Promise<number> =>
    (await findRunscClients(createLayout(bench.stateDirectory), container.id)).length;
  const execDirectory = (): string => join(bench.stateDirectory, "containers", container.id, "exec");

  beforeAll(async () => {
    bench = await createWorkbench();
    runtime = open();
    await runtime.open(call);
    container = await bench.newContainer();
    await runtime.start(container, call);
  }, TEST_MS);
  afterAll(async () => {
    await runtime.stop(container.id, call);
    for (const one of opened) await one.close(call);
    await runner[Symbol.asyncDispose]();
    helper[Symbol.dispose]();
    await bench[Symbol.asyncDispose]();
  }, TEST_MS);

  it("has no runsc on the host, and its environment is in no process list and no file", async () => {
    const secret = "s3cret-value-of-a-variable";
    const spec = execSpec(["sleep", "100"], { env: { PATH: "/bin", SECRET: secret } });
    const execution = ignoreOutput(await runtime.exec(container.id, spec, call));
    expect(await clients()).toBe(0);
    const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
    const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")));
    expect(lines.filter((line) => line.includes(secret))).toEqual([]);
    const [name = "", ...others] = await readdir(execDirectory());
    expect(others).toEqual([]);
    expect(await readFile(join(execDirectory(), name), "utf8")).toMatch(/^\d+$/);
    await execution.kill();
    expect(await execution.exit).toEqual({ kind: "killed" });
    expect(await readdir(execDirectory())).toEqual([]);
  });

  it("is given the rights, the limits and the home that runsc gives", async () => {
    const script =
      "grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs' /proc/self/status; ulimit -n; id; echo $HOME; pwd; env";
    const argv = sh(script);
    const bySentry = await run(runtime, container.id, argv);
    const { prepareRoot, stateDirectory } = bench;
    await using plainRunner = new HostCommandRunner();
    const plain = createGvisorRuntime({ runner: plainRunner, prepareRoot, stateDirectory });
    const byRunsc = await run(plain, container.id, argv);
    await plain.close(call);
    const tell = (output: Buffer): string => output.toString().replaceAll(/TURNBOX_EXEC=.*/g, "");
    expect(tell(bySentry.stdout)).toBe(tell(byRunsc.stdout));
    expect(bySentry.stdout.toString()).toContain("CapEff:\t00000000000005fb");
  });

  it("reports its exit code and its signal as runsc does", async () => {
    expect((await run(runtime, container.id, sh("exit 255"))).exit).toEqual({ kind: "exited", exitCode: 255 });
    expect((await run(runtime, container.id, sh("kill -s TERM $$"))).exit).toEqual({ kind: "exited", exitCode: 143 });
  });

  it("carries more arguments than one message holds, by runsc", async () => {
    const long = "x".repeat(110_000);
    const { stdout } = await run(runtime, container.id, ["sh", "-c", "echo ${#1}", "sh", long]);
    expect(stdout.toString()).toBe("110000\n");
  });

  it("is proven again when the proof is lost, and started by runsc when there is no helper process", async () => {
    await rm(createLayout(bench.stateDirectory).proofPath);
    const again = open();
    await again.open(call);
    const proof = JSON.parse(await readFile(createLayout(bench.stateDirectory).proofPath, "utf8")) as object;
    expect(proof).toMatchObject({ execs: "sentry" });
    helper.die();
    const execution = ignoreOutput(await again.exec(container.id, execSpec(["sleep", "100"]), call));
    await until(async () => (await clients()) === 1);
    await execution.kill();
    expect(await execution.exit).toEqual({ kind: "killed" });
  });
});
