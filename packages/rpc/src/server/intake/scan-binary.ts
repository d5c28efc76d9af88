import { isUtf8 } from "node:buffer";
import type { DescMessage } from "@bufbuild/protobuf";
import { invalidArgument } from "@turnbox/core";
import { DELIMITED, FIXED_32, FIXED_64, type Shape, shapesOf, VARINT } from "./field-shape.ts";
import { MAX_DEPTH, MAX_VALUES } from "./scan-limits.ts";

const MAX_VARINT_BYTES = 10;

/**
 * How many fields a message in binary has, found without making any of them: an empty value of two bytes takes more than a hundred in
 * memory. Throws if there are too many or if they lie too deep, and names the field that does not decode: the parser of
 * protobuf does not.
 */
export function scanBinary(desc: DescMessage, bytes: Uint8Array): number {
  const scan = new Scan(bytes);
  scan.message(shapesOf(desc), { end: bytes.length, name: "request", depth: 1 });
  return scan.fields;
}

interface Span {
  readonly end: number;
  readonly name: string;
  readonly depth: number;
}

class Scan {
  fields = 0;
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  message(shapes: ReadonlyMap<number, Shape>, { end, name, depth }: Span): void {
    if (depth > MAX_DEPTH) throw invalidArgument("request", `must be nested at most ${MAX_DEPTH} deep`);
    while (this.#at < end) {
      this.#count();
      const tag = this.#varint(end, name);
      const number = tag >>> 3;
      const wireType = tag & 7;
      if (number === 0) throw undecoded(name, "has a field without a number");
      const shape = shapes.get(number);
      if (shape === undefined) this.#skip(wireType, end, name);
      else this.#field(shape, wireType, { end, depth, name: shape.name });
    }
  }

  #field(shape: Shape, wireType: number, span: Span): void {
    if (wireType === DELIMITED && shape.packed !== undefined) {
      this.#packed(shape.packed, span);
      return;
    }
    if (wireType !== shape.wireType) throw undecoded(span.name, `has the wire type ${wireType}`);
    if (wireType !== DELIMITED) {
      this.#skip(wireType, span.end, span.name);
      return;
    }
    const end = this.#delimited(span.end, span.name);
    if (shape.message !== undefined) {
      this.message(shape.message, { end, name: span.name, depth: span.depth + (shape.deeper ?? 1) });
    } else if (shape.text === "utf8" && !isUtf8(this.#bytes.subarray(this.#at, end))) {
      throw undecoded(span.name, "is not UTF-8");
    }
    this.#at = end;
  }

  #packed(wireType: number, { end: outer, name }: Span): void {
    const end = this.#delimited(outer, name);
    while (this.#at < end) {
      this.#count();
      this.#skip(wireType, end, name);
    }
  }

  #count(): void {
    this.fields += 1;
    if (this.fields > MAX_VALUES) throw invalidArgument("request", `must have at most ${MAX_VALUES} values`);
  }

  #skip(wireType: number, end: number, name: string): void {
    if (wireType === VARINT) this.#varint(end, name);
    else if (wireType === DELIMITED) this.#at = this.#delimited(end, name);
    else if (wireType === FIXED_64) this.#advance(8, end, name);
    else if (wireType === FIXED_32) this.#advance(4, end, name);
    else throw undecoded(name, `has the wire type ${wireType}`);
  }

  /** Where what a length comes before ends. */
  #delimited(end: number, name: string): number {
    const length = this.#varint(end, name);
    if (length > end - this.#at) throw undecoded(name, "is longer than what holds it");
    return this.#at + length;
  }

  #advance(count: number, end: number, name: string): void {
    if (count > end - this.#at) throw undecoded(name, "is cut off");
    this.#at += count;
  }

  /** The lower 32 bits, which is all that tags and lengths have. */
  #varint(end: number, name: string): number {
    let value = 0;
    for (let count = 0; count < MAX_VARINT_BYTES; count += 1) {
      if (this.#at >= end) throw undecoded(name, "is cut off");
      const byte = this.#bytes[this.#at] ?? 0;
      this.#at += 1;
      if (count < 5) value |= (byte & 127) << (7 * count);
      if (byte < 128) return value >>> 0;
    }
    throw undecoded(name, "has a number of more than 10 bytes");
  }
}

const undecoded = (name: string, what: string) => invalidArgument(name, `does not decode: ${what}`);
