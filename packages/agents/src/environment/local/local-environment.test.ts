import { mkdir, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/client/fake";
import { environmentSuite, reasonOf, toolRequest } from "../environment.suite.ts";
import type { ExecutionEnvironment } from "../execution-environment.ts";
import { createLocalEnvironment } from "./local-environment.ts";

let sessions = 0;
const config = () => {
  sessions += 1;
  return { sessionId: `local-${String(sessions)}` };
};

environmentSuite("local", async () => {
  const temporaryDirectory = await mkdtemp(join(tmpdir(), "turnbox-test-"));
  return {
    environment: () => createLocalEnvironment({ temporaryDirectory }),
    config,
    failingConfig: () => ({ ...config(), baseImage: "debian" }),
    sessionCount: async () => (await readdir(temporaryDirectory)).length,
    [Symbol.asyncDispose]: () => rm(temporaryDirectory, { recursive: true }),
  };
});

describe("a local environment", () => {
  let parent: string;
  let root: string;
  let environment: ExecutionEnvironment;
  beforeAll(async () => {
    parent = await realpath(await mkdtemp(join(tmpdir(), "turnbox-test-")));
    root = join(parent, "root");
    await mkdir(root);
    await writeFile(join(parent, "secret"), "secret\n");
    environment = createLocalEnvironment({ directory: root });
    await environment.create(config());
  });
  afterAll(async () => {
    await environment.destroy();
    await rm(parent, { recursive: true });
  });
  const run = (tool: string, params: Readonly<Record<string, unknown>>) =>
    environment.executeTool(toolRequest(tool, params));

  it("says that it isolates nothing", () => {
    expect(environment.capabilities()).toMatchObject({
      isolation: "none",
      snapshots: false,
      rollback: false,
      pause: true,
    });
  });

  it("keeps file tools in its directory, past symbolic links too", async () => {
    await symlink("..", join(root, "up"));
    await symlink(join(parent, "new"), join(root, "dangling"));
    for (const path of ["../secret", "up/secret", join(parent, "secret"), "/etc/passwd", "dangling"]) {
      expect(await reasonOf(run("read_file", { path }))).toBe("PATH_REFUSED");
      expect(await reasonOf(run("write_file", { path, content: "x" }))).toBe("PATH_REFUSED");
    }
    for (const path of ["..", "up"]) {
      expect(await reasonOf(run("list_dir", { path }))).toBe("PATH_REFUSED");
      expect(await reasonOf(run("grep", { pattern: "secret", path }))).toBe("PATH_REFUSED");
      expect(await reasonOf(run("glob", { pattern: "*", path }))).toBe("PATH_REFUSED");
      expect(await reasonOf(run("bash", { cmd: "pwd", cwd: path }))).toBe("PATH_REFUSED");
    }
    expect((await run("grep", { pattern: "secret" })).content).toBe("Nothing matches.");
    expect(await readFile(join(parent, "secret"), "utf8")).toBe("secret\n");
    expect(await readdir(parent)).not.toContain("new");
  });

  it("passes nothing of this process's environment on to commands (D19)", async () => {
    process.env["TURNBOX_TEST_SECRET"] = "leaked";
    try {
      expect((await run("bash", { cmd: "env", env: { OWN: "given" } })).content).toMatch(/^(?!.*leaked).*OWN=given/s);
    } finally {
      delete process.env["TURNBOX_TEST_SECRET"];
    }
  });

  it("runs no startup file of its directory", async () => {
    await writeFile(join(root, ".bashrc"), "echo started\n");
    expect((await run("bash", { cmd: "echo only this" })).content).toBe("only this\n");
    await rm(join(root, ".bashrc"));
  });

  it("ends what a command leaves in the background, and does not wait for it", async () => {
    const { content } = await run("bash", { cmd: "sleep 600 & echo $!" });
    const pid = Number(content);
    expect(pid).toBeGreaterThan(0);
    const isThere = async () =>
      (await run("bash", { cmd: `grep -qs 'State:.[^Z]' /proc/${String(pid)}/status` })).exitCode;
    for (let looks = 0; looks < 100 && (await isThere()) === 0; looks += 1);
    expect(await isThere()).not.toBe(0);
  });

  it("reads files in parts, with line numbers", async () => {
    await writeFile(join(root, "lines"), "a\nb\nc\nd\n");
    expect((await run("read_file", { path: "lines", offset: 2, limit: 2 })).content).toBe(
      "     2\tb\n     3\tc\n[lines 2 to 3 of 4 lines of lines; go on with offset 4]",
    );
    expect((await run("read_file", { path: "lines", offset: 9 })).isError).toBe(true);
  });

  it("edits only what is there once, unless `replace_all` is set", async () => {
    await writeFile(join(root, "edit"), "x x $& y\n");
    const edit = (more: object) => run("edit_file", { path: "edit", old_string: "x", new_string: "$&", ...more });
    expect((await edit({})).isError).toBe(true);
    expect((await edit({ replace_all: true })).isError).toBe(false);
    expect(await readFile(join(root, "edit"), "utf8")).toBe("$& $& $& y\n");
    expect((await edit({})).content).toContain("not found");
  });

  it("finds names by patterns and lines by expressions", async () => {
    await mkdir(join(root, "src/deep"), { recursive: true });
    await mkdir(join(root, ".hidden"));
    for (const path of ["src/a.ts", "src/deep/b.ts", "src/deep/c.js", ".hidden/d.ts"])
      await writeFile(join(root, path), `// ${path}\nneedle = 1;\n`);
    const glob = async (pattern: string) => (await run("glob", { pattern })).content.split("\n");
    expect(await glob("**/*.ts")).toEqual(["src/a.ts", "src/deep/b.ts"]);
    expect(await glob("src/**/*.{ts,js}")).toEqual(["src/a.ts", "src/deep/b.ts", "src/deep/c.js"]);
    expect(await glob("src/*")).toEqual(["src/a.ts", "src/deep/"]);
    expect(await glob("src/[ab].t?")).toEqual(["src/a.ts"]);
    expect(await glob(".hidden/*")).toEqual([".hidden/d.ts"]);
    const grep = async (more: object) =>
      (await run("grep", { pattern: "needle", ...more })).content.split("\n").toSorted();
    expect(await grep({ include: "*.ts" })).toEqual(["src/a.ts:2:needle = 1;", "src/deep/b.ts:2:needle = 1;"]);
    expect(await grep({ exclude: "deep" })).toEqual(["src/a.ts:2:needle = 1;"]);
    expect(await grep({ path: "src/a.ts", pattern: "nee.le( =){1}" })).toEqual(["src/a.ts:2:needle = 1;"]);
    expect(await grep({ pattern: "n.*e", literal: true })).toEqual(["Nothing matches."]);
    expect((await run("grep", { pattern: "(" })).isError).toBe(true);
    expect((await run("list_dir", { path: "src", depth: 2 })).content.split("\n")).toEqual([
      "a.ts (24 bytes)",
      "deep/",
      "deep/b.ts (29 bytes)",
      "deep/c.js (29 bytes)",
    ]);
  });

  it("does not pause where tools take too long, and is active then", async () => {
    const clock = createManualClock();
    const other = createLocalEnvironment({ directory: root, clock, drainTimeoutMs: 5000 });
    await other.create(config());
    const begun = Promise.withResolvers<void>();
    const call = other.executeTool(toolRequest("bash", { cmd: "echo begun; sleep 60" }), () => begun.resolve());
    call.catch(() => undefined);
    await begun.promise;
    const pause = reasonOf(other.pause());
    await clock.advance(5000);
    expect([await pause, await other.state()]).toEqual(["TOOLS_IN_FLIGHT", "active"]);
    await other.destroy();
    expect(await reasonOf(call)).toBe("SESSION_NOT_ACTIVE");
  });

  it("leaves a directory that it was given alone when it is destroyed", async () => {
    const other = createLocalEnvironment({ directory: root });
    await other.create(config());
    await other.destroy();
    expect(await readdir(root)).not.toEqual([]);
  });
});
