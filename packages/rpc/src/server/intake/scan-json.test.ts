import { describe, expect, it } from "@jest/globals";
import { fromConnectError } from "../../wire/connect-error.ts";
import { scanJson } from "./scan-json.ts";
import { MAX_DEPTH, MAX_VALUES } from "./scan-limits.ts";

const scan = (text: string): number => scanJson(Buffer.from(text));

const refusalOf = (text: string): string => {
  try {
    scan(text);
  } catch (thrown) {
    return fromConnectError(thrown).message;
  }
  throw new Error("it was let in");
};

describe("scanJson", () => {
  it("counts what is outside of texts", () => {
    expect(scan("{}")).toBe(2);
    expect(scan('{"a":1,"b":[1,2,3]}')).toBe(scan('{"a,[{":1,"b\\"}":[1,2,3]}'));
    expect(scan('"\\\\"')).toBe(1);
    expect(scan(`{"content":"${"[{,".repeat(MAX_VALUES)}"}`)).toBe(2);
    expect(scan(`{"content":"${'\\"'.repeat(MAX_VALUES)}"}`)).toBe(2);
  });

  it("refuses more values than a request may have, whatever they are", () => {
    const rule = `request: must have at most ${MAX_VALUES} values`;
    expect(scan(`[${"1,".repeat(MAX_VALUES - 3)}1]`)).toBe(MAX_VALUES - 1);
    for (const piece of ["1,", "{},", '"a":1,', "[],"]) expect(refusalOf(`[${piece.repeat(MAX_VALUES)}1]`)).toBe(rule);
  });

  it("refuses what lies too deep, before all of it is looked at", () => {
    expect(scan("[".repeat(MAX_DEPTH) + "]".repeat(MAX_DEPTH))).toBe(MAX_DEPTH + 1);
    for (const piece of ["[", '{"a":'])
      expect(refusalOf(piece.repeat(1_000_000))).toBe(`request: must be nested at most ${MAX_DEPTH} deep`);
  });

  it("leaves what is no JSON to the parser", () => {
    for (const text of ["", "]]]]", '"', '"\\', "{,,,}", "\0"]) expect(scan(text)).toBeGreaterThan(0);
  });
});
