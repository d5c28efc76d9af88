import { createRequire } from "node:module";
import { join } from "node:path";
import { Terminal } from "@xterm/headless";
import { poll, REPO } from "./process.ts";

/** What is used of node-pty, which the host's package has. */
interface Pty {
  onData(listener: (text: string) => void): unknown;
  onExit(listener: (end: { readonly exitCode: number }) => void): unknown;
  write(text: string): void;
  resize(columns: number, rows: number): void;
  kill(signal?: string): void;
}
interface PtyModule {
  spawn(file: string, args: readonly string[], options: Readonly<Record<string, unknown>>): Pty;
}

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** A program on a pseudoterminal, with a terminal emulator at the user's end. */
export interface EmulatedTerminal extends Disposable {
  /** As if typed; Enter is `\r`. */
  type(keys: string): void;
  resize(size: TerminalSize): void;
  /** The rows on the screen now, without spaces at their ends. */
  screen(): readonly string[];
  /** Everything on the screen and above it, in lines as they were written. */
  history(): string;
  /** All that was ever written to it, with control sequences. */
  written(): string;
  /** Full-screen programs draw on the alternate one, so that what was there before comes back. */
  shownBuffer(): "normal" | "alternate";
  /** Whether programs have asked for pastes and for keys in another way. */
  modes(): { readonly bracketedPaste: boolean; readonly applicationCursorKeys: boolean };
  /** Waits until this is so. What is on the screen is part of the failure. */
  until(what: string, isSo: () => boolean, timeoutMs?: number): Promise<void>;
  /** Settles when the program has ended. */
  readonly exit: Promise<number>;
}

export function startTerminal(options: {
  readonly script: string;
  readonly env: NodeJS.ProcessEnv;
  readonly size: TerminalSize;
}): EmulatedTerminal {
  const require = createRequire(join(REPO, "packages/sandbox-host/package.json"));
  const { spawn } = require("@lydell/node-pty") as PtyModule;
  const { columns: cols, rows } = options.size;
  const pty = spawn("/bin/bash", ["-c", options.script], { cols, rows, name: "xterm-256color", env: options.env });
  const emulator = new Terminal({ cols, rows, scrollback: 10_000, allowProposedApi: true });
  let written = "";
  pty.onData((text) => {
    written += text;
    emulator.write(text);
  });
  // Programs ask the terminal things, such as where its cursor is.
  emulator.onData((answer) => pty.write(answer));
  const exit = new Promise<number>((resolve) => pty.onExit(({ exitCode }) => resolve(exitCode)));
  let hasEnded = false;
  void exit.then(() => {
    hasEnded = true;
  });

  const linesFrom = (first: number, count: number): readonly string[] =>
    Array.from({ length: count }, (_, index) =>
      (emulator.buffer.active.getLine(first + index)?.translateToString(true) ?? "").trimEnd(),
    );
  const screen = () => linesFrom(emulator.buffer.active.baseY, emulator.rows);
  const history = () => {
    const { active } = emulator.buffer;
    const pieces = Array.from({ length: active.length }, (_, index) => {
      const line = active.getLine(index);
      return `${line?.isWrapped === true || index === 0 ? "" : "\n"}${line?.translateToString(true) ?? ""}`;
    });
    return pieces.join("").replaceAll(/ +$/gm, "").trimEnd();
  };
  return {
    type: (keys) => {
      pty.write(keys);
    },
    resize: (size) => {
      emulator.resize(size.columns, size.rows);
      pty.resize(size.columns, size.rows);
    },
    screen,
    history,
    written: () => written,
    shownBuffer: () => emulator.buffer.active.type,
    modes: () => ({
      bracketedPaste: emulator.modes.bracketedPasteMode,
      applicationCursorKeys: emulator.modes.applicationCursorKeysMode,
    }),
    until: async (what, isSo, timeoutMs = 30_000) => {
      try {
        await poll(what, () => (isSo() ? true : undefined), timeoutMs);
      } catch (thrown) {
        throw new Error(`${what}; the screen is:\n${screen().join("\n")}`, { cause: thrown });
      }
    },
    exit,
    [Symbol.dispose]: () => {
      if (!hasEnded) pty.kill("SIGKILL");
      emulator.dispose();
    },
  };
}
