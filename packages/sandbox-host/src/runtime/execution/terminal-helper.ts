import { readFileSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import { type IPty, spawn } from "@lydell/node-pty";
import { hasErrno, systemClock } from "@turnbox/core";
import type { PtyRequest } from "./pty.ts";
import {
  decodeNumbers,
  encodeNumbers,
  encodeTerminalFrame,
  FROM_HELPER,
  MAX_FROM_HELPER_BYTES,
  MAX_TO_HELPER_BYTES,
  type TerminalFrame,
  TerminalFrameReader,
  TO_HELPER,
} from "./terminal-frame.ts";

/**
 * The process that holds one terminal, for as long as its input is open: the service is at the other end of it. Frames come in on
 * standard input and go out on standard error; standard output is what the terminal shows.
 *
 * It keeps nothing: what the terminal does not take stays with the service, and what the service does not read stays in the
 * terminal, which holds up its program.
 */

/** How often a terminal that is full is tried again. */
const POLL_MS = 10;
/** Shorter than node-pty waits, after the command's end, before it closes a terminal that nothing reads. */
const LOOK_MS = 20;
/** What an ended command left in its terminal, and more than the system keeps there. */
const MAX_TAIL_BYTES = 1024 * 1024;
/** The index of the foreground group in a line of /proc/PID/stat, counted from behind the name. */
const FOREGROUND_FIELD = 5;

const shown = new Socket({ fd: 1, readable: false, writable: true });
const answers = new Socket({ fd: 2, readable: false, writable: true });
// The service is gone: the end of the input means the same.
for (const stream of [shown, answers]) stream.on("error", () => undefined);
const send = (kind: number, body?: Uint8Array): void => {
  answers.write(encodeTerminalFrame(kind, body));
};

/** node-pty's own way to write repeats a write that a full terminal refuses without end; its descriptor does not. */
type OpenPty = IPty & { readonly fd: number };

class HeldTerminal {
  readonly #pty: OpenPty;
  #isOpen = true;
  #isPaused = false;

  constructor({ command, args, env, cwd, size }: PtyRequest) {
    const { columns: cols, rows } = size;
    const options = { name: "xterm-256color", cols, rows, cwd, env, encoding: null };
    this.#pty = spawn(command, [...args], options) as OpenPty;
    // Without an encoding the bytes come as they are, whatever the declared type says.
    this.#pty.onData((text) => {
      // A helper that cannot hold its terminal up ends, and its terminal with it.
      if (!shown.write(Buffer.from(text))) this.#pause().catch(() => process.exit(1));
    });
    shown.on("drain", () => {
      this.#resume();
    });
    this.#pty.onExit(({ exitCode, signal }) => {
      this.#isOpen = false;
      send(FROM_HELPER.ended, encodeNumbers(exitCode, signal ?? 0));
      shown.end(() => answers.end(() => process.exit(0)));
    });
  }

  /** Types what the terminal takes within the time; returns how much that was. */
  async type(data: Buffer, patienceMs: number): Promise<number> {
    const untilMs = systemClock.monotonicMs() + patienceMs;
    let taken = 0;
    while (this.#isOpen) {
      taken += this.#write(data.subarray(taken));
      if (taken === data.length || systemClock.monotonicMs() > untilMs) break;
      await systemClock.sleep(POLL_MS);
    }
    return taken;
  }

  resize(columns: number, rows: number): void {
    if (this.#isOpen) this.#pty.resize(columns, rows);
  }

  /** Signals the group that the terminal has in its foreground, as a key does. */
  signal(number: number): void {
    const stat = readFileSync(`/proc/${this.#pty.pid}/stat`, "utf8");
    const group = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[FOREGROUND_FIELD]);
    if (group > 1) process.kill(-group, number);
  }

  kill(): void {
    if (this.#isOpen) this.#pty.kill("SIGKILL");
  }

  #write(data: Buffer): number {
    try {
      return writeSync(this.#pty.fd, data);
    } catch (thrown) {
      if (!hasErrno(thrown, "EAGAIN")) this.#isOpen = false;
      return 0;
    }
  }

  /** Until the service has read. What an ended command has left is taken at once: node-pty closes the terminal soon after. */
  async #pause(): Promise<void> {
    if (this.#isPaused) return;
    this.#isPaused = true;
    this.#pty.pause();
    const isPaused = (): boolean => this.#isPaused;
    while (isPaused()) {
      if (!this.#isAlive() && shown.writableLength < MAX_TAIL_BYTES) this.#resume();
      else await systemClock.sleep(LOOK_MS);
    }
  }

  #resume(): void {
    this.#isPaused = false;
    this.#pty.resume();
  }

  #isAlive(): boolean {
    try {
      process.kill(this.#pty.pid, 0);
      return true;
    } catch {
      return false;
    }
  }
}

let terminal: HeldTerminal | undefined;

function start(body: Buffer): void {
  try {
    terminal = new HeldTerminal(JSON.parse(body.toString("utf8")) as PtyRequest);
    send(FROM_HELPER.started);
  } catch (thrown) {
    send(FROM_HELPER.failed, Buffer.from(String(thrown)).subarray(0, MAX_FROM_HELPER_BYTES));
  }
}

async function type(body: Buffer): Promise<void> {
  const [patienceMs = 0] = decodeNumbers(body.subarray(0, 4), 1);
  const taken = await terminal?.type(body.subarray(4), patienceMs);
  send(FROM_HELPER.taken, encodeNumbers(taken ?? 0));
}

async function obey({ kind, body }: TerminalFrame): Promise<void> {
  switch (kind) {
    case TO_HELPER.start:
      start(body);
      return;
    case TO_HELPER.input:
      await type(body);
      return;
    case TO_HELPER.resize: {
      const [columns = 1, rows = 1] = decodeNumbers(body, 2);
      terminal?.resize(columns, rows);
      return;
    }
    case TO_HELPER.signal: {
      const [number = 0] = decodeNumbers(body, 1);
      terminal?.signal(number);
      return;
    }
    case TO_HELPER.kill:
      terminal?.kill();
  }
}

const frames = new TerminalFrameReader(MAX_TO_HELPER_BYTES);
process.stdin.on("data", (bytes: Buffer) => {
  for (const frame of frames.read(bytes)) {
    // What fails is for a command that is just ending: the next thing that the service sees is its end.
    obey(frame).catch(() => undefined);
  }
});
process.stdin.on("end", () => {
  terminal?.kill();
  process.exit(0);
});
