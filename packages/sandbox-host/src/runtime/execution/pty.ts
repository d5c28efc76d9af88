import { spawn } from "@lydell/node-pty";
import { SandboxError } from "@turnbox/core";
import type { TerminalExecution, TerminalSize } from "../runtime.ts";

export interface PtyRequest {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly size: TerminalSize;
}

/** A command of the host on a terminal. */
export interface Pty extends Omit<TerminalExecution, "exit" | "kill"> {
  readonly pid: number;
  /** `signal` is 0 where none ended it. */
  readonly ended: Promise<{ readonly exitCode: number; readonly signal: number }>;
  /** What it has shown so far, up to a bound: for why a start failed. */
  shown(): string;
  kill(): void;
}

const SHOWN_BYTES = 16 * 1024;

/** Starts a command as the leader of a session on a new terminal. */
export function openPty({ command, args, env, cwd, size }: PtyRequest): Pty {
  const listeners = new Set<(data: Buffer) => void>();
  const early: Buffer[] = [];
  let earlyBytes = 0;
  const child = start();
  child.onData((text) => {
    // Without an encoding the bytes come as they are, whatever the declared type says.
    const data = Buffer.from(text);
    if (listeners.size > 0) for (const listener of listeners) listener(data);
    else keep(data);
  });
  const ended = new Promise<{ readonly exitCode: number; readonly signal: number }>((resolve) => {
    child.onExit(({ exitCode, signal }) => {
      resolve({ exitCode, signal: signal ?? 0 });
    });
  });
  let isOpen = true;
  const close = (): void => {
    isOpen = false;
  };
  ended.then(close, close);

  function start() {
    try {
      return spawn(command, [...args], {
        name: "xterm-256color",
        cols: size.columns,
        rows: size.rows,
        cwd,
        env,
        encoding: null,
      });
    } catch (cause) {
      throw new SandboxError("RUNTIME_UNAVAILABLE", "a terminal cannot be made", { cause });
    }
  }
  /** What comes before anybody listens is little: the process is held up by the terminal's own buffer soon. */
  function keep(data: Buffer): void {
    early.push(data);
    earlyBytes += data.length;
    if (earlyBytes > SHOWN_BYTES) child.pause();
  }

  return {
    pid: child.pid,
    ended,
    shown: () => Buffer.concat(early).toString("utf8"),
    onOutput: (listener) => {
      listeners.add(listener);
      for (const data of early.splice(0)) listener(data);
      child.resume();
    },
    hold: () => {
      if (isOpen) child.pause();
    },
    release: () => {
      if (isOpen) child.resume();
    },
    write: (data) => {
      // Bytes are taken as they are, whatever the declared type says.
      if (isOpen) child.write(Buffer.from(data) as unknown as string);
    },
    resize: ({ columns, rows }) => {
      if (isOpen) child.resize(columns, rows);
    },
    kill: () => {
      if (isOpen) child.kill("SIGKILL");
    },
  };
}
