import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { type Clock, type CommandRunner, type RunningCommand, SandboxError } from "@turnbox/core";
import type { TerminalExecution, TerminalSize } from "../runtime.ts";
import {
  decodeNumbers,
  encodeNumbers,
  encodeTerminalFrame,
  FROM_HELPER,
  MAX_FROM_HELPER_BYTES,
  MAX_INPUT_BYTES,
  type TerminalFrame,
  TerminalFrameReader,
  TO_HELPER,
} from "./terminal-frame.ts";

export interface PtyRequest {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly size: TerminalSize;
}

/** How the command ended; `lost`: the process that held its terminal ended first, or did not keep to its form. */
export type PtyEnd =
  | { readonly kind: "ended"; readonly exitCode: number /** 0 if none ended it. */; readonly signal: number }
  | { readonly kind: "lost" };

/** A command of the host on a terminal. */
export interface Pty extends Omit<TerminalExecution, "exit" | "kill"> {
  /** Never rejects, and settles after the last output. */
  readonly ended: Promise<PtyEnd>;
  /** What it has shown so far, up to a bound: for why a start failed. */
  shown(): string;
  kill(): void;
}

const SHOWN_BYTES = 16 * 1024;
const START_DEADLINE_MS = 30_000;
/** How much longer than its own deadline the answer to an input may take. */
const ANSWER_DEADLINE_MS = 30_000;
const KILL_DEADLINE_MS = 5000;
/** What a helper that reads nothing may leave in the service's hands. */
const MAX_UNREAD_BYTES = 1024 * 1024;
const MAX_HEAP_MIB = 32;
/** The most that a runner gives. */
const LIFETIME_MS = 24 * 24 * 3_600_000;
// The same file runs from the build (.js) and from source (.ts).
const HELPER = fileURLToPath(new URL(`./terminal-helper${extname(import.meta.url)}`, import.meta.url));
const LOST: PtyEnd = { kind: "lost" };

export interface PtyDependencies {
  readonly runner: CommandRunner;
  readonly clock: Clock;
}

/** Starts a command as the leader of a session on a new terminal, which a process of its own holds. */
export async function openPty(deps: PtyDependencies, request: PtyRequest): Promise<Pty> {
  const args = [`--max-old-space-size=${MAX_HEAP_MIB}`, "--max-semi-space-size=1", "--no-warnings", HELPER];
  const helper = await deps.runner.start({
    command: process.execPath,
    args,
    cwd: "/",
    deadlineMs: LIFETIME_MS,
    stdio: "fifos",
  });
  const pty = new HelperPty(helper, deps.clock);
  await pty.start(request);
  return pty;
}

class HelperPty implements Pty {
  readonly ended: Promise<PtyEnd>;
  readonly #helper: RunningCommand;
  readonly #clock: Clock;
  readonly #frames = new TerminalFrameReader(MAX_FROM_HELPER_BYTES);
  readonly #begun = Promise.withResolvers<void>();
  readonly #early: Buffer[] = [];
  #listener: ((data: Buffer) => void) | undefined;
  #end: PtyEnd = LOST;
  #state: "open" | "over" = "open";
  /** Gets the answer to the input that is under way. */
  #answer: ((taken: number) => void) | undefined;
  #lastInput: Promise<unknown> = Promise.resolve();

