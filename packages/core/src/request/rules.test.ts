import { describe, expect, it } from "@jest/globals";
import { parseEnum, parseKey, parseLabels, parseResources, parseSize, parseVariables } from "./rules.ts";

describe("the rules of requests", () => {
  it("keep maps to what was given: names of object properties are labels like others (attack 56)", () => {
    const labels = parseLabels("labels", { constructor: "c", a: "b" });
    expect(Object.entries(labels)).toEqual([
      ["constructor", "c"],
      ["a", "b"],
    ]);
    expect(() => parseLabels("labels", Object.fromEntries([["__proto__", "x"]]))).toThrow("labels: keys must be");
  });

  it("bound labels in number, key and value", () => {
    const many = Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`k${index}`, ""]));
    expect(() => parseLabels("labels", many)).toThrow("labels: must have at most 64 labels");
    expect(() => parseLabels("labels", { "-x": "" })).toThrow("labels: keys must be");
    expect(() => parseLabels("labels", { x: "ä".repeat(128) })).toThrow("labels: values must have at most 255 bytes");
  });

  it("never show a variable's name or value", () => {
    for (const env of [{ "MY-SECRET": "x" }, { A: "s3cret\0" }]) {
      expect(() => parseVariables("env", env)).toThrow(/^env: (names|values) must (?!.*(SECRET|s3cret))/);
    }
    expect(parseVariables("env", { _A1: "" })).toEqual({ _A1: "" });
  });

  it("bound an environment as a whole", () => {
    const of = (bytes: number): Readonly<Record<string, string>> => ({
      V0: "x".repeat(64 * 1024 - 2),
      V1: "x".repeat(64 * 1024 - 2),
      V2: "x".repeat(64 * 1024 - 2),
      V3: "é".repeat((bytes - 3 * 64 * 1024 - 2) / 2),
    });
    expect(Object.keys(parseVariables("env", of(256 * 1024)))).toHaveLength(4);
    expect(() => parseVariables("params.env", of(256 * 1024 + 2))).toThrow(
      "params.env: names and values must have at most 262144 bytes together",
    );
  });

  it("refuse numbers out of range instead of bending them (attack 24)", () => {
    expect(parseSize("quota_bytes", 0n)).toBeUndefined();
    expect(() => parseSize("quota_bytes", 2n ** 63n)).toThrow("quota_bytes: must be at most");
    for (const cpus of [Number.NaN, -1, Number.POSITIVE_INFINITY, 1e9, 0.001]) {
      expect(() => parseResources({ cpus, memoryBytes: 0n, pids: 0 })).toThrow("resources.cpus: ");
    }
    expect(() => parseResources({ cpus: 0, memoryBytes: 1n, pids: 0 })).toThrow("resources.memory_bytes: ");
    expect(() => parseResources({ cpus: 0, memoryBytes: 0n, pids: 1 })).toThrow("resources.pids: ");
    expect(parseResources({ cpus: 0.5, memoryBytes: 2n ** 30n, pids: 64 })).toEqual({
      cpus: 0.5,
      memoryBytes: 2 ** 30,
      pids: 64,
    });
  });

  it("refuse keys and labels that have no UTF-8", () => {
    for (const text of ["\ud800", "a\udfff", "\udc00\ud800"]) {
      expect(() => parseKey("turn_key", text)).toThrow("turn_key: must be Unicode without lone surrogates");
      expect(() => parseLabels("labels", { x: text })).toThrow("labels: values must be Unicode");
    }
    expect(parseKey("turn_key", "\ud83d\ude00")).toBe("😀");
  });

  it("refuse unknown enum values and long keys", () => {
    expect(() => parseEnum("outcome", 9, new Map([[0, "x"]]))).toThrow("outcome: has the unknown value 9");
    expect(() => parseKey("turn_key", "x".repeat(257))).toThrow("turn_key: must have at most 256 bytes");
  });
});
