import { inspect } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { DataKey } from "./data-key.ts";

const BYTES = Buffer.from(Array.from({ length: 32 }, (_, index) => index));

describe("DataKey", () => {
  it("prints as redacted wherever it turns into text", () => {
    const key = new DataKey(BYTES);
    const shown = [
      String(key),
      JSON.stringify({ nested: [key] }),
      inspect({ nested: [key] }, { showHidden: true, depth: 9 }),
      inspect(key, { customInspect: false, showHidden: true }),
    ].join("\n");
    for (const form of ["hex", "base64", "latin1"] as const)
      expect(shown).not.toContain(BYTES.toString(form).slice(2, 20));
    expect(shown).not.toMatch(/<Buffer/);
  });

  it("derives another key for each salt and each purpose, and the same one again", () => {
    const key = new DataKey(BYTES);
    const keys = [
      key.derive(Buffer.alloc(32), "a"),
      key.derive(Buffer.alloc(32), "b"),
      key.derive(Buffer.alloc(32, 1), "a"),
      new DataKey(Buffer.alloc(32)).derive(Buffer.alloc(32), "a"),
    ].map((derived) => derived.toString("hex"));
    expect(new Set(keys).size).toBe(4);
    expect(new DataKey(BYTES).derive(Buffer.alloc(32), "a").toString("hex")).toBe(keys[0]);
  });

  it("has an id that is the same for the same bytes, and no part of them", () => {
    expect(new DataKey(BYTES).id).toBe(new DataKey(BYTES).id);
    expect(new DataKey(BYTES).id).toMatch(/^[0-9a-f]{32}$/);
    expect(BYTES.toString("hex")).not.toContain(new DataKey(BYTES).id);
  });

  it("takes a copy, and is zeros after its disposal", () => {
    const given = Buffer.from(BYTES);
    const key = new DataKey(given);
    given.fill(9);
    expect(key.reveal().equals(BYTES)).toBe(true);
    key[Symbol.dispose]();
    expect(key.reveal().equals(Buffer.alloc(32))).toBe(true);
  });

  it("refuses bytes of another length", () => {
    for (const bytes of [0, 31, 33]) expect(() => new DataKey(Buffer.alloc(bytes))).toThrow("32 bytes");
  });
});