  constructor(helper: RunningCommand, clock: Clock) {
    this.#helper = helper;
    this.#clock = clock;
    this.#begun.promise.catch(() => undefined);
    for (const stream of [helper.stdin, helper.stdout, helper.stderr]) stream.on("error", () => undefined);
    helper.stdout.on("data", (data: Buffer) => {
      if (this.#listener === undefined) this.#keep(data);
      else this.#listener(data);
    });
    helper.stderr.on("data", (bytes: Buffer) => {
      this.#read(bytes);
    });
    // Its last word may come after its end.
    helper.stderr.once("close", () => {
      this.#close(new Error("the process of the terminal has ended"));
    });
    this.ended = helper.exit.then(() => this.#end);
  }

  /** Settles when the command runs. A failure leaves nothing. */
  async start(request: PtyRequest): Promise<void> {
    this.#send(TO_HELPER.start, Buffer.from(JSON.stringify(request)));
    const deadline = this.#deadline(START_DEADLINE_MS);
    try {
      await this.#begun.promise;
    } catch (cause) {
      this.#helper.kill();
      throw new SandboxError("RUNTIME_UNAVAILABLE", "a terminal cannot be made", { cause });
    } finally {
      deadline.abort();
    }
  }

  shown = (): string => Buffer.concat(this.#early).toString("utf8");

  onOutput = (listener: (data: Buffer) => void): void => {
    this.#listener = listener;
    for (const data of this.#early.splice(0)) listener(data);
    this.#helper.stdout.resume();
  };

  hold = (): void => {
    this.#helper.stdout.pause();
  };

  release = (): void => {
    this.#helper.stdout.resume();
  };

  write = async (data: Uint8Array, patienceMs: number): Promise<number> => {
    const untilMs = this.#clock.monotonicMs() + patienceMs;
    const input = this.#lastInput.then(() => this.#type(data, Math.max(0, untilMs - this.#clock.monotonicMs())));
    this.#lastInput = input;
    return await input;
  };

  resize = ({ columns, rows }: TerminalSize): void => {
    this.#send(TO_HELPER.resize, encodeNumbers(columns, rows));
  };

  signal = (number: number): void => {
    this.#send(TO_HELPER.signal, encodeNumbers(number));
  };

  kill = (): void => {
    this.#send(TO_HELPER.kill);
    const deadline = this.#deadline(KILL_DEADLINE_MS);
    const stop = (): void => {
      deadline.abort();
    };
    this.ended.then(stop, stop);
  };

  /** Asks for one input and waits for its answer. 0 from a helper that is gone: its terminal is too. */
  async #type(data: Uint8Array, patienceMs: number): Promise<number> {
    const piece = data.subarray(0, MAX_INPUT_BYTES);
    if (this.#state === "over" || piece.length === 0) return 0;
    const deadline = this.#deadline(patienceMs + ANSWER_DEADLINE_MS);
    try {
      return await new Promise<number>((resolve) => {
        this.#answer = (taken) => {
          if (taken <= piece.length) resolve(taken);
          else this.#lose(new Error("more input was taken than there was"));
        };
        this.#send(TO_HELPER.input, Buffer.concat([encodeNumbers(Math.ceil(patienceMs)), piece]));
        // What closes it answers too, so that a write to one that is closing settles.
        if (this.#state === "over") resolve(0);
      });
    } finally {
      this.#answer = undefined;
      deadline.abort();
    }
  }

  #send(kind: number, body?: Uint8Array): void {
    if (this.#state === "over") return;
    const { stdin } = this.#helper;
    if (kind !== TO_HELPER.start && stdin.writableLength > MAX_UNREAD_BYTES)
      this.#lose(new Error("the process of the terminal reads nothing"));
    else stdin.write(encodeTerminalFrame(kind, body));
  }

  #read(bytes: Buffer): void {
    if (this.#state === "over") return;
    try {
      for (const frame of this.#frames.read(bytes)) this.#take(frame);
    } catch (thrown) {
      this.#lose(thrown);
    }
  }

  #take({ kind, body }: TerminalFrame): void {
    if (kind === FROM_HELPER.started) this.#begun.resolve();
    else if (kind === FROM_HELPER.failed) this.#begun.reject(new Error(body.toString("utf8")));
    else if (kind === FROM_HELPER.taken) {
      const [taken = 0] = decodeNumbers(body, 1);
      if (this.#answer === undefined) throw new Error("an answer came that belongs to no input");
      this.#answer(taken);
    } else if (kind === FROM_HELPER.ended) {
      const [exitCode = 0, signal = 0] = decodeNumbers(body, 2);
      this.#end = { kind: "ended", exitCode, signal };
    } else throw new Error("the process of the terminal sends frames of no known kind");
  }

  /** Gives up on the helper; the terminal goes with it. */
  #lose(why: unknown): void {
    this.#end = LOST;
    this.#helper.kill();
    this.#close(why);
  }

  /** Whatever waits for the helper need not wait any more. */
  #close(why: unknown): void {
    this.#state = "over";
    this.#begun.reject(why);
    this.#answer?.(0);
  }

  #deadline(afterMs: number): AbortController {
    const settled = new AbortController();
    this.#clock.sleep(afterMs, { signal: settled.signal }).then(
      () => {
        this.#lose(new Error("the process of the terminal does not answer"));
      },
      () => undefined,
    );
    return settled;
  }

  /** What comes before there is a listener is little: the command is held up by the terminal's own buffer soon. */
  #keep(data: Buffer): void {
    this.#early.push(data);
    if (this.#early.reduce((sum, { length }) => sum + length, 0) > SHOWN_BYTES) this.#helper.stdout.pause();
  }
}
