import { readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { resolveProfile } from "./resolve-profile.ts";

const PAGE = readFileSync(new URL("../../../../../docs/PROVIDERS.md", import.meta.url), "utf8");

describe("the table of the profile's fields", () => {
  it("has a row for every field, and says its meaning, default and who honours it", () => {
    const { network, daytona, ...rest } = resolveProfile({ backend: "daytona" });
    const below = (name: string, fields: object): readonly string[] =>
      Object.keys(fields).map((one) => `${name}.${one}`);
    const fields = [...Object.keys(rest), ...below("network", network), ...below("daytona", daytona ?? {})];
    expect(fields).toHaveLength(22);
    const rows = PAGE.split("\n").filter((line) => line.startsWith("| `"));
    for (const field of fields) {
      const cells = rows.find((row) => row.startsWith(`| \`${field}\` `))?.split("|");
      expect([field, cells?.slice(1, -1).every((cell) => cell.trim() !== ""), cells?.length]).toEqual([field, true, 6]);
    }
  });
});
