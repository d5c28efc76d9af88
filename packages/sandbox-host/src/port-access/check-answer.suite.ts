import { STATUS_CODES } from "node:http";

/** What a client got, byte for byte, for one request on a connection of its own. */
export type SeenAnswer =
  | { readonly kind: "whole" | "cut"; readonly status: number }
  | { readonly kind: "switched" }
  /** Something that the proxy must not send. */
  | { readonly kind: "wrong"; readonly why: string };

const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([\t\x20-\x7e\x80-\xff]*)$/;
const OWN_CONNECTION = /^(close|keep-alive)$/;
const FORBIDDEN = /^(trailer|upgrade|te|proxy-.*)$/;

/** Reads an answer more strictly than clients do: one answer, no more, with the proxy's own framing. */
export function checkAnswer(bytes: Buffer, method: string): SeenAnswer {
  const text = bytes.toString("latin1");
  const wrong = (why: string): SeenAnswer => ({ kind: "wrong", why: `${why}: ${JSON.stringify(text.slice(0, 300))}` });
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return wrong(text === "" ? "no answer" : "half a head");
  const [line = "", ...lines] = text.slice(0, end).split("\r\n");
  const status = readStatus(line);
  if (typeof status === "string") return wrong(status);
  if (status === 101) return { kind: "switched" };
  const headers = readHeaders(lines);
  if (typeof headers === "string") return wrong(headers);
  const rest = text.slice(end + 4);
  const isBare = method === "HEAD" || status === 204 || status === 304;
  const kind = isBare ? bare(rest) : framing(headers, rest);
  return kind === "wrong" ? wrong("body") : { kind, status };
}

/** The status of an answer whose reason phrase is the proxy's, or what is wrong with it. */
function readStatus(line: string): number | string {
  const [, code = "", reason = ""] = /^HTTP\/1\.1 (\d{3}) (.*)$/.exec(line) ?? [];
  const status = Number(code);
  if (status === 101) return status;
  if (status < 200 || status > 599) return "status";
  return reason === (STATUS_CODES[status] ?? "unknown") ? status : "reason phrase";
}

/** The headers by their names in small letters, or what is wrong with them. */
function readHeaders(lines: readonly string[]): ReadonlyMap<string, string> | string {
  const found = new Map<string, string>();
  for (const line of lines) {
    const [, name = "", value = ""] = HEADER.exec(line) ?? [];
    const lower = name.toLowerCase();
    if (name === "") return "header";
    if (FORBIDDEN.test(lower)) return "header of the connection inside";
    found.set(lower, value);
  }
  return OWN_CONNECTION.test(found.get("connection") ?? "") ? found : "connection";
}

const bare = (rest: string): "whole" | "wrong" => (rest === "" ? "whole" : "wrong");

function framing(headers: ReadonlyMap<string, string>, rest: string): "whole" | "cut" | "wrong" {
  const length = headers.get("content-length");
  const encoding = headers.get("transfer-encoding");
  if (encoding !== undefined) return encoding === "chunked" && length === undefined ? chunks(rest) : "wrong";
  if (length === undefined) return "whole";
  if (!/^\d+$/.test(length) || rest.length > Number(length)) return "wrong";
  return rest.length === Number(length) ? "whole" : "cut";
}

function chunks(rest: string): "whole" | "cut" | "wrong" {
  for (let at = 0; ; ) {
    const lineEnd = rest.indexOf("\r\n", at);
    if (lineEnd < 0) return "cut";
    const line = rest.slice(at, lineEnd);
    if (!/^[0-9a-f]{1,8}$/.test(line)) return "wrong";
    const size = Number.parseInt(line, 16);
    const next = lineEnd + 2 + size + 2;
    if (size === 0) return rest.length === next ? "whole" : rest.length < next ? "cut" : "wrong";
    if (rest.length < next) return "cut";
    at = next;
  }
}
