import { Code, ConnectError } from "@connectrpc/connect";

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Whether a text may hold an escape of half a character; most hold none. */
const HALF = /\\u[dD][89a-fA-F]/;
const ESCAPE = /\\(?:u([0-9a-fA-F]{4})|.)/gs;

/**
 * How the protocol layer reads JSON. Connect hands these options on to what parses, which asks the decoder for the text; its types
 * name the others only.
 *
 * Text that is not Unicode is refused, as it is in binary: nothing can carry it on. A message that quotes half a character does not
 * go into a trailer of gRPC, whose writer throws, and the caller would get no answer.
 */
export const STRICT_JSON = {
  ignoreUnknownFields: true,
  textDecoder: { decode: decodeStrictly },
} as const;

function decodeStrictly(bytes?: Uint8Array): string {
  const text = decodeUtf8(bytes);
  if (HALF.test(text) && hasLoneHalf(text))
    throw new ConnectError("the request has an escape of half a character (a lone surrogate)", Code.InvalidArgument);
  return text;
}

function decodeUtf8(bytes: Uint8Array | undefined): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new ConnectError("the request is not UTF-8", Code.InvalidArgument);
  }
}

function hasLoneHalf(text: string): boolean {
  let highEndsAt = -1;
  for (const { 0: whole, 1: digits = "", index } of text.matchAll(ESCAPE)) {
    const code = digits === "" ? 0 : Number.parseInt(digits, 16);
    const isLow = code >= 0xdc00 && code <= 0xdfff;
    if (isLow !== (highEndsAt === index)) return true;
    highEndsAt = code >= 0xd800 && code <= 0xdbff ? index + whole.length : -1;
    // A high one with anything but an escape behind it.
    if (highEndsAt !== -1 && text[highEndsAt] !== "\\") return true;
  }
  return false;
}
