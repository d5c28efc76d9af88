/** What a hostile server sends for one request, and how it ends the connection then. */
export interface HostileAnswer {
  readonly bytes: Buffer;
  /** In how many writes it comes. */
  readonly pieces: number;
  readonly ending: "close" | "reset" | "hold";
}

type Random = () => number;

/** mulberry32: the same seed, the same numbers from 0 to 1. */
export function seededRandom(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const pick = <Item>(random: Random, items: readonly Item[]): Item => {
  const item = items[Math.floor(random() * items.length)];
  if (item === undefined) throw new Error("nothing to choose from");
  return item;
};
const chance = (random: Random, of: number): boolean => random() < of;
const upTo = (random: Random, most: number): number => Math.floor(random() * (most + 1));

const VERSIONS = [
  "HTTP/1.1",
  "HTTP/1.1",
  "HTTP/1.1",
  "HTTP/1.0",
  "HTTP/0.9",
  "HTTP/2.0",
  "HTTP/9.9",
  "http/1.1",
  "ICY",
  "RTSP/1.0",
];
const STATUSES =
  "200 200 200 201 204 205 206 301 304 404 416 500 599 099 000 001 100 101 102 103 150 199 600 700 999 20 2000 -1 +200 2e2 0x200"
    .split(" ")
    .concat(["", " ", "２００"]);
const REASONS = [
  "OK",
  "OK",
  "",
  "\x01",
  "a\x00b",
  "a\x7fb",
  "\x1b[2J",
  "grüße",
  "\xff\xfe",
  "a\rb",
  "\t",
  "x".repeat(20_000),
  "HTTP/1.1 200 OK",
];
const NAMES = [
  "X-A",
  "Set-Cookie",
  "Date",
  "Server",
  "Content-Type",
  "Location",
  "__proto__",
  "constructor",
  "Content-Encoding",
].concat(["a b", "", "é", "x\x01y", "x\x00", "(x)", "Host", ":status", "X".repeat(9000)]);
const VALUES = [
  "v",
  "",
  "a, b",
  "\x01",
  "\x00",
  "\x7f",
  "é",
  "\xff",
  "a\r b",
  "v\tw",
  "x".repeat(17_000),
  "\r\n folded",
  "=?utf-8?q?x?=",
  "\u000bx",
];
/** Headers about the connection and the body, which a proxy has to make for itself. */
const FRAMING = ["Trailer: x", "Trailer: Content-Length", "Trailer:", "Trailer: a, b, c"]
  .concat([
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: chunked, chunked",
  ])
  .concat([
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding:\tchunked",
    "Transfer-Encoding : chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
  ])
  .concat([
    "Content-Length: 5",
    "Content-Length: 0",
    "Content-Length: -1",
    "Content-Length: +5",
    "Content-Length: 5, 5",
    "Content-Length: 5\r\nContent-Length: 6",
  ])
  .concat([
    "Content-Length: 18446744073709551615",
    "Content-Length: 99999999999999999999",
    "Content-Length: 0x5",
    "Content-Length: 5 5",
    "Content-Length:",
    "Content-Length: 100000",
  ])
  .concat([
    "Connection: close",
    "Connection: keep-alive",
    "Connection: upgrade",
    "Connection: content-length, x-a",
    "Connection: ,,,",
    "Connection: \x01",
  ])
  .concat([
    "Keep-Alive: timeout=999999",
    "Keep-Alive: max=-1",
    "Upgrade: websocket",
    "Upgrade: h2c",
    "Upgrade:",
    "TE: trailers",
  ])
  .concat([
    "Proxy-Authenticate: Basic",
    "Proxy-Authorization: Basic x",
    "Proxy-Connection: keep-alive",
    "Expect: 100-continue",
    "HTTP2-Settings: x",
  ]);

/** A seeded hostile answer: mostly near to HTTP, so that it gets past the first check of a parser. */
export function hostileAnswer(random: Random): HostileAnswer {
  if (chance(random, 0.02)) return { bytes: garbage(random, upTo(random, 3000)), pieces: 1, ending: endingOf(random) };
  const parts = [Buffer.from(interim(random), "latin1"), Buffer.from(answerHead(random), "latin1"), body(random)];
  if (chance(random, 0.15)) parts.push(Buffer.from(`${answerHead(random)}smuggled`, "latin1"));
  let bytes: Buffer = Buffer.concat(parts);
  if (chance(random, 0.3)) bytes = mutated(random, bytes);
  return { bytes, pieces: chance(random, 0.3) ? 1 + upTo(random, 6) : 1, ending: endingOf(random) };
}

function endingOf(random: Random): HostileAnswer["ending"] {
  if (chance(random, 0.9)) return "close";
  return chance(random, 0.5) ? "reset" : "hold";
}

function interim(random: Random): string {
  if (chance(random, 0.85)) return "";
  const count = chance(random, 0.1) ? 200 : upTo(random, 20);
  const status = pick(random, ["100", "102", "103", "101", "199"]);
  const more = chance(random, 0.3) ? "Link: </a>\r\nUpgrade: websocket\r\nConnection: upgrade\r\n" : "";
  return `HTTP/1.1 ${status} x\r\n${more}\r\n`.repeat(count);
}

function answerHead(random: Random): string {
  const end = chance(random, 0.95) ? "\r\n" : pick(random, ["\n", "\r", "\n\r", ""]);
  const isPlain = chance(random, 0.7);
  const status = isPlain ? "200" : pick(random, STATUSES);
  const reason = isPlain && chance(random, 0.5) ? "OK" : pick(random, REASONS);
  const lines = [`${chance(random, 0.8) ? "HTTP/1.1" : pick(random, VERSIONS)} ${status} ${reason}`];
  for (let left = upTo(random, 2); left > 0; left -= 1) lines.push(pick(random, FRAMING));
  for (let left = upTo(random, 2); left > 0; left -= 1)
    lines.push(isPlain ? `X-${String(left)}: é` : `${pick(random, NAMES)}: ${pick(random, VALUES)}`);
  if (chance(random, 0.02)) for (let left = 3000; left > 0; left -= 1) lines.push("a: b");
  return `${lines.join(end)}${end}${chance(random, 0.97) ? end : ""}`;
}

function body(random: Random): Buffer {
  return pick(random, [
    () => Buffer.from("hello"),
    () => Buffer.from("hell"),
    () => Buffer.from("hello, more than was said"),
    () => Buffer.alloc(0),
    () => Buffer.from("5\r\nhello\r\n0\r\n\r\n"),
    () => Buffer.from("5\r\nhello\r\n0\r\nTrailer-A: b\r\nContent-Length: 9\r\n\r\n"),
    () => Buffer.from(`5;${"x".repeat(upTo(random, 40_000))}\r\nhello\r\n0\r\n\r\n`),
    () => Buffer.from("5\r\nhello\r\n0\r\nTrailer\x01: b\x00\r\n\r\n"),
    () => Buffer.from("-5\r\nhello\r\n0\r\n\r\n"),
    () => Buffer.from("ffffffffffffffffff\r\nhello"),
    () => Buffer.from("5\r\nhel"),
    () => garbage(random, upTo(random, 2000)),
    () => Buffer.alloc(upTo(random, 200_000), "z"),
  ])();
}

function garbage(random: Random, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => Math.floor(random() * 256)));
}

/** A few bytes changed, taken out or put in, mostly in the head. */
function mutated(random: Random, bytes: Buffer): Buffer {
  let changed: Buffer = bytes;
  for (let left = 1 + upTo(random, 4); left > 0 && changed.length > 0; left -= 1) {
    const at = upTo(random, Math.min(changed.length - 1, chance(random, 0.8) ? 120 : changed.length - 1));
    const put = chance(random, 0.5)
      ? garbage(random, upTo(random, 3))
      : Buffer.from(pick(random, ["\r\n", ":", "\x00", " ", "\n"]));
    changed = Buffer.concat([changed.subarray(0, at), put, changed.subarray(at + upTo(random, 3))]);
  }
  return chance(random, 0.2) ? changed.subarray(0, upTo(random, changed.length)) : changed;
}
