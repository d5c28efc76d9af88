import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { REPO } from "../support/process.ts";
import { environment, startServer, type TestServer } from "../support/server.ts";
import { type EmulatedTerminal, startTerminal } from "../support/terminal.ts";

const CLI = join(REPO, "packages/cli/bin/turnbox.mjs");
const CTRL_C = "\u0003";
const CTRL_L = "\u000c";
const CTRL_RIGHT_BRACKET = "\u001d";
const ESCAPE = "\u001b";
const SIZE = { columns: 100, rows: 30 };

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
  await server.json("create", "--template", "mini", "--name", "work");
}, 180_000);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
}, 120_000);

interface Seen {
  readonly processId: string;
  readonly command: readonly string[];
}

/** Runs the command line as a user's shell does: what it leaves behind is seen by what runs after it. */
function start(...args: readonly string[]): EmulatedTerminal {
  const script = [
    "before=$(stty -g)",
    `"${process.execPath}" "${CLI}" ${args.join(" ")}`,
    "code=$?",
    'if [ "$(stty -g)" = "$before" ]; then echo "ended $code, modes kept"; else echo "ended $code, modes lost"; fi',
  ].join("\n");
  const env = { ...environment(server.home), TURNBOX_PORT: new URL(server.url).port };
  return startTerminal({ script, env, size: SIZE });
}

