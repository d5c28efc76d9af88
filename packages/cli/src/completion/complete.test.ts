import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import { createHarness, type Harness } from "../cli-harness.suite.ts";
import { createServices, newWorld, type World } from "@turnbox/client/fake";

let world: World;
let harness: Harness;
beforeEach(async () => {
  world = newWorld();
  harness = await createHarness(createServices(world));
});
afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

/** Time stands still: nothing is too late. */
const ask = async (...words: readonly string[]): Promise<readonly string[]> => {
  const ran = await harness.run(["__complete", "--", ...words], { clock: createManualClock() });
  expect(ran).toMatchObject({ exitCode: 0, stderr: "" });
  return ran.stdout.split("\n").filter((line) => line !== "");
};
const values = async (...words: readonly string[]): Promise<readonly string[]> =>
  (await ask(...words)).map((line) => line.split("\t")[0] ?? "");

describe("turnbox __complete", () => {
  it("knows verbs, those of verbs, and what they do", async () => {
    expect(await ask("cr")).toEqual(["create\tmake a sandbox"]);
    expect(await values("template", "")).toEqual(["ls", "import", "build", "rm"]);
    expect(await values("help", "temp")).toEqual(["template"]);
    expect(await values("help", "ex")).toEqual(expect.arrayContaining(["exec", "exit-codes"]));
  });

  it("knows options and their choices, and does not offer one twice that is given once", async () => {
    expect(await values("create", "--on")).toEqual(["--on-timeout"]);
    expect(await values("create", "--on-timeout", "")).toEqual(["pause", "destroy"]);
    expect(await values("create", "--json", "--js")).toEqual([]);
    expect(await values("create", "--label", "a=b", "--lab")).toEqual(["--label"]);
    expect(await values("net", "web", "")).toEqual(["show", "allow", "deny", "off"]);
    expect(await values("completion", "")).toEqual(["bash", "zsh", "fish"]);
  });

  it("asks for sandboxes by name, by the short part of the id, and by the id that is begun", async () => {
    expect(await ask("exec", "")).toEqual(["web\tabc123", "abc123\tweb", "abd999"]);
    expect(await values("exec", "fleet:i1:ab")).toEqual(["fleet:i1:abc123", "fleet:i1:abd999"]);
    expect(await values("rm", "web", "")).toEqual(["abd999"]);
    expect(await values("cp", "we")).toEqual(["web:"]);
  });

  it("asks for turns, processes, templates and instances", async () => {
    expect(await ask("rollback", "web", "")).toEqual(["3\ts3", "2\tbuild", "1\ts1"]);
    expect(await values("fork", "web", "--from", "")).toEqual(["3", "2", "1"]);
    expect(await values("diff", "web", "1", "")).toEqual(["3", "2", "1"]);
    expect(await values("create", "--template", "d")).toEqual(["debian"]);
    expect(await values("template", "rm", "")).toEqual(["debian", "mini"]);
  });

  it("asks the server that the line names", async () => {
    await ask("exec", "--token", "typed", "");
    await ask("exec", "--token=joined", "");
    expect(new Set(harness.calls.map(({ token }) => token))).toEqual(new Set(["typed", "joined"]));
  });

  it("leaves what is behind -- and what it knows nothing of to the shell", async () => {
    expect(await values("exec", "web", "--", "l")).toEqual([]);
    expect(await values("cat", "web", "")).toEqual([]);
    expect(await values("frob", "")).toEqual([]);
    expect(await values()).toEqual(expect.arrayContaining(["up", "create"]));
  });

  it("offers nothing that would act upon a terminal", async () => {
    for (const sandbox of world.sandboxes) sandbox.name = "x\u001b[2J";
    expect(await values("exec", "x")).toEqual([]);
  });

  it("says nothing where there is no such sandbox or no server", async () => {
    expect(await values("rollback", "nobody", "")).toEqual([]);
    await rm(join(harness.home, "token"));
    expect(await values("exec", "")).toEqual([]);
  });

  it("gives up after 300 ms", async () => {
    const clock = createManualClock();
    const asked = Promise.withResolvers<undefined>();
    world.hold = new Promise(() => undefined);
    world.onList = async () => {
      asked.resolve(undefined);
      await world.hold;
    };
    const running = harness.run(["__complete", "--", "exec", ""], { clock });
    await asked.promise;
    await clock.advance(300);
    expect(await running).toMatchObject({ exitCode: 0, stdout: "", stderr: "" });
  });
});

describe("turnbox completion", () => {
  const run = promisify(execFile);
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "turnbox-completion-"));
  });
  afterEach(async () => {
    await rm(directory, { recursive: true, force: true });
  });

  /** What bash makes of a line whose words are these; a stand-in for `turnbox` writes down what it is asked. */
  const inBash = async (
    words: readonly string[],
    answer: string,
  ): Promise<{ readonly reply: string; readonly asked: string }> => {
    const { stdout } = await harness.run(["completion", "bash"]);
    const script = join(directory, "completion.bash");
    await writeFile(script, stdout);
    await writeFile(join(directory, "answer"), answer);
    const fake = join(directory, "turnbox");
    await writeFile(fake, `#!/bin/bash\nprintf '<%s>' "$@" > '${directory}/asked'\ncat '${directory}/answer'\n`);
    await chmod(fake, 0o755);
    const program =
      `source '${script}'; complete -p turnbox; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); ` +
      `_turnbox turnbox; printf '%s\\n' "\${COMPREPLY[@]}"; cat '${directory}/asked' 2>/dev/null || true`;
    const env = { PATH: `${directory}${delimiter}/usr/bin:/bin` };
    const ran = await run("bash", ["--norc", "-c", program, "bash", ...words], { env, timeout: 10_000 });
    const [head, ...lines] = ran.stdout.split("\n");
    expect(head).toBe("complete -o default -F _turnbox turnbox");
    expect(ran.stderr).toBe("");
    return { reply: lines.slice(0, -1).join("\n"), asked: lines.at(-1) ?? "" };
  };

  it("completes verbs in bash without asking anybody", async () => {
    expect(await inBash(["turnbox", "ro"], "")).toEqual({ reply: "rollback", asked: "" });
  });

  it("passes on in bash what is typed, and takes the answers without their notes", async () => {
    expect(await inBash(["turnbox", "rollback", "web", ""], "3\ts3\nbefore the upgrade\tn9\n")).toEqual({
      reply: "3\nbefore\\ the\\ upgrade",
      asked: "<__complete><--><rollback><web><>",
    });
  });

  it("puts together in bash what is broken at colons", async () => {
    const line = ["turnbox", "exec", "fleet", ":", "i1", ":", "ab"];
    expect(await inBash(line, "fleet:i1:abc123\tweb\n")).toEqual({
      reply: "abc123",
      asked: "<__complete><--><exec><fleet:i1:ab>",
    });
  });

  it("runs nothing that a sandbox is called", async () => {
    expect((await inBash(["turnbox", "exec", ""], "$(touch x);\n")).reply).toBe("\\$\\(touch\\ x\\)\\;");
  });

  it.each(["zsh", "fish"])("has a script for %s", async (shell) => {
    const { stdout, exitCode } = await harness.run(["completion", shell]);
    expect(exitCode).toBe(0);
    expect(stdout).toContain("__complete -- ");
    expect(stdout).not.toContain("undefined");
  });

  it("refuses a shell that it does not know", async () => {
    expect((await harness.run(["completion", "tcsh"])).exitCode).toBe(2);
  });
});
