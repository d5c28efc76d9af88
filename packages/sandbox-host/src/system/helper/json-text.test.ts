import { describe, expect, it } from "@jest/globals";
import { JsonText, MAX_JSON_TEXT_BYTES } from "./json-text.ts";

/** What is read of pieces until the object is whole; undefined if it is not. */
function read(...pieces: readonly string[]): string | undefined {
  const reader = new JsonText();
  for (const piece of pieces) if (reader.add(Buffer.from(piece))) return reader.text();
  return undefined;
}

describe("the text of a JSON object on a line", () => {
  it.each([
    ['{"a":1}', '{"a":1}'],
    [' \r\n{"a":{"b":[1,{"c":2}]}}\n{"next":1}', ' \r\n{"a":{"b":[1,{"c":2}]}}'],
    [String.raw`{"a":"}\"}\\"}`, String.raw`{"a":"}\"}\\"}`],
    ['{"ü":"[{"}', '{"ü":"[{"}'],
    ["{}", "{}"],
  ])("ends with the object: %s", (sent, expected) => {
    expect(read(sent)).toBe(expected);
    const bytes = Buffer.from(sent);
    const reader = new JsonText();
    const ended = [...bytes].findIndex((_, at) => reader.add(bytes.subarray(at, at + 1)));
    expect([ended, reader.text()]).toEqual([Buffer.byteLength(expected) - 1, expected]);
  });

  it("is not whole before", () => {
    for (const half of ["", " ", "{", '{"a":"}', '{"a":[}', String.raw`{"a":"\"}`]) expect(read(half)).toBeUndefined();
  });

  it.each(["x", "[1]", '"a"', "1", "null", "\u0000", "}", "<html>"])(
    "is refused at once where it is none: %s",
    (sent) => {
      expect(() => read(sent)).toThrow("no object");
    },
  );

  it("has a longest length, whatever its pieces are", () => {
    const piece = "x".repeat(1024 * 1024);
    const reader = new JsonText();
    reader.add(Buffer.from('{"a":"'));
    expect(() => {
      for (let sent = 0; sent <= MAX_JSON_TEXT_BYTES; sent += piece.length) reader.add(Buffer.from(piece));
    }).toThrow("too long");
  });

  it("takes time by its length alone: a million pieces of one byte are no more than one", () => {
    const reader = new JsonText();
    const byte = Buffer.from("{");
    const startMs = performance.now();
    for (let sent = 0; sent < 1_000_000; sent += 1) reader.add(byte);
    expect(performance.now() - startMs).toBeLessThan(10_000);
  });
});
