import { createHash, randomBytes } from "node:crypto";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "@jest/globals";
import type { ContainerSpec } from "../runtime.ts";
import {
  type Argv,
  call,
  execSpec,
  finish,
  ignoreOutput,
  PATH,
  reasonOf,
  type RuntimeHarness,
  type RuntimeTraits,
  run,
  sh,
  until,
} from "./harness.suite.ts";

export interface Started {
  readonly harness: RuntimeHarness;
  readonly container: ContainerSpec;
}

/** What every runtime does with one process. */
export function execSuite(started: () => Started, traits: RuntimeTraits): void {
  const setup = () => {
    const { harness, container } = started();
    return { runtime: harness.runtime, programs: harness.programs, id: container.id, rootPath: container.rootPath };
  };

  it.each([0, 1, 42, 127, 255])("reports exit code %i, and both outputs apart", async (exitCode) => {
    const { runtime, programs, id } = setup();
    const outcome = await run(runtime, id, programs.prints({ stdout: "to out", stderr: "to err", exitCode }));
    expect({ ...outcome, stdout: outcome.stdout.toString() }).toEqual({
      stdout: "to out",
      stderr: "to err",
      exit: { kind: "exited", exitCode },
    });
  });

  it("runs what comes all the same, whatever was said to come", async () => {
    const { runtime, programs, id } = setup();
    const printing = programs.prints({ stdout: "x", stderr: "", exitCode: 0 });
    runtime.prewarm?.expectNone("nothing-of-the-name");
    runtime.prewarm?.hurry("nothing-of-the-name");
    runtime.prewarm?.expectNone(id);
    expect((await run(runtime, id, printing)).stdout.toString()).toBe("x");
    await runtime.prewarm?.anticipate(id, execSpec(printing), call);
    expect((await run(runtime, id, printing)).stdout.toString()).toBe("x");
    expect(await runtime.processes(id, call)).toBe(0);
  });

  it("takes a program's own exit code 128 for what it is", async () => {
    const { runtime, programs, id } = setup();
    const { exit } = await run(runtime, id, programs.prints({ stdout: "", stderr: "", exitCode: 128 }));
    expect(exit).toEqual({ kind: "exited", exitCode: 128 });
  });

  it("passes input through, byte by byte, and closes it", async () => {
    const { runtime, programs, id } = setup();
    const execution = await runtime.exec(id, execSpec(programs.copiesInput()), call);
    execution.stdin.write("first ");
    const { stdout, exit } = await finish(execution, "then the rest");
    expect(stdout.toString()).toBe("first then the rest");
    expect(exit).toEqual({ kind: "exited", exitCode: 0 });
  });

  it("lets go of an input that was not ended when the process has ended", async () => {
    const { runtime, programs, id } = setup();
    const printing = programs.prints({ stdout: "x", stderr: "", exitCode: 0 });
    const execution = ignoreOutput(await runtime.exec(id, execSpec(printing), call));
    expect(await execution.exit).toEqual({ kind: "exited", exitCode: 0 });
    expect(execution.stdin.destroyed).toBe(true);
  });

  it("brings 32 MiB of binary output whole and in order", async () => {
    const { runtime, programs, id, rootPath } = setup();
    const bytes = randomBytes(32 * 1024 * 1024);
    await writeFile(join(rootPath, "workspace/big"), bytes);
    const { stdout, exit } = await run(runtime, id, programs.printsFile("big"));
    expect(exit).toEqual({ kind: "exited", exitCode: 0 });
    expect(stdout.length).toBe(bytes.length);
    expect(sha256(stdout)).toBe(sha256(bytes));
  });

  it("gives a process the environment that was asked for and nothing of the host's (D19)", async () => {
    const { runtime, programs, id } = setup();
    process.env["TURNBOX_TEST_SECRET"] = "leaked";
    const env = { PATH, HOME: "/workspace", QUOTED: "a b'c\"d$e", EMPTY: "" };
    const { stdout } = await run(runtime, id, programs.printsEnvironment(), { env });
    delete process.env["TURNBOX_TEST_SECRET"];
    const given = new Map(
      stdout
        .toString()
        .trim()
        .split("\n")
        .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
    );
    for (const name of traits.addedVariables) given.delete(name);
    expect(Object.fromEntries(given)).toEqual(env);
  });

  it("starts a process in its working directory", async () => {
    const { runtime, programs, id } = setup();
    const { stdout } = await run(runtime, id, programs.printsDirectory());
    expect(stdout.toString().trim()).toMatch(/\/workspace$/);
  });

  it("refuses a program and a directory that are not there", async () => {
    const { runtime, programs, id } = setup();
    const { runtime: same } = setup();
    expect(await reasonOf(runtime.exec(id, execSpec(["/no/such/program"]), call))).toBe("INVALID_ARGUMENT");
    expect(await reasonOf(runtime.exec(id, execSpec(["no-such-program"]), call))).toBe("INVALID_ARGUMENT");
    const elsewhere = execSpec(programs.printsDirectory(), { cwd: "/no/such/directory" });
    expect(await reasonOf(same.exec(id, elsewhere, call))).toBe("INVALID_ARGUMENT");
  });

  it("does not start under a signal that was given already", async () => {
    const { runtime, programs, id } = setup();
    const signal = AbortSignal.abort();
    await expect(runtime.exec(id, execSpec(programs.waits()), { signal })).rejects.toMatchObject({
      name: "AbortError",
    });
  });

  it("runs eight at a time, each with its own streams", async () => {
    const { runtime, programs, id } = setup();
    const texts = Array.from({ length: 8 }, (_, index) => `number ${String(index)}`);
    const outcomes = await Promise.all(
      texts.map((text) => run(runtime, id, programs.prints({ stdout: text, stderr: "", exitCode: 0 }))),
    );
    expect(outcomes.map(({ stdout }) => stdout.toString())).toEqual(texts);
  });

  it("shows writes inside to the outside at once, and the other way round", async () => {
    const { runtime, programs, id, rootPath } = setup();
    for (const round of ["one", "a longer two", "3"]) {
      await run(runtime, id, programs.writesFile("shared", round));
      expect(await readFile(join(rootPath, "workspace/shared"), "utf8")).toBe(round);
      await writeFile(join(rootPath, "workspace/shared"), `${round} from outside`);
      const { stdout } = await run(runtime, id, programs.printsFile("shared"));
      expect(stdout.toString()).toBe(`${round} from outside`);
    }
  });

  it("ends the outputs before it reports the exit", async () => {
    const { runtime, programs, id } = setup();
    const order: string[] = [];
    const execution = await runtime.exec(
      id,
      execSpec(programs.prints({ stdout: "o", stderr: "e", exitCode: 0 })),
      call,
    );
    execution.stdout.resume().once("end", () => order.push("output"));
    execution.stderr.resume().once("end", () => order.push("output"));
    await execution.exit;
    expect(order).toEqual(["output", "output"]);
  });

  if (traits.shell === "no") return;

  it("looks a program that is named without a slash up in the PATH that it is given", async () => {
    const { runtime, id, rootPath } = setup();
    for (const name of ["one", "two"]) {
      await mkdir(join(rootPath, "workspace", name), { recursive: true });
      const path = join(rootPath, "workspace", name, "greet");
      await writeFile(path, `#!/bin/sh\nprintf ${name}\n`);
      await chmod(path, 0o755);
    }
    // Both as seen inside and as seen by a runtime without isolation.
    const pathOf = (name: string): string => `/workspace/${name}:${rootPath}/workspace/${name}`;
    const outputOf = async (argv: Argv, path: string): Promise<string> =>
      (await run(runtime, id, argv, { env: { PATH: path } })).stdout.toString();
    expect(await outputOf(["greet"], `${pathOf("one")}:${pathOf("two")}`)).toBe("one");
    expect(await outputOf(["greet"], `/nowhere:${pathOf("two")}`)).toBe("two");
    expect(await outputOf(["bash", "-c", "echo $0"], PATH)).toBe("bash\n");
    expect(await outputOf(["sh", "-c", "echo found"], "/usr/bin:/bin")).toBe("found\n");
    const elsewhere = execSpec(["greet"], { env: { PATH: "/bin" } });
    expect(await reasonOf(runtime.exec(id, elsewhere, call))).toBe("INVALID_ARGUMENT");
  });

  it("slows a process down whose reader does not read, and loses nothing", async () => {
    const { runtime, id, rootPath } = setup();
    const script = "i=0; while [ $i -lt 64 ]; do head -c 65536 /dev/zero; i=$((i+1)); echo $i > progress; done";
    const execution = await runtime.exec(id, execSpec(sh(script)), call);
    const progress = async () => Number(await readFile(join(rootPath, "workspace/progress"), "utf8").catch(() => "0"));
    let seen = -1;
    await until(async () => {
      const before = seen;
      await delay(300);
      seen = await progress();
      return seen === before && seen > 0;
    });
    expect(seen).toBeLessThan(16);
    const { stdout, exit } = await finish(execution);
    expect(stdout.length).toBe(64 * 65_536);
    expect(exit).toEqual({ kind: "exited", exitCode: 0 });
  });

  it("lets a process open its outputs again by name", async () => {
    const { runtime, id } = setup();
    const { stdout, stderr } = await run(runtime, id, sh("echo out > /dev/stdout; echo err > /dev/stderr"));
    expect(stdout.toString()).toBe("out\n");
    expect(stderr).toBe("err\n");
  });

  it("ends the outputs with the process although a background child holds them, and lets that child live", async () => {
    const { runtime, id, rootPath } = setup();
    const startedMs = performance.now();
    const script = "(while :; do echo noise; echo x >> background; sleep 0.1; done) & echo main; exit 5";
    const execution = await runtime.exec(id, execSpec(sh(script)), call);
    const { stdout, exit } = await finish(execution);
    expect(performance.now() - startedMs).toBeLessThan(5000);
    expect(exit).toEqual({ kind: "exited", exitCode: 5 });
    expect(stdout.toString()).toContain("main\n");
    const size = async () => (await readFile(join(rootPath, "workspace/background"))).length;
    const before = await size();
    await until(async () => (await size()) > before + 6);
    await execution.kill();
    const killedAt = await size();
    await delay(300);
    expect(await size()).toBe(killedAt);
  });

  it("reports a process that a signal ended", async () => {
    const { runtime, id } = setup();
    const { exit } = await run(runtime, id, sh("kill -s KILL $$"));
    expect([
      { kind: "signaled", signal: 9 },
      { kind: "exited", exitCode: 137 },
    ]).toContainEqual(exit);
  });
}

function sha256(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
