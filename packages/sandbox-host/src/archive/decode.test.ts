import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import {
  amount,
  type Decoder,
  fields,
  flag,
  hex,
  integer,
  list,
  nullable,
  oneOf,
  optional,
  text,
  texts,
} from "./decode.ts";

interface Sample {
  readonly name: string;
  readonly size?: number;
  readonly items: readonly { readonly at: number | null }[];
}

const sample = fields<Sample>({
  name: text(5, /^[a-z]*$/),
  size: optional(integer(1, 3)),
  items: list(fields<Sample["items"][number]>({ at: nullable(amount) }), 2),
});

/** The field that the failure names. */
function fieldOf(decoder: Decoder<unknown>, value: unknown): string | undefined {
  try {
    decoder.decode(value, "");
    return undefined;
  } catch (failure) {
    if (!(failure instanceof SandboxError)) throw failure;
    expect(failure.reason).toBe("ARCHIVE_DAMAGED");
    return failure.metadata["field"];
  }
}

describe("decoders", () => {
  it("give what they were given if it is right", () => {
    const value = { name: "abc", size: 2, items: [{ at: null }, { at: 1.5 }] };
    expect(sample.decode(value, "")).toEqual(value);
    expect(sample.decode({ name: "", items: [] }, "")).toEqual({ name: "", items: [] });
  });

  it.each<readonly [string, unknown]>([
    ["name", { items: [] }],
    ["name", { name: 1, items: [] }],
    ["name", { name: "abcdef", items: [] }],
    ["name", { name: "A", items: [] }],
    ["size", { name: "a", size: 0, items: [] }],
    ["size", { name: "a", size: 4, items: [] }],
    ["size", { name: "a", size: 1.5, items: [] }],
    ["size", { name: "a", size: "1", items: [] }],
    ["more", { name: "a", items: [], more: 1 }],
    ["items", { name: "a", items: {} }],
    ["items", { name: "a", items: [{ at: 1 }, { at: 1 }, { at: 1 }] }],
    ["items[1]", { name: "a", items: [{ at: 1 }, []] }],
    ["items[1].at", { name: "a", items: [{ at: 1 }, {}] }],
    ["items[0].at", { name: "a", items: [{ at: -1 }] }],
    ["items[0].at", { name: "a", items: [{ at: Number.NaN }] }],
  ])("name %s", (field, value) => {
    expect(fieldOf(sample, value)).toBe(field);
  });

  it("keep to their values", () => {
    expect(fieldOf(flag, 1)).toBe("");
    expect(flag.decode(false, "")).toBe(false);
    expect(fieldOf(oneOf("a", "b"), "c")).toBe("");
    expect(fieldOf(hex(2), "abcd")).toBeUndefined();
    for (const wrong of ["abc", "ABCD", "abcde", "abcg"]) expect(fieldOf(hex(2), wrong)).toBe("");
    expect(texts(2, 3).decode({ __proto__x: "abc" }, "")).toEqual({ __proto__x: "abc" });
    expect(fieldOf(texts(1, 3), { a: "1", b: "2" })).toBe("");
    expect(fieldOf(texts(1, 3), { a: "1234" })).toBe("a");
  });
});
