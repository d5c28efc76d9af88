import { type ChildProcessByStdio, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { getSystemErrorName } from "node:util";
import { PERL, perlProgram } from "../perl/perl.ts";
import { encodeFrame, FrameReader } from "./aide-frame.ts";
import { JsonText } from "./json-text.ts";

/** The number of sendmsg(2) in the kernel's tables; on other processors there is no aide. */
const SENDMSG: Readonly<Partial<Record<string, number>>> = { x64: 46, arm64: 211 };

/** After a death, nothing is given to a new aide for this long. */
const RESTART_MS = 10_000;

/** The aide has gone away: what it was asked for may have been done or not. */
export class AideGone extends Error {}

/** The system has refused what was asked for, by its error code; nothing was done. */
export class AideRefusal extends Error {
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

export interface AideRun {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
  /** Both outputs are appended to it, where given; else they are the answer. */
  readonly outputPath: string | undefined;
  readonly maxOutputBytes: number;
}

export interface AideEnd {
  /** As wait(2) tells it: the exit code times 256, or a signal. */
  readonly status: number;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly droppedBytes: number;
}

export interface AideProgram {
  /** Rejects with `AideRefusal` where nothing has run, with `AideGone` where nobody knows. */
  readonly ended: Promise<AideEnd>;
  /** Signals its process group, unless it has ended. */
  kill(this: void, signal: number): void;
}

/** An open file for somebody else, by a name that another process can open it under. */
export interface SentFile {
  readonly path: string;
  readonly mode: "r" | "w";
}

export interface AideMessage {
  readonly socketPath: string;
  readonly message: string;
  readonly files: readonly SentFile[];
  /** Closes the line, and rejects with its reason. */
  readonly signal?: AbortSignal;
}

/**
 * A small process that does for the service what is dear or impossible for it. A `fork` of the service costs it
 * milliseconds, more the more memory it has, in which it does nothing else; one of the aide costs next to nothing. And Node
 * cannot pass open files to a process that is not its child.
 */
export interface Aide extends Disposable {
  /** Undefined where there is no aide on this machine, or none at the moment: nothing has been done. */
  run(this: void, spec: AideRun): AideProgram | undefined;
  /**
   * Sends a message with open files to who listens on a socket, and answers with the text of the JSON object that comes back,
   * or with a part of it if the line ends. Rejects like a program's end, and if what comes back is no object, or too long.
   * Undefined if there is no aide.
   */
  send(this: void, request: AideMessage): Promise<string> | undefined;
}

interface Request {
  onFrame(kind: string, fields: readonly Buffer[]): void;
  reject(failure: Error): void;
}

interface Connection {
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  readonly requests: Map<number, Request>;
}

export interface AideOptions {
  readonly perlPath?: string;
  /** Of the processor. */
  readonly arch?: string;
}

/** It starts with the first request, and again with one that comes a while after its death. */
export function createAide(options: AideOptions = {}): Aide {
  const aide = new AideProcess(options);
  return {
    run: (spec) => aide.run(spec),
    send: (message) => aide.send(message),
    [Symbol.dispose]: () => {
      aide[Symbol.dispose]();
    },
  };
}

class AideProcess implements Disposable {
  readonly #perlPath: string;
  readonly #sendmsg: number | undefined;
  #connection: Connection | undefined;
  /** No new one is started before. */
  #notBeforeMs = 0;
  #serial = 0;
  #isOver: boolean;

  constructor({ perlPath = PERL, arch = process.arch }: AideOptions) {
    this.#perlPath = perlPath;
    this.#sendmsg = SENDMSG[arch];
    this.#isOver = this.#sendmsg === undefined || !existsSync(perlPath);
  }

  run({ argv, env, cwd = "", outputPath = "", maxOutputBytes }: AideRun): AideProgram | undefined {
    const to = this.#connect();
    if (to === undefined) return undefined;
    const { promise, resolve, reject } = Promise.withResolvers<AideEnd>();
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const id = this.#ask(to, ["run", cwd, outputPath, maxOutputBytes, argv.length, ...argv, ...variables], {
      reject,
      onFrame: (kind, fields) => {
        settle(to, id);
        if (kind === "failed") reject(refusalOf(fields));
        else resolve(endOf(fields));
      },
    });
    const kill = (signal: number): void => {
      if (to.requests.has(id)) to.child.stdin.write(encodeFrame([id, "kill", signal]));
    };
    return { ended: promise, kill };
  }

  send({ socketPath, message, files, signal }: AideMessage): Promise<string> | undefined {
    const to = this.#connect();
    if (to === undefined) return undefined;
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const answer = new JsonText();
    const names = files.map(({ mode, path }) => `${mode}:${path}`);
    const end = (line: "open" | "closed"): void => {
      signal?.removeEventListener("abort", onAbort);
      if (!to.requests.has(id)) return;
      settle(to, id);
      if (line === "open") to.child.stdin.write(encodeFrame([id, "close"]));
    };
    const onAbort = (): void => {
      end("open");
      reject(signal?.reason as Error);
    };
    const id = this.#ask(to, ["send", socketPath, message, ...names], {
      reject,
      onFrame: (kind, fields) => {
        const [bytes = Buffer.alloc(0)] = fields;
        const isOver = kind === "failed" || bytes.length === 0;
        try {
          if (!isOver && !answer.add(bytes)) return;
          end(isOver ? "closed" : "open");
          if (kind === "failed") reject(refusalOf(fields));
          else resolve(answer.text());
        } catch (thrown) {
          end("open");
          reject(thrown);
        }
      },
    });
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted === true) onAbort();
    return promise;
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#connection?.child.stdin.end();
  }

  #connect(): Connection | undefined {
    if (this.#connection !== undefined) return this.#connection;
    if (this.#isOver || performance.now() < this.#notBeforeMs) return undefined;
    const args = [perlProgram("helper"), String(this.#sendmsg)];
    const child = spawn(this.#perlPath, args, { stdio: ["pipe", "pipe", "ignore"], cwd: "/", env: {}, detached: true });
    const opened: Connection = { child, requests: new Map() };
    const lose = (): void => {
      this.#lose(opened);
    };
    child.on("error", lose);
    child.on("close", lose);
    listen(opened);
    this.#connection = opened;
    return opened;
  }

  #lose(lost: Connection): void {
    if (this.#connection === lost) this.#connection = undefined;
    this.#notBeforeMs = performance.now() + RESTART_MS;
    for (const { reject } of lost.requests.values()) reject(new AideGone("the aide has gone away"));
    lost.requests.clear();
  }

  #ask(to: Connection, fields: readonly (string | number)[], request: Request): number {
    this.#serial += 1;
    to.requests.set(this.#serial, request);
    to.child.stdin.write(encodeFrame([this.#serial, ...fields]));
    to.child.ref();
    return this.#serial;
  }
}

function settle({ requests, child }: Connection, id: number): void {
  requests.delete(id);
  if (requests.size === 0) child.unref();
}

function listen({ child, requests }: Connection): void {
  const reader = new FrameReader();
  child.stdout.on("data", (chunk: Buffer) => {
    for (const [id = Buffer.alloc(0), kind = Buffer.alloc(0), ...fields] of reader.read(chunk))
      requests.get(Number(id.toString()))?.onFrame(kind.toString(), fields);
  });
  child.stdin.on("error", () => undefined);
  child.stdout.on("error", () => undefined);
  // What is asked for keeps the service up, not the aide.
  child.unref();
  for (const stream of [child.stdin, child.stdout]) if ("unref" in stream) (stream.unref as () => void).call(stream);
}

function refusalOf([errno]: readonly Buffer[]): AideRefusal {
  return new AideRefusal(getSystemErrorName(-Number(errno?.toString() ?? 0) || -1));
}

function endOf([status, stdout, stderr, dropped]: readonly Buffer[]): AideEnd {
  const none = Buffer.alloc(0);
  return {
    status: Number(status?.toString() ?? 0),
    stdout: stdout ?? none,
    stderr: stderr ?? none,
    droppedBytes: Number(dropped?.toString() ?? 0),
  };
}
