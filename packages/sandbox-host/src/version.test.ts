import { readFile } from "node:fs/promises";
import { expect, it } from "@jest/globals";
import { HOST_VERSION } from "./version.ts";

it("is the version of the package", async () => {
  const text = await readFile(new URL("../package.json", import.meta.url), "utf8");
  expect((JSON.parse(text) as { version: string }).version).toBe(HOST_VERSION);
});
