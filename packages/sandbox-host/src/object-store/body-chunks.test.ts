import { Readable } from "node:stream";
import { describe, expect, it } from "@jest/globals";
import { bodyParts } from "./body-chunks.ts";

const partsOf = async (sizes: readonly number[], bytes: number): Promise<readonly string[]> => {
  let given = 0;
  const chunks = sizes.map((size) => Buffer.from(Array.from({ length: size }, () => 97 + (given++ % 26))));
  const parts: string[] = [];
  const ends: boolean[] = [];
  for await (const { content, isLast } of bodyParts(Readable.from(chunks), bytes)) {
    parts.push(content.toString());
    ends.push(isLast);
  }
  expect(ends).toEqual(parts.map((_, index) => index === parts.length - 1));
  return parts;
};

describe("bodyParts", () => {
  it.each<[readonly number[], readonly string[]]>([
    [[], [""]],
    [[2], ["ab"]],
    [[3], ["abc"]],
    [
      [1, 1, 1, 1],
      ["abc", "d"],
    ],
    [[6], ["abc", "def"]],
    [[7], ["abc", "def", "g"]],
    [
      [2, 5],
      ["abc", "def", "g"],
    ],
  ])("cuts chunks of %j bytes into %j", async (sizes, parts) => {
    expect(await partsOf(sizes, 3)).toEqual(parts);
  });
});
