import { type ChildProcessByStdio, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { getSystemErrorName } from "node:util";
import { PERL, programPath } from "../program.ts";
import {
  type Helper,
  type HelperEnd,
  HelperGone,
  type HelperMessage,
  type HelperProgram,
  HelperRefusal,
  type HelperRun,
} from "./helper.ts";
import { JsonText } from "./json-text.ts";

/** The number of sendmsg(2) in the kernel's tables; on other processors there is no helper process. */
const SENDMSG: Readonly<Partial<Record<string, number>>> = { x64: 46, arm64: 211 };

/** For this long after the death of a helper process, no new one is started. */
const RESTART_MS = 10_000;

interface Request {
  onFrame(kind: string, fields: readonly Buffer[]): void;
  reject(failure: Error): void;
}

interface Connection {
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  readonly requests: Map<number, Request>;
}

export interface HelperOptions {
  /** Default `PERL`. */
  readonly perlPath?: string;
  /** The processor's, as Node names it. Default that of this machine. */
  readonly arch?: string;
}

/** Is started by the first request, and again by one that comes a while after its death. Disposal ends it. */
export class HelperProcess implements Helper, Disposable {
  readonly #perlPath: string;
  readonly #sendmsg: number | undefined;
  #connection: Connection | undefined;
  /** No new process is started before this time. */
  #notBeforeMs = 0;
  #serial = 0;
  #isOver: boolean;

  constructor({ perlPath = PERL, arch = process.arch }: HelperOptions = {}) {
    this.#perlPath = perlPath;
    this.#sendmsg = SENDMSG[arch];
    this.#isOver = this.#sendmsg === undefined || !existsSync(perlPath);
  }

  run({ argv, env, cwd = "", outputPath = "", maxOutputBytes }: HelperRun): HelperProgram | undefined {
    const to = this.#connect();
    if (to === undefined) return undefined;
    const { promise, resolve, reject } = Promise.withResolvers<HelperEnd>();
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

  send({ socketPath, message, files, signal }: HelperMessage): Promise<string> | undefined {
    const to = this.#connect();
    if (to === undefined) return undefined;
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const reply = new JsonText();
    const names = files.map(({ mode, path }) => `${mode}:${path}`);
    const end = (connection: "open" | "closed"): void => {
      signal?.removeEventListener("abort", onAbort);
      if (!to.requests.has(id)) return;
      settle(to, id);
      if (connection === "open") to.child.stdin.write(encodeFrame([id, "close"]));
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
          if (!isOver && !reply.add(bytes)) return;
          end(isOver ? "closed" : "open");
          if (kind === "failed") reject(refusalOf(fields));
          else resolve(reply.text());
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
    const args = [programPath("helper.pl"), String(this.#sendmsg)];
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
    for (const { reject } of lost.requests.values()) reject(new HelperGone("the helper process has died"));
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
  // Requests keep the service up, not the helper process.
  child.unref();
  for (const stream of [child.stdin, child.stdout]) if ("unref" in stream) (stream.unref as () => void).call(stream);
}

function refusalOf([errno]: readonly Buffer[]): HelperRefusal {
  return new HelperRefusal(getSystemErrorName(-Number(errno?.toString() ?? 0) || -1));
}

function endOf([status, stdout, stderr, dropped]: readonly Buffer[]): HelperEnd {
  const none = Buffer.alloc(0);
  return {
    status: Number(status?.toString() ?? 0),
    stdout: stdout ?? none,
    stderr: stderr ?? none,
    droppedBytes: Number(dropped?.toString() ?? 0),
  };
}

const LENGTH_BYTES = 4;

/** A message to or from the helper process: fields of bytes, each behind its length, and the length of all before them. */
function encodeFrame(fields: readonly (string | number | Uint8Array)[]): Buffer {
  const parts = fields.map((field) => (field instanceof Uint8Array ? field : Buffer.from(String(field))));
  const total = parts.reduce((sum, part) => sum + LENGTH_BYTES + part.length, 0);
  const frame = Buffer.allocUnsafe(LENGTH_BYTES + total);
  let at = frame.writeUInt32BE(total, 0);
  for (const part of parts) {
    at = frame.writeUInt32BE(part.length, at);
    frame.set(part, at);
    at += part.length;
  }
  return frame;
}

/** Takes whole frames out of bytes as they come. */
class FrameReader {
  #rest: Buffer = Buffer.alloc(0);

  *read(chunk: Buffer): Generator<readonly Buffer[]> {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= LENGTH_BYTES) {
      const end = LENGTH_BYTES + this.#rest.readUInt32BE(0);
      if (this.#rest.length < end) return;
      yield decodeFields(this.#rest.subarray(LENGTH_BYTES, end));
      this.#rest = this.#rest.subarray(end);
    }
  }
}

function decodeFields(bytes: Buffer): readonly Buffer[] {
  const fields: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const start = at + LENGTH_BYTES;
    at = start + bytes.readUInt32BE(at);
    fields.push(bytes.subarray(start, at));
  }
  return fields;
}
