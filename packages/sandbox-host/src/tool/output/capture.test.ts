import { describe, expect, it } from "@jest/globals";
import { type Captured, fitOutputs, MAX_ENCODED_BYTES, textOf } from "./capture.ts";

const MIB = 1024 * 1024;
const captured = (bytes: Buffer): Captured => ({ bytes, totalBytes: bytes.length });
const encoded = ({ stdout, stderr }: { readonly stdout: Captured; readonly stderr: Captured }): number =>
  Buffer.byteLength(JSON.stringify(textOf(stdout) + textOf(stderr))) - 2;

describe("fitOutputs", () => {
  it("leaves what fits as it is, also the largest plain output", () => {
    const text = captured(Buffer.alloc(4 * MIB, "é"));
    const outputs = { stdout: text, stderr: text };
    expect(fitOutputs(outputs)).toEqual(outputs);
    const small = { stdout: captured(Buffer.alloc(1000)), stderr: captured(Buffer.alloc(0)) };
    expect(fitOutputs(small)).toBe(small);
  });

  it.each([
    ["NUL bytes", 0x00, 6],
    ["bytes that are no text", 0xff, 3],
    ["quotation marks", 0x22, 2],
  ])("cuts %s so that they fit as JSON and in binary, and uses the room there is", (_, byte, size) => {
    const flood = captured(Buffer.alloc(4 * MIB, byte));
    const both = fitOutputs({ stdout: flood, stderr: flood });
    expect(encoded(both)).toBeLessThanOrEqual(MAX_ENCODED_BYTES);
    expect(encoded(both)).toBeGreaterThan(Math.min(MAX_ENCODED_BYTES - MIB, 8 * MIB * size - MIB));
    expect(both.stdout.totalBytes).toBe(4 * MIB);
    if (size > 2) expect(both.stdout.bytes.length).toBeLessThan(4 * MIB);
  });

  it("leaves what one output does not need to the other", () => {
    const flood = captured(Buffer.alloc(4 * MIB));
    const note = captured(Buffer.from("note"));
    const one = fitOutputs({ stdout: flood, stderr: note });
    const other = fitOutputs({ stdout: note, stderr: flood });
    expect(one.stderr.bytes.toString()).toBe("note");
    expect(other.stdout.bytes.toString()).toBe("note");
    for (const cut of [one.stdout, other.stderr]) expect(cut.bytes.length).toBeGreaterThan(2.4 * MIB);
  });
});
