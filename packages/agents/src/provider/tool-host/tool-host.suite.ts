import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { ToolHostOptions } from "./create-tool-host.ts";
import type { PermissionMode } from "./permission.ts";
import type { TerminalSpec, ToolHost } from "./tool-host.ts";

/** What every tool host does, over directories of this machine. */
export function describeToolHost(name: string, create: (options: ToolHostOptions) => ToolHost): void {
  describe(name, () => {
    let base: string;
    let root: string;
    let extra: string;
    let host: ToolHost;
    beforeEach(async () => {
      base = await realpath(await mkdtemp(join(tmpdir(), "turnbox-tool-host-")));
      [root, extra] = [join(base, "root"), join(base, "extra")];
      for (const directory of [root, extra, join(base, "rootless"), join(root, "deep")]) await mkdir(directory);
      await writeFile(join(base, "secret"), "secret");
      host = create({ root, additionalDirs: [extra], permissions: "approve-all" });
    });
    afterEach(async () => {
      await host[Symbol.asyncDispose]();
      await rm(base, { recursive: true });
    });
    const sh = (script: string, more: Partial<TerminalSpec> = {}): TerminalSpec => ({
      command: "sh",
      args: ["-c", script],
      ...more,
    });
    const finished = async (spec: TerminalSpec) => {
      const id = await host.createTerminal(spec);
      const exit = await host.waitForTerminalExit(id);
      return { ...(await host.terminalOutput(id)), exit };
    };

    it("resolves relative and absolute paths inside its root and its further directories", async () => {
      expect(await host.resolvePath("deep/../new/file")).toBe(join(root, "new/file"));
      expect(await host.resolvePath(".")).toBe(root);
      expect(await host.resolvePath(`${root}//deep/./x`)).toBe(join(root, "deep/x"));
      expect(await host.resolvePath(join(extra, "x"))).toBe(join(extra, "x"));
    });

    it("refuses what is outside, by dots, by name and by links of any kind (D16)", async () => {
      await symlink("../secret", join(root, "file-link"));
      await symlink(base, join(root, "directory-link"));
      await symlink("directory-link", join(root, "second"));
      await symlink("loop", join(root, "loop"));
      await symlink("../not-there-yet", join(root, "dangling"));
      const outside = ["../secret", join(base, "secret"), `${root}less/x`, "/", "file-link", "directory-link/secret"];
      for (const path of [...outside, "second/secret", "loop", "dangling", "deep/../../secret"]) {
        await expect(host.resolvePath(path)).rejects.toMatchObject({ reason: "PATH_REFUSED" });
        await expect(host.readTextFile(path)).rejects.toMatchObject({ reason: "PATH_REFUSED" });
        await expect(host.writeTextFile(path, "x")).rejects.toMatchObject({ reason: "PATH_REFUSED" });
      }
      expect(await readFile(join(base, "secret"), "utf8")).toBe("secret");
      for (const path of ["", "a\0b"])
        await expect(host.resolvePath(path)).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
    });

    it("follows links that stay inside, and roots that are links themselves", async () => {
      await symlink("deep", join(root, "inner"));
      await symlink(extra, join(root, "over"));
      await symlink(root, join(base, "alias"));
      expect(await host.resolvePath("inner/x")).toBe(join(root, "deep/x"));
      expect(await host.resolvePath("over/x")).toBe(join(extra, "x"));
      await using aliased = create({ root: join(base, "alias") });
      expect(await aliased.resolvePath("deep/x")).toBe(join(root, "deep/x"));
      expect(await aliased.resolvePath(join(base, "alias/deep"))).toBe(join(root, "deep"));
    });

    it("writes text, with the directories it needs, and reads it back", async () => {
      await host.writeTextFile("a/b c/ü.txt", "long text\n");
      await host.writeTextFile("a/b c/ü.txt", "ü\n");
      expect(await host.readTextFile(join(root, "a/b c/ü.txt"))).toBe("ü\n");
      expect(await readFile(join(root, "a/b c/ü.txt"), "utf8")).toBe("ü\n");
      await host.writeTextFile("$(touch x); rm -rf *", "as it is (D40)");
      expect(await host.readTextFile("$(touch x); rm -rf *")).toBe("as it is (D40)");
      await expect(host.readTextFile("missing")).rejects.toMatchObject({ reason: "FILE_NOT_FOUND" });
    });

    it("reads lines of a file with their ends", async () => {
      await writeFile(join(root, "lines"), "one\ntwo ü\n\nfour 😀\nfive");
      const read = (line?: number, limit?: number) =>
        host.readTextFile("lines", {
          ...(line === undefined ? {} : { line }),
          ...(limit === undefined ? {} : { limit }),
        });
      expect(await read(2, 1)).toBe("two ü\n");
      expect(await read(undefined, 3)).toBe("one\ntwo ü\n\n");
      expect(await read(4)).toBe("four 😀\nfive");
      expect(await read(5, 10)).toBe("five");
      expect([await read(6), await read(100, 1), await read(1, 0)]).toEqual(["", "", ""]);
      expect([await read(1, 2), await read(3, 2), await read(5, 2)].join("")).toBe(await read());
      for (const [line, limit] of [[0], [1, -1], [Number.NaN]])
        await expect(read(line, limit)).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
    });

    it("runs a command in a terminal: both outputs, how it ended, in the directory and with the variables given", async () => {
      const script = 'echo "$WORD"; pwd; echo aside >&2; exit 4';
      const result = await finished(sh(script, { env: { WORD: "given" }, cwd: "deep" }));
      expect(result.output.split("\n").sort()).toEqual(["", join(root, "deep"), "aside", "given"].sort());
      expect(result).toMatchObject({ truncated: false, exit: { exitCode: 4, signal: undefined } });
      expect((await finished({ command: "pwd" })).output).toBe(`${root}\n`);
      expect((await finished({ command: "printf", args: ["%s|", "a b", "$(id)"] })).output).toBe("a b|$(id)|");
      await expect(host.createTerminal({ command: "pwd", cwd: base })).rejects.toMatchObject({
        reason: "PATH_REFUSED",
      });
    });

    it("keeps the last bytes of a terminal's output, cut between characters", async () => {
      const result = await finished(sh("echo first; printf 'üüü'", { outputByteLimit: 5 }));
      expect(result).toMatchObject({ output: "üü", truncated: true });
      const whole = await finished(sh("printf 12345", { outputByteLimit: 5 }));
      expect(whole).toMatchObject({ output: "12345", truncated: false });
    });

    it("shows the output of a command that still runs, kills it, and keeps the terminal", async () => {
      const id = await host.createTerminal(sh("echo up; sleep 1000 & wait"));
      await until(async () => (await host.terminalOutput(id)).output === "up\n");
      expect((await host.terminalOutput(id)).exit).toBeUndefined();
      await expect(host.waitForTerminalExit(id, { signal: AbortSignal.abort() })).rejects.toMatchObject({
        reason: "CANCELLED",
      });
      await host.killTerminal(id);
      expect(await host.waitForTerminalExit(id)).toEqual({ exitCode: undefined, signal: "SIGKILL" });
      await host.killTerminal(id);
      expect(await host.terminalOutput(id)).toMatchObject({ output: "up\n", exit: { signal: "SIGKILL" } });
    });

    it("forgets a terminal that is released, with its command, and all of them when it is disposed of", async () => {
      const [first, second] = [
        await host.createTerminal(sh("sleep 1000")),
        await host.createTerminal(sh("sleep 1000")),
      ];
      const waiting = host.waitForTerminalExit(first);
      await host.releaseTerminal(first);
      expect(await waiting).toMatchObject({ signal: "SIGKILL" });
      const unknown = { reason: "PROCESS_NOT_FOUND" };
      await expect(host.terminalOutput(first)).rejects.toMatchObject(unknown);
      await expect(host.releaseTerminal(first)).rejects.toMatchObject(unknown);
      await expect(host.killTerminal("term_none")).rejects.toMatchObject(unknown);
      const last = host.waitForTerminalExit(second);
      await host[Symbol.asyncDispose]();
      expect(await last).toMatchObject({ signal: "SIGKILL" });
      await expect(host.terminalOutput(second)).rejects.toMatchObject(unknown);
    });

    it("decides by its mode and by where the paths lead", async () => {
      const decide = async (permissions: PermissionMode | undefined, kind: string, ...paths: readonly string[]) => {
        await using other = create({ root, ...(permissions === undefined ? {} : { permissions }) });
        const locations = paths.map((path) => ({ path }));
        return (await other.permissionDecision({ toolCall: { kind, locations } })).decision;
      };
      await symlink("../secret", join(root, "out"));
      expect(await decide(undefined, "read", "deep")).toBe("allow-once");
      expect(await decide(undefined, "edit", join(root, "new"))).toBe("pending");
      expect(await decide("approve-all", "edit", "deep", join(base, "secret"))).toBe("reject-once");
      expect(await decide("approve-all", "read", "out")).toBe("reject-once");
      expect(await decide("approve-all", "execute")).toBe("allow-once");
      expect(await decide("deny-all", "read", "deep")).toBe("reject-once");
      await using careful = create({ root });
      expect(() => careful.authorize("fs/write_text_file")).toThrow("fs/write_text_file");
      expect(careful.permissions).toBe("approve-reads");
    });
  });
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (const untilMs = Date.now() + 10_000; !(await holds()); ) {
    if (Date.now() > untilMs) throw new Error("it did not come to be");
    await new Promise((resolve) => setImmediate(resolve));
  }
}
