import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createHarness, type Harness } from "./cli-harness.suite.ts";
import { EXEC_EXIT, EXIT, EXIT_CODES } from "./exit-code.ts";
import { createServices, newWorld, type World } from "@turnbox/client/fake";
import { listLeaves } from "./help/find-command.ts";
import type { Invocation } from "./invocation.ts";
import { createProgram } from "./program.ts";

/** Verbs that have no object to print, and why. */
const WITHOUT_JSON: Readonly<Record<string, string>> = {
  help: "prints help",
  completion: "prints a script for a shell",
};

/** Registering a verb needs nothing of an invocation; only doing it does. */
const invocation = {
  surroundings: { version: "0.0.0", stdout: { write: () => undefined }, environment: { color: "refused" } },
} as unknown as Invocation;
const leaves = listLeaves(createProgram(invocation)).map(({ command, path }) => ({ command, name: path.join(" ") }));

let world: World;
let harness: Harness;
beforeEach(async () => {
  world = newWorld();
  harness = await createHarness(createServices(world));
});
afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

describe("every verb", () => {
  it("is found in the tree, those of verbs too", () => {
    const names = leaves.map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining(["exec", "snapshot", "snapshot rm", "template build oci", "fleet watch"]),
    );
    expect(names.filter((name) => name.startsWith("_") || name === "template")).toEqual([]);
  });

  it.each(leaves)("$name has --json, or a reason for not having it", ({ command, name }) => {
    expect(command.options.some(({ long }) => long === "--json")).toBe(!Object.hasOwn(WITHOUT_JSON, name));
  });

  it.each(leaves)(
    "$name has a summary, a description and examples that fit in 80 columns",
    async ({ command, name }) => {
      expect([command.summary(), command.description()]).not.toContain("");
      const { exitCode, stdout } = await harness.run([...name.split(" "), "--help"]);
      expect(exitCode).toBe(0);
      expect(stdout).toMatch(/\nExamples:\n {2}[$#] /);
      expect(stdout.split("\n").filter((line) => line.length > 80)).toEqual([]);
    },
  );
});

describe("turnbox --help", () => {
  it("lists all verbs by topic within 80 columns", async () => {
    const { stdout } = await harness.run(["--help"]);
    expect(stdout.split("\n").filter((line) => line.length > 80)).toEqual([]);
    const topics = stdout.split("\n").filter((line) => /^[A-Z][a-z ]+:$/.test(line));
    expect(topics.length).toBeGreaterThan(5);
    expect(topics).not.toContain("Commands:");
    for (const { name } of leaves) expect(stdout).toContain(`\n  ${name.split(" ")[0] ?? ""} `);
    expect(stdout).not.toContain("__complete");
  });

  it("has headings in bold on a terminal, and plain ones where NO_COLOR is set", async () => {
    const stdout = { isTTY: true, columns: 60 } as const;
    expect((await harness.run(["--help"], { stdout })).stdout).toContain("\u001b[1mTurns:\u001b[22m");
    expect((await harness.run(["--help"], { stdout, variables: { NO_COLOR: "1" } })).stdout).not.toContain("\u001b");
  });
});

describe("turnbox help", () => {
  it("has the help of a verb, also of a verb's verb", async () => {
    for (const words of [["rollback"], ["template", "build", "oci"], []]) {
      expect(await harness.run(["help", ...words])).toEqual(await likeHelp(words));
    }
  });
  const likeHelp = async (words: readonly string[]) => {
    const ran = await harness.run([...words, "--help"]);
    return { ...ran, json: expect.anything() as unknown };
  };

  it("has a row for every exit code", async () => {
    const { stdout } = await harness.run(["help", "exit-codes"]);
    for (const code of [...Object.values(EXIT), ...Object.values(EXEC_EXIT)]) {
      expect(EXIT_CODES.filter((row) => row.code === String(code))).toHaveLength(1);
      expect(stdout).toMatch(new RegExp(`^ {2}${String(code)} `, "m"));
    }
    expect(stdout.split("\n").filter((line) => line.length > 80)).toEqual([]);
  });

  it("has the variables of the environment", async () => {
    const { stdout } = await harness.run(["help", "environment"]);
    for (const name of ["TURNBOX_URL", "TURNBOX_TOKEN_FILE", "NO_COLOR"]) expect(stdout).toContain(`\n  ${name} `);
  });

  it("knows what was meant", async () => {
    const ran = await harness.run(["help", "exit-code"]);
    expect(ran).toMatchObject({ exitCode: 2, stdout: "" });
    expect(ran.stderr).toContain("did you mean exit-codes?");
  });
});

describe("a slip", () => {
  it.each([
    [["crate"], /unknown command 'crate' \(Did you mean create\?\)\nremedy: Run `turnbox --help`/],
    [["template", "lst"], /unknown command 'lst' \(Did you mean ls\?\)\nremedy: Run `turnbox template --help`/],
    [["ls", "--lable", "a=b"], /unknown option '--lable' \(Did you mean --label\?\)\nremedy: Run `turnbox ls --help`/],
    [["snapshot", "rm", "web"], /missing required argument 'snapshot'\nremedy: Run `turnbox snapshot rm --help`/],
  ])("as in %j is met with what may have been meant", async (args, expected) => {
    expect((await harness.run(args)).stderr).toMatch(expected);
  });

  it("in a sandbox's name is met with names that are near", async () => {
    const ran = await harness.run(["connect", "wbe"]);
    expect(ran).toMatchObject({ exitCode: 4 });
    expect(ran.stderr).toContain('(did you mean "web"?)');
    expect((await harness.run(["connect", "nobody"])).stderr).not.toContain("did you mean");
  });
});

describe("what is shown on a terminal", () => {
  const stdout = { isTTY: true } as const;
  const stderr = { isTTY: true } as const;

  it("has colours there, where FORCE_COLOR wants them, and nowhere with NO_COLOR", async () => {
    expect((await harness.run(["ls"], { stdout })).stdout).toContain("\u001b[32mactive\u001b[39m");
    expect((await harness.run(["ls"], { variables: { FORCE_COLOR: "1" } })).stdout).toContain("\u001b[32mactive");
    for (const input of [{}, { stdout, variables: { NO_COLOR: "1" } }, { stdout, variables: { TERM: "dumb" } }])
      expect((await harness.run(["ls"], input)).stdout).not.toContain("\u001b");
    expect((await harness.run(["ls", "--json"], { stdout })).stdout).not.toContain("\u001b");
  });

  it("has the reason of a failure in red, and JSON errors as they are", async () => {
    const ran = await harness.run(["connect", "nobody"], { stderr });
    expect(ran.stderr).toMatch(/^\u001b\[1m\u001b\[31mSANDBOX_NOT_FOUND\u001b\[39m\u001b\[22m: no sandbox/);
    const json = await harness.run(["connect", "nobody", "--json"], { stdout, stderr });
    expect([json.stdout.includes("\u001b"), json.stderr]).toEqual([false, ""]);
  });

  it("says while it waits what it waits for, and leaves nothing of it behind", async () => {
    world.looksUntilGone = 20;
    const waiting = await harness.run(["rm", "web"], { stderr });
    expect(waiting.stderr).toMatch(/\r[|/\\-] waiting until nothing of fleet:i1:abc123 is left/);
    expect(waiting.stderr.endsWith("\r\u001b[K")).toBe(true);
    world.looksUntilGone = 20;
    expect((await harness.run(["rm", "web", "--json"], { stderr })).stderr).toBe("");
    world.looksUntilGone = 20;
    expect((await harness.run(["rm", "web"])).stderr).toBe("");
  });
});
