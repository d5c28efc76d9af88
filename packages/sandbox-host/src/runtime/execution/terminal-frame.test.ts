import { describe, expect, it } from "@jest/globals";
import { decodeNumbers, encodeNumbers, encodeTerminalFrame, TerminalFrameReader } from "./terminal-frame.ts";

describe("frames of a terminal", () => {
  it("come out as they went in, however they are cut", () => {
    const bytes = Buffer.concat([
      encodeTerminalFrame(3, encodeNumbers(7)),
      encodeTerminalFrame(1),
      encodeTerminalFrame(2, Buffer.from("why")),
    ]);
    for (let size = 1; size <= bytes.length; size += 1) {
      const reader = new TerminalFrameReader(16);
      const frames = [];
      for (let at = 0; at < bytes.length; at += size) frames.push(...reader.read(bytes.subarray(at, at + size)));
      expect(frames.map(({ kind, body }) => [kind, body.toString("hex")])).toEqual([
        [3, "00000007"],
        [1, ""],
        [2, "776879"],
      ]);
    }
  });

  it("of more bytes than they may have are refused before they are kept", () => {
    const reader = new TerminalFrameReader(16);
    expect(() => reader.read(encodeTerminalFrame(2, Buffer.alloc(17)).subarray(0, 5))).toThrow("too long");
  });

  it("have the numbers of their kind", () => {
    expect(decodeNumbers(encodeNumbers(1, 4_000_000_000), 2)).toEqual([1, 4_000_000_000]);
    expect(() => decodeNumbers(Buffer.alloc(5), 1)).toThrow("another length");
  });
});
