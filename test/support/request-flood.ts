/**
 * Sends many large requests at once, in a process of its own so that the sender does not hold up the test that measures.
 * Reads what to send as JSON from its standard input, writes how often each answer came as JSON to its standard output.
 */
import { randomUUID } from "node:crypto";
import { request } from "node:http";
import { json } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

export interface Flood {
  readonly url: string;
  readonly token: string;
  readonly sessionId: string;
  readonly kinds: readonly BodyKind[];
  /** The length of each body, before it is compressed. */
  readonly bytes: number;
  readonly parallel: number;
  /** Whether the head of a request says how long its body is. */
  readonly length: "said" | "unsaid";
}

/** How often each answer came, by the kind of body and the reason. */
export type Answers = Readonly<Record<string, number>>;

type Headers = Readonly<Record<string, string>>;

/** A body for a session: of so many bytes, with an id of its own in what comes first. */
interface Body {
  readonly headers: Headers;
  readonly head: (id: string) => Buffer;
  readonly rest: Buffer;
}

type MakeBody = (sessionId: string, bytes: number) => Body;

const JSON_TYPE: Headers = { "content-type": "application/json" };
const BINARY_TYPE: Headers = { "content-type": "application/proto" };
/** More than what is around the part that fills a body. */
const AROUND_BYTES = 300;
/** The longest text that write_file takes. */
const MAX_CONTENT_BYTES = 4 * 1024 * 1024;

const jsonBody =
  (tool: string, fill: (bytes: number) => string): MakeBody =>
  (sessionId, bytes) => ({
    headers: JSON_TYPE,
    head: (id) => Buffer.from(`{"toolCallId":"${id}","sessionId":"${sessionId}","toolName":"${tool}",`),
    rest: Buffer.from(`"params":${fill(bytes - AROUND_BYTES)}}`),
  });

const many = (head: string, piece: string, tail: string) => (bytes: number) =>
  head + piece.repeat(Math.floor(bytes / piece.length)) + tail;

function field(number: number, payload: Buffer): Buffer {
  const length: number[] = [];
  let left = payload.length;
  for (; left > 127; left >>>= 7) length.push((left & 127) | 128);
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...length, left]), payload]);
}

const binaryBody =
  (fill: (bytes: number) => Buffer): MakeBody =>
  (sessionId, bytes) => ({
    headers: BINARY_TYPE,
    head: (id) =>
      Buffer.concat([field(1, Buffer.from(sessionId)), field(2, Buffer.from(id)), field(3, Buffer.from("write_file"))]),
    rest: fill(bytes - AROUND_BYTES),
  });

/** `params` with one entry, a list of these values. */
const listOf = (values: Buffer): Buffer =>
  field(4, field(1, Buffer.concat([field(1, Buffer.from("content")), field(2, field(6, values))])));

const compressed =
  (make: MakeBody): MakeBody =>
  (sessionId, bytes) => {
    const { headers, head, rest } = make(sessionId, bytes);
    const whole = gzipSync(Buffer.concat([head(randomUUID()), rest]));
    return { headers: { ...headers, "content-encoding": "gzip" }, head: () => Buffer.alloc(0), rest: whole };
  };

const array = jsonBody("write_file", many('{"a":[1', ",1", "]}"));
const text = jsonBody("write_file", (bytes) =>
  many('{"path":"flood.txt","content":"', "x", '"}')(Math.min(bytes, MAX_CONTENT_BYTES)),
);

const BODIES = {
  array,
  objects: jsonBody("write_file", many('{"a":[{}', ",{}", "]}")),
  nested: jsonBody("bash", (bytes) => `${'{"a":'.repeat(bytes / 6)}1${"}".repeat(bytes / 6)}`),
  duplicates: jsonBody("bash", many('{"a":1', ',"a":1', "}")),
  fields: jsonBody("bash", (bytes) => {
    const names = Array.from({ length: bytes / 14 }, (_, index) => `"k${String(index).padStart(8, "0")}":1`);
    return `{${names.join(",")}}`;
  }),
  longText: jsonBody("write_file", many('{"path":"flood.txt","content":"', "x", '"}')),
  escapes: jsonBody("write_file", many('{"path":"flood.txt","content":"', '\\"', '"}')),
  text,
  emptyValues: binaryBody((bytes) => listOf(Buffer.alloc(bytes, Buffer.from([0x0a, 0x00])))),
  unknownFields: binaryBody((bytes) => Buffer.alloc(bytes - (bytes % 2), Buffer.from([0x78, 0x01]))),
  gzipArray: compressed(array),
  gzipText: compressed(text),
} as const satisfies Readonly<Record<string, MakeBody>>;

export type BodyKind = keyof typeof BODIES;

export const BODY_KINDS = Object.keys(BODIES) as readonly BodyKind[];

async function send({ url, token, length }: Flood, { headers, head, rest }: Body): Promise<string> {
  const first = head(randomUUID());
  const size: Headers = length === "said" ? { "content-length": String(first.length + rest.length) } : {};
  return await new Promise((resolve) => {
    const call = request(
      `${url}/turnbox.host.v1.ToolService/ExecuteTool`,
      { method: "POST", agent: false, headers: { authorization: `Bearer ${token}`, ...size, ...headers } },
      (response) => {
        let answer = "";
        response.setEncoding("utf8").on("data", (piece: string) => (answer += piece));
        response.on("end", () => {
          resolve(/"reason":"([A-Z_]+)"/.exec(answer)?.[1] ?? String(response.statusCode));
        });
        response.on("error", () => {
          resolve("cut");
        });
      },
    );
    call.on("error", () => {
      resolve("cut");
    });
    call.write(first);
    call.end(rest);
  });
}

async function flood(asked: Flood): Promise<Answers> {
  const answers: Record<string, number> = {};
  for (const kind of asked.kinds) {
    const body = BODIES[kind](asked.sessionId, asked.bytes);
    const came = await Promise.all(Array.from({ length: asked.parallel }, () => send(asked, body)));
    for (const answer of came) answers[`${kind} ${answer}`] = (answers[`${kind} ${answer}`] ?? 0) + 1;
  }
  return answers;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  process.stdout.write(JSON.stringify(await flood((await json(process.stdin)) as Flood)));
}
