import { invalidArgument } from "@turnbox/core";
import { MAX_DEPTH, MAX_VALUES } from "./scan-limits.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * How many values a text of JSON has, found without making any of them: a value of two bytes takes more than a hundred in memory.
 * Throws if there are too many, or if they lie too deep. What is no JSON is left to the parser.
 */
export function scanJson(bytes: Uint8Array): number {
  const { length } = bytes;
  let values = 1;
  let depth = 0;
  for (let at = 0; at < length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfText(bytes, at + 1);
    } else if (byte === COMMA) {
      values += 1;
    } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      values += 1;
      depth += 1;
      if (depth > MAX_DEPTH) throw invalidArgument("request", `must be nested at most ${MAX_DEPTH} deep`);
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) {
      depth -= 1;
    }
  }
  if (values > MAX_VALUES) throw invalidArgument("request", `must have at most ${MAX_VALUES} values`);
  return values;
}

/** Where the quote is that ends the text. */
function endOfText(bytes: Uint8Array, from: number): number {
  const { length } = bytes;
  for (let at = from; at < length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) at += 1;
  }
  return length;
}
