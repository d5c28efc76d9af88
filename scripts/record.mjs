import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import xterm from "@xterm/headless";
import { root } from "./bootstrap/layout.mjs";
import { drawTerminal, readLine } from "./record/terminal-svg.mjs";

/**
 * Records docs/img/session.svg: `node scripts/record.mjs`. A server is started in a home of its own, the commands below are
 * typed into a shell on a pseudoterminal, and what the terminal shows in the end is the picture. Needs the build, ZFS and
 * gVisor.
 */
const SESSION = [
  "turnbox create --name demo",
  "turnbox exec demo -- sh -c 'echo hello > a.txt; dmesg | head -1'",
  "turnbox turn demo",
  "turnbox exec demo -- sh -c 'rm a.txt; echo oops > b.txt'",
  "turnbox diff demo",
  "turnbox rollback demo 1",
  "turnbox exec demo -- cat a.txt",
  "turnbox undo demo",
  "turnbox fork demo --from 1 -n 2",
  "turnbox log demo",
];
const SIZE = { cols: 118, rows: 60 };
const PROMPT = "$ ";
const DEADLINE_MS = 60_000;
const CLI = path.join(root, "packages/cli/bin/turnbox.mjs");

async function until(what, isSo) {
  const deadline = performance.now() + DEADLINE_MS;
  while (!isSo()) {
    if (performance.now() > deadline) throw new Error(`not within ${DEADLINE_MS} ms: ${what}`);
    await delay(50);
  }
}

const ended = (child) => new Promise((settle) => child.once("close", settle));

/** Starts a server and answers with its address. */
async function startServer(env) {
  const child = spawn(process.execPath, [CLI, "up"], { cwd: root, env, stdio: ["ignore", "pipe", "inherit"] });
  const end = ended(child);
  let printed = "";
  child.stdout.on("data", (chunk) => (printed += chunk));
  const find = () => /^turnbox ready (http:\S+)$/m.exec(printed)?.[1];
  await until("the server's ready line", () => find() !== undefined);
  return {
    port: new URL(find()).port,
    stop: async () => {
      child.kill("SIGTERM");
      await end;
    },
  };
}

/** Types the session into a shell; answers with the lines that the terminal shows then. */
async function play(env) {
  const { spawn: spawnPty } = createRequire(path.join(root, "packages/sandbox-host/package.json"))("@lydell/node-pty");
  const emulator = new xterm.Terminal({ ...SIZE, allowProposedApi: true });
  const shell = spawnPty("/bin/bash", ["--norc", "--noprofile", "-i"], {
    ...SIZE,
    name: "xterm-256color",
    env,
    cwd: root,
  });
  shell.onData((text) => emulator.write(text));
  emulator.onData((answer) => shell.write(answer));
  const { active } = emulator.buffer;
  const row = () => active.baseY + active.cursorY;
  const isAtPrompt = () =>
    active.getLine(row())?.translateToString(true).trimEnd() === PROMPT.trimEnd() && active.cursorX === 2;
  const typedRows = new Set();
  try {
    await until("a prompt", isAtPrompt);
    for (const command of SESSION) {
      const from = row();
      typedRows.add(from);
      shell.write(`${command}\r`);
      await until(`a prompt after ${command}`, () => row() > from && isAtPrompt());
    }
    return Array.from({ length: row() }, (_, index) => ({
      runs: readLine(active.getLine(index)),
      kind: typedRows.has(index) ? "typed" : "printed",
    }));
  } finally {
    shell.kill("SIGKILL");
    emulator.dispose();
  }
}

const parent = await mkdtemp(path.join(tmpdir(), "turnbox-record-"));
const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("TURNBOX_") && name !== "NO_COLOR");
const env = {
  ...Object.fromEntries(kept),
  TURNBOX_HOME: path.join(parent, "home"),
  TURNBOX_PORT: "0",
  LC_ALL: "C.UTF-8",
  TURNBOX_POOL_SIZE: "4GiB",
  PATH: [path.join(root, "node_modules/.bin"), path.dirname(process.execPath), process.env.PATH].join(path.delimiter),
  PS1: `\\[\\e[1;32m\\]${PROMPT}\\[\\e[0m\\]`,
};
try {
  const server = await startServer(env);
  try {
    const lines = await play({ ...env, TURNBOX_PORT: server.port });
    const target = path.join(root, "docs/img/session.svg");
    const title = "A turn, a rollback, an undo and a fork by the command line";
    await writeFile(target, drawTerminal(lines, { columns: SIZE.cols, title }));
    process.stdout.write(`recorded ${lines.length} lines in ${path.relative(root, target)}\n`);
  } finally {
    await server.stop();
  }
} finally {
  const reset = spawn(process.execPath, [CLI, "reset", "--yes"], { cwd: root, env, stdio: "inherit" });
  if ((await ended(reset)) === 0) await rm(parent, { recursive: true });
  else process.exitCode = 1;
}
