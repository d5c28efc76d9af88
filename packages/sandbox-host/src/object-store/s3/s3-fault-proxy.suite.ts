import { createServer, type IncomingMessage, request as httpRequest, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A request by what it asks of S3. */
export type S3Operation =
  | "put"
  | "begin"
  | "part"
  | "complete"
  | "abort"
  | "get"
  | "head"
  | "list"
  | "uploads"
  | "delete";

/**
 * What happens to one request:
 *
 * - `answer`: an error of the server, which never gets the request.
 * - `lost`: the server does it, and the connection breaks before the answer.
 * - `cut_request`, `cut_answer`: the connection breaks after so many bytes of the body.
 * - `wrong_request`, `wrong_answer`: a byte of the body is another one.
 * - `stall`: so many bytes of the answer's body come, and no more.
 * - `silent`: there is no answer.
 * - `stale`: the answer to the last such request comes again.
 */
export type Fault =
  | { readonly kind: "answer"; readonly status: number; readonly code: string }
  | { readonly kind: "lost" | "silent" | "stale" }
  | {
      readonly kind: "cut_request" | "cut_answer" | "wrong_request" | "wrong_answer" | "stall";
      readonly bytes: number;
    };

/** A way to a server of S3 on which requests meet what was ordered for them. */
export interface FaultProxy extends AsyncDisposable {
  readonly url: string;
  /** What came, in its order. */
  readonly seen: S3Operation[];
  /** Header fields that are taken from requests, for a server that does not know them. */
  readonly dropped: Set<string>;
  /** The next requests of the operation meet these faults; `none` lets one pass. */
  next(operation: S3Operation, ...faults: readonly (Fault | "none")[]): void;
  /** All requests of the operation meet the fault from now on; undefined ends it. */
  always(operation: S3Operation, fault: Fault | undefined): void;
  count(operation: S3Operation): number;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

export async function startFaultProxy(target: string): Promise<FaultProxy> {
  const proxy = new RunningProxy(target);
  await proxy.listen();
  return proxy;
}

class RunningProxy implements FaultProxy {
  readonly seen: S3Operation[] = [];
  readonly dropped = new Set<string>();
  readonly #target: string;
  readonly #faults = new Map<S3Operation, (Fault | "none")[]>();
  readonly #standing = new Map<S3Operation, Fault>();
  readonly #last = new Map<S3Operation, Answer>();
  readonly #http = createServer((request, response) => {
    request.on("error", () => undefined);
    response.on("error", () => undefined);
    this.#handle(request, response).catch(() => response.destroy());
  });

  constructor(target: string) {
    this.#target = target;
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#http.listen(0, "127.0.0.1", resolve));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
  }

  next(operation: S3Operation, ...more: readonly (Fault | "none")[]): void {
    this.#faults.set(operation, [...(this.#faults.get(operation) ?? []), ...more]);
  }

  always(operation: S3Operation, fault: Fault | undefined): void {
    if (fault === undefined) this.#standing.delete(operation);
    else this.#standing.set(operation, fault);
  }

  count(operation: S3Operation): number {
    return this.seen.filter((one) => one === operation).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#http.closeAllConnections();
    await new Promise((resolve) => this.#http.close(resolve));
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const operation = operationOf(request);
    this.seen.push(operation);
    const ordered = this.#faults.get(operation)?.shift() ?? this.#standing.get(operation);
    const fault = ordered === "none" ? undefined : ordered;
    if (await isMetBefore(fault, request, response)) return;
    const answer = await this.#answerTo(operation, request, fault);
    if (fault?.kind === "lost") request.socket.destroy();
    else send(request, response, { ...answer, body: spoiled(answer.body, "wrong_answer", fault) }, fault);
  }

  async #answerTo(operation: S3Operation, request: IncomingMessage, fault: Fault | undefined): Promise<Answer> {
    const body = spoiled(await readAll(request), "wrong_request", fault);
    const stale = fault?.kind === "stale" ? this.#last.get(operation) : undefined;
    if (stale !== undefined) return stale;
    const answer = await forward(this.#target, request, { body, dropped: this.dropped });
    this.#last.set(operation, answer);
    return answer;
  }
}

/** Whether the fault was met without the server. */
async function isMetBefore(
  fault: Fault | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<boolean> {
  switch (fault?.kind) {
    case "silent":
      return true;
    case "cut_request":
      await readSome(request, fault.bytes);
      request.socket.destroy();
      return true;
    case "answer":
      await readAll(request);
      sendError(response, fault);
      return true;
    default:
      return false;
  }
}

function operationOf({ method = "", url = "" }: IncomingMessage): S3Operation {
  const { searchParams: query } = new URL(url, "http://proxy");
  const byQuery: readonly (readonly [string, string, S3Operation])[] = [
    ["PUT", "partNumber", "part"],
    ["POST", "uploads", "begin"],
    ["POST", "uploadId", "complete"],
    ["POST", "delete", "delete"],
    ["DELETE", "uploadId", "abort"],
    ["GET", "list-type", "list"],
    ["GET", "uploads", "uploads"],
  ];
  const found = byQuery.find(([verb, field]) => verb === method && query.has(field));
  return found?.[2] ?? (method.toLowerCase() as S3Operation);
}

async function readSome(request: IncomingMessage, bytes: number): Promise<void> {
  let read = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    read += (chunk as Buffer).byteLength;
    if (read >= bytes) return;
  }
}

async function readAll(message: IncomingMessage): Promise<Buffer> {
  return Buffer.concat((await message.toArray()) as Buffer[]);
}

function spoiled(body: Buffer, kind: "wrong_request" | "wrong_answer", fault: Fault | undefined): Buffer {
  if (fault?.kind !== kind || !("bytes" in fault)) return body;
  const copy = Buffer.from(body);
  copy.writeUInt8(copy.readUInt8(fault.bytes) ^ 1, fault.bytes);
  return copy;
}

/** The header fields go on as they came: they are signed, the host's name among them. */
async function forward(
  target: string,
  { method, url, headers }: IncomingMessage,
  { body, dropped }: { readonly body: Buffer; readonly dropped: ReadonlySet<string> },
): Promise<Answer> {
  const { hostname, port } = new URL(target);
  const kept = Object.fromEntries(
    Object.entries(headers).filter(([name]) => !dropped.has(name) && name !== "connection"),
  );
  return await new Promise<Answer>((resolve, reject) => {
    const outgoing = httpRequest({ hostname, port, method, path: url, headers: kept, agent: false }, (answer) => {
      readAll(answer).then(
        (all) => resolve({ status: answer.statusCode ?? 500, headers: answer.headers, body: all }),
        reject,
      );
    });
    outgoing.once("error", reject);
    outgoing.end(body);
  });
}

function sendError(
  response: ServerResponse,
  { status, code }: { readonly status: number; readonly code: string },
): void {
  const body = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>${code} was scripted</Message></Error>`;
  response.writeHead(status, { "content-type": "application/xml" }).end(body);
}

function send(
  request: IncomingMessage,
  response: ServerResponse,
  { status, headers, body }: Answer,
  fault: Fault | undefined,
): void {
  const { connection: _connection, "transfer-encoding": _encoding, ...kept } = headers;
  const length = request.method === "HEAD" ? kept["content-length"] : String(body.byteLength);
  response.writeHead(status, { ...kept, ...(length === undefined ? {} : { "content-length": length }) });
  if (fault?.kind === "cut_answer") {
    response.write(body.subarray(0, fault.bytes), () => response.destroy());
  } else if (fault?.kind === "stall") response.write(body.subarray(0, fault.bytes));
  else response.end(request.method === "HEAD" ? undefined : body);
}
