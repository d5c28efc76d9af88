import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { HostCommandRunner } from "../../../system/command/host-command-runner.ts";
import { HelperProcess } from "../../../system/helper/helper-process.ts";
import type { ContainerSpec, ExecSpec, Runtime } from "../../runtime.ts";
import { call, execSpec, finish, type Outcome, PATH, reasonOf, until } from "../../suite/harness.suite.ts";
import { createWorkbench, type Workbench } from "../../suite/host-harness.suite.ts";
import { createGvisorRuntime } from "../gvisor-runtime.ts";
import { listIdleFiles } from "../exec/exec-files.ts";
import { findRunscClients } from "../container/runsc-clients.ts";
import { createLayout } from "../container/layout.ts";

const WAITING = 2;
const TEST_MS = 60_000;

const helper = new HelperProcess();
const runner = new HostCommandRunner();
afterAll(async () => {
  helper[Symbol.dispose]();
  await runner[Symbol.asyncDispose]();
});

/** The same calls of a shell, each by one that is started for it, and each by one that waited; by runsc and by the sentry. */
describe.each([
  ["a new shell", 0, {}],
  ["a shell that waited", WAITING, {}],
  ["a new shell of the sentry", 0, { helper }],
  ["a shell of the sentry that waited", WAITING, { helper }],
] as const)("a call of %s", (_name, waitingShells, options) => {
  jest.setTimeout(TEST_MS);
  let bench: Workbench;
  let runtime: Runtime;
  let container: ContainerSpec;

  const clients = async (): Promise<number> =>
    (await findRunscClients(createLayout(bench.stateDirectory), container.id)).length;
  const waiting = async (): Promise<number> =>
    (await listIdleFiles(createLayout(bench.stateDirectory), container.id)).length;
  const ready = async (): Promise<void> => {
    if (waitingShells === 0) return;
    await finish(await runtime.exec(container.id, execSpec(["bash", "-c", ":"]), call));
    await until(async () => (await waiting()) >= waitingShells);
  };
  const shell = async (script: string, more: Partial<ExecSpec> = {}, stdin = ""): Promise<Outcome> => {
    await ready();
    return await finish(await runtime.exec(container.id, execSpec(["bash", "-c", script], more), call), stdin);
  };
  const text = async (script: string, more: Partial<ExecSpec> = {}, stdin = ""): Promise<string> => {
    const { stdout, stderr } = await shell(script, more, stdin);
    return `${stdout.toString()}${stderr}`;
  };

  beforeAll(async () => {
    bench = await createWorkbench();
    runtime = createGvisorRuntime({
      runner,
      ...options,
      prepareRoot: bench.prepareRoot,
      stateDirectory: bench.stateDirectory,
      waitingShells,
    });
    await runtime.open(call);
    container = await bench.newContainer();
    await runtime.start(container, call);
  }, TEST_MS);
  afterAll(async () => {
    await runtime.stop(container.id, call);
    expect(await clients()).toBe(0);
    await runtime.close(call);
    await bench[Symbol.asyncDispose]();
  }, TEST_MS);

  it("is what it says", async () => {
    const isWaiting = (await text("tr '\\0' ' ' < /proc/$$/cmdline")).includes("read -r -N");
    expect(isWaiting).toBe(waitingShells > 0);
  });

  it("has the script's own text, lines, words and options, and none of a shell before it", async () => {
    const script = `echo "$0 $# $LINENO $- $((SECONDS < 2)) \${OLDPWD-unset} \${N-unset} \${S-unset}"
echo "$LINENO"; missing; echo "$BASH_EXECUTION_STRING" | head -1`;
    expect(await text(script)).toBe(
      `bash 0 1 hBc 1 unset unset unset\n2\necho "$0 $# $LINENO $- $((SECONDS < 2)) \${OLDPWD-unset} \${N-unset} \${S-unset}"\n` +
        "bash: line 2: missing: command not found\n",
    );
  });

  it("has its script as it is, whichever characters are in it and however long it is", async () => {
    expect(await text("printf %s 'é\u{1f600}\x01\x7f\t\\\\'")).toBe("é\u{1f600}\x01\x7f\t\\\\");
    expect(await text(`printf %s "it's" '\\n  ' ! "~"   `)).toBe("it's\\n  !~");
    for (const length of [300, 350, 400, 513, 5000, 16_000]) {
      const word = "x".repeat(length);
      expect(await text(`echo ${word}; cat`, {}, "input")).toBe(`${word}\ninput`);
    }
  });

  it("has variables of the environment whatever they are called", async () => {
    const env = { PATH, N: "n", S: "s" };
    await shell(":", { env });
    expect(await text('echo "$N $S"', { env })).toBe("n s\n");
  });

  it.each([
    ["exit 7", 7],
    ["set -e; false; echo no", 1],
    ["(exit 3)", 3],
    ["", 0],
    ["if", 2],
    ["trap 'echo bye' EXIT; exit 4", 4],
    ["kill -9 $$", 137],
  ])("ends as its script does: %s", async (script, exitCode) => {
    expect((await shell(script)).exit).toEqual({ kind: "exited", exitCode });
  });

  it("has the limits of a new process, whatever calls before it have set", async () => {
    const before = await text("ulimit -n -u -s; ulimit -Hn");
    await text("ulimit -S -n 77; ulimit -n 66; ulimit -u 55; ulimit -s 4444");
    await text("ulimit -c 0");
    expect(await text("ulimit -n -u -s; ulimit -Hn")).toBe(before);
    expect(await text("bash -c 'ulimit -n -u -s; ulimit -Hn'")).toBe(before);
  });

  it.each([
    ["by another name of the builtin", "u\\limit -n 54; u\\limit -c 0"],
    ["by a file that is sourced", "printf 'u%s -n 53\\n' limit >/tmp/limits; . /tmp/limits"],
    ["by a program", "busybox sh -c 'ulimit -n 52; ulimit -s 4444'"],
    ["only the soft ones", "eval u'limit' -S -n 51 -s 4444 -c 0"],
  ])("has the limits of a new process, also if the calls before it have set them %s", async (_how, script) => {
    const LIMITS = "ulimit -Sa; ulimit -Ha";
    const before = await text(LIMITS);
    await text(script);
    // The shells that wait now were started before or after the limits were set.
    for (let round = 0; round < 3; round += 1) {
      const { stdout } = await finish(await runtime.exec(container.id, execSpec(["bash", "-c", LIMITS]), call));
      expect(stdout.toString()).toBe(before);
      // In the next round one takes the call that was started after all calls before it had ended.
      await until(async () => (await waiting()) >= waitingShells);
    }
  });

  it("becomes the program of a script that is one", async () => {
    const env = { PATH, HOME: "/root", LEFT: "as it is" };
    const lines = (await text("env", { env })).split("\n").filter((line) => !/^(TURNBOX_EXEC|PWD)=/.test(line));
    expect(lines.toSorted()).toEqual(["", "HOME=/root", "LEFT=as it is", `PATH=${PATH}`, "SHLVL=0", "_=/bin/env"]);
    expect(await text("cat - 'a b' \"c\"", { cwd: "/" }, "input\n")).toMatch(/^input\ncat: .*a b.*\ncat: .*c.*\n$/);
    expect(await text("missing-program a")).toBe("bash: line 1: missing-program: command not found\n");
    expect((await shell("sleep 4545", { deadlineMs: 300 })).exit).toEqual({ kind: "timed_out" });
  });

  it("does not become a program where a function has its name", async () => {
    const env = { PATH, "BASH_FUNC_ls%%": "() { echo mine; }" };
    expect(await text("ls", { env })).toBe("mine\n");
  });

  it("has the environment that was asked for, and what it starts has it too", async () => {
    const env = { PATH, HOME: "/elsewhere", QUOTED: "a b'c\"d$e\nf", EMPTY: "" };
    const script =
      'printf "%s|%s|%s|%s|" "$HOME" "$QUOTED" "${EMPTY-unset}" "${GONE-unset}"; env | grep -c "^HOME=/else"';
    expect(await text(script, { env })).toBe("/elsewhere|a b'c\"d$e\nf||unset|1\n");
    expect(await text('echo "${QUOTED-unset} $HOME"')).toBe("unset /\n");
  });

  it("has an environment that shells read at their start", async () => {
    await shell("echo echo from the file > /workspace/env.sh");
    expect(await text("echo done", { env: { PATH, BASH_ENV: "/workspace/env.sh" } })).toBe("from the file\ndone\n");
  });

  it("begins in its directory, also in one that was removed and made again, and not in one that is not there", async () => {
    await shell("mkdir -p '/workspace/it s'");
    expect(await text("pwd; echo $PWD", { cwd: "/workspace/it s" })).toBe("/workspace/it s\n/workspace/it s\n");
    await ready();
    await rm(join(container.rootPath, "workspace"), { recursive: true });
    await finish(await runtime.exec(container.id, execSpec(["bash", "-c", "mkdir /workspace"], { cwd: "/" }), call));
    expect(await text("pwd; echo a > b; ls")).toBe("/workspace\nb\n");
    await ready();
    const nowhere = runtime.exec(container.id, execSpec(["bash", "-c", "echo no"], { cwd: "/nowhere" }), call);
    expect(await reasonOf(nowhere)).toBe("INVALID_ARGUMENT");
  });

  it("has its input, byte by byte, and its end", async () => {
    const input = `${"line\n".repeat(20_000)}last`;
    expect(await text("read -r first; echo $first; cat | wc -c", {}, input)).toBe(`line\n${input.length - 5}\n`);
    expect(await text("cat; echo end")).toBe("end\n");
  });

  it("brings a mebibyte of each output", async () => {
    const { stdout, stderr } = await shell("head -c 1048576 /dev/zero; head -c 1048576 /dev/zero >&2");
    expect([stdout.length, stderr.length]).toEqual([1_048_576, 1_048_576]);
  });

  it("is ended at its deadline with everything it started", async () => {
    const { exit } = await shell("sleep 4242 & setsid sleep 4242 & sleep 4242", { deadlineMs: 500 });
    expect(exit).toEqual({ kind: "timed_out" });
    expect(await text("cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -c '^4242$'")).toBe("0\n");
  });

  it("is killed with everything it started", async () => {
    await ready();
    const script = "sleep 4343 & setsid sleep 4343 & echo started; wait";
    const execution = await runtime.exec(container.id, execSpec(["bash", "-c", script]), call);
    await new Promise((resolve) => execution.stdout.once("data", resolve));
    execution.stdout.resume();
    execution.stderr.resume();
    await execution.kill();
    expect(await execution.exit).toEqual({ kind: "killed" });
    expect(await text("cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -c '^4343$'")).toBe("0\n");
  });

  it("leaves what it started in the background alone", async () => {
    const pid = (await text("sleep 5151 >/dev/null 2>&1 & echo $!")).trim();
    expect(await text(`tr '\\0' ' ' < /proc/${pid}/cmdline; kill ${pid}`)).toBe("sleep 5151 ");
  });

  it("is not counted while it only waits", async () => {
    await ready();
    for (let round = 0; round < 5; round += 1) {
      // The next one is being made behind the answer.
      await finish(await runtime.exec(container.id, execSpec(["bash", "-c", ":"]), call));
      expect(await runtime.processes(container.id, call)).toBe(0);
    }
  });

  it("is made again when all that waited were killed from inside", async () => {
    await ready();
    await finish(await runtime.exec(container.id, execSpec(["busybox", "sh", "-c", "kill -9 -1"]), call));
    expect(await text("echo here")).toBe("here\n");
  });

  it("works again after a pause, during which none waits", async () => {
    await ready();
    await runtime.pause(container.id, call);
    expect(await clients()).toBe(0);
    await runtime.resume(container.id, call);
    expect(await text("echo back")).toBe("back\n");
  });
});