/** The last line that has something on it. */
const lastLine = (terminal: EmulatedTerminal): string => terminal.screen().findLast((line) => line !== "") ?? "";
const untilPrompt = (terminal: EmulatedTerminal) =>
  terminal.until("the prompt appears", () => /[#$]$/.test(lastLine(terminal)));
const showsLine = (terminal: EmulatedTerminal, line: string) =>
  terminal.until(`a line says ${line}`, () => terminal.screen().includes(line));

describe("turnbox shell under a terminal emulator", () => {
  it("has a prompt, an echo, the terminal's size, Ctrl-C, an exit code, and gives the terminal back", async () => {
    using terminal = start("shell", "work");
    await untilPrompt(terminal);
    terminal.type("echo one $((20 + 3)); test -t 0 && test -t 1 && echo is a terminal\r");
    await showsLine(terminal, "one 23");
    await showsLine(terminal, "is a terminal");
    expect(terminal.screen().some((line) => /[#$] echo one \$\(\(20 \+ 3\)\)/.test(line))).toBe(true);

    terminal.type("clear; stty size\r");
    await showsLine(terminal, "30 100");
    terminal.type("trap 'echo new size' WINCH\r");
    terminal.resize({ columns: 132, rows: 43 });
    await terminal.until("the new size arrives", () => terminal.history().includes("new size"));
    terminal.type("stty size\r");
    await showsLine(terminal, "43 132");

    // The program itself says that it runs: a Ctrl-C while bash is starting one can make bash take its terminal for ended.
    terminal.type("clear; sh -c 'echo sleeps; exec sleep 1000'\r");
    await showsLine(terminal, "sleeps");
    terminal.type(CTRL_C);
    await terminal.until("it is interrupted", () => /^\^C\n.*[#$]$/m.test(terminal.history().trimEnd()));
    terminal.type("echo after=$?\r");
    await showsLine(terminal, "after=130");

    terminal.type("exit 5\r");
    await showsLine(terminal, "ended 5, modes kept");
    expect(await terminal.exit).toBe(0);
    expect(terminal.modes()).toEqual({ bracketedPaste: false, applicationCursorKeys: false });
  }, 120_000);

  it("draws full-screen programs at the terminal's size, also after it changed, and leaves what was there", async () => {
    using terminal = start("shell", "work");
    await untilPrompt(terminal);
    terminal.type("for i in $(seq 100); do echo number $i; done > numbers; echo before; vi numbers\r");
    await terminal.until("vi draws", () => terminal.shownBuffer() === "alternate");
    await terminal.until("vi fills the screen", () => terminal.screen()[28] === "number 29");
    expect(terminal.screen()[0]).toBe("number 1");
    await terminal.until("vi names the file", () => terminal.screen()[29]?.includes("numbers") === true);
    terminal.resize({ columns: 80, rows: 20 });
    await terminal.until("vi draws anew", () => terminal.screen()[18] === "number 19");
    terminal.type("Gonumber 101");
    await terminal.until("vi shows what is typed", () => terminal.screen().includes("number 101"));
    await leaveInsertMode(terminal);
    terminal.type(":wq\r");
    await terminal.until("the usual screen is back", () => terminal.shownBuffer() === "normal");
    expect(terminal.history()).toContain("\nbefore\n");
    terminal.type("tail -n 2 numbers | tr '\\n' ' '; echo\r");
    await showsLine(terminal, "number 100 number 101");

    terminal.type("less numbers\r");
    await terminal.until("less fills the screen", () => terminal.screen()[18] === "number 19");
    expect(terminal.screen()[0]).toBe("number 1");
    terminal.type(" ");
    await terminal.until("less shows the next page", () => terminal.screen()[18] === "number 38");
    terminal.type("q");
    terminal.type("\rexit\r");
    await showsLine(terminal, "ended 0, modes kept");
  }, 120_000);

  it("is left with Ctrl-] and found again by attach, with the user's terminal as it was", async () => {
    using terminal = start("shell", "work", "--", "vi", "kept");
    await terminal.until("vi draws", () => terminal.shownBuffer() === "alternate");
    terminal.type("isome text");
    await terminal.until("vi shows it", () => terminal.screen()[0] === "some text");
    await leaveInsertMode(terminal);
    terminal.type(CTRL_RIGHT_BRACKET);
    await terminal.until("the terminal is given back", () => /^ended 0, modes kept$/m.test(terminal.history()));
    expect(terminal.shownBuffer()).toBe("normal");
    const processId = /come back with: turnbox attach work (\S+)/.exec(terminal.history())?.[1];
    expect(processId).toBeDefined();

    using second = start("attach", "work", processId ?? "");
    await pressUntil(second, CTRL_L, () => second.screen()[0] === "some text");
    second.type(":wq\r");
    await second.until("it ends", () => /^ended 0, modes kept$/m.test(second.history()));
    expect((await server.cli("cat", "work", "kept")).stdout).toBe("some text\n");
  }, 120_000);

  it("gives the terminal back when the program is killed while it draws, and says how it ended", async () => {
    using terminal = start("shell", "work", "--", "vi", "killed");
    await terminal.until("vi draws", () => terminal.shownBuffer() === "alternate");
    const { processes } = await server.json("ps", "work");
    const vi = (processes as readonly Seen[]).find(({ command }) => command.join(" ") === "vi killed");
    await server.json("kill", "work", vi?.processId ?? "none", "-s", "KILL");
    await terminal.until("it ends", () => /^ended 137, modes kept$/m.test(terminal.history()));
    expect(terminal.shownBuffer()).toBe("normal");
  }, 120_000);
});

describe("transfers under a terminal emulator", () => {
  it("draw a bar while they go on, and clear it when they are done", async () => {
    const directory = await mkdtemp(join(tmpdir(), "turnbox-bar-"));
    try {
      const [local, back] = [join(directory, "bytes"), join(directory, "back")];
      await writeFile(local, Buffer.alloc(24 * 1024 * 1024, "0123456789abcde\n"));
      for (const [from, to] of [
        [local, "work:/workspace/bytes"],
        ["work:/workspace/bytes", back],
      ] as const) {
        using terminal = start("cp", from, to);
        await terminal.until("it ends", () => /^ended 0, modes kept$/m.test(terminal.history()), 60_000);
        expect(terminal.written()).toMatch(/\[#*-*\] +\d+% {2}\S+ \S+ of 24\.0 MiB/);
        expect(terminal.history()).not.toMatch(/\d%/);
        expect(terminal.history()).toMatch(/^copied .* \(24\.0 MiB\)$/m);
      }
      expect((await readFile(back)).equals(await readFile(local))).toBe(true);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  }, 120_000);
});

/** Vi takes an Escape that is followed by something at once for one of the terminal's other keys. */
async function leaveInsertMode(terminal: EmulatedTerminal): Promise<void> {
  terminal.type(ESCAPE);
  await terminal.until("vi takes commands", () => terminal.screen().some((line) => line.startsWith("- ")));
}

/** Presses a key once a second until it had its effect. */
async function pressUntil(terminal: EmulatedTerminal, key: string, isSo: () => boolean): Promise<void> {
  for (let presses = 1; ; presses += 1) {
    terminal.type(key);
    try {
      await terminal.until("the key has its effect", isSo, 1000);
      return;
    } catch (thrown) {
      if (presses === 30) throw thrown;
    }
  }
}
