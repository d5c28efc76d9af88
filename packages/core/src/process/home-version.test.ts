import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { openHome } from "./home-version.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "home-version-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

describe("openHome", () => {
  it("makes a home once and keeps its id", () => {
    const home = path.join(folder, "a", "home");
    const first = openHome(home);
    expect(first.version).toBe(1);
    writeFileSync(path.join(home, "config.json"), "{}");
    expect(openHome(home)).toEqual(first);
    expect(statSync(home).mode & 0o777).toBe(0o700);
    expect(openHome(path.join(folder, "b")).id).not.toBe(first.id);
  });

  it.each(["empty", "a home"])("closes a folder to others that was there before and is %s", (kind) => {
    const home = path.join(folder, "open");
    mkdirSync(home);
    if (kind === "a home") openHome(home);
    chmodSync(home, 0o755);
    openHome(home);
    expect(statSync(home).mode & 0o7777).toBe(0o700);
  });

  it("does not adopt a folder that holds other things", () => {
    writeFileSync(path.join(folder, "thesis.txt"), "");
    chmodSync(folder, 0o755);
    expect(() => openHome(folder)).toThrow(expect.objectContaining({ reason: "CONFIG_INVALID" }));
    expect(statSync(folder).mode & 0o777).toBe(0o755);
    expect(readdirSync(folder)).toEqual(["thesis.txt"]);
  });

  it.each(['{"version":2,"id":"abcdefgh"}', "{}", "garbage", "null", '{"version":1,"id":"../x"}'])(
    "refuses a home.json of another version or form: %s",
    (content) => {
      writeFileSync(path.join(folder, "home.json"), content);
      expect(() => openHome(folder)).toThrow(expect.objectContaining({ reason: "HOME_VERSION_UNSUPPORTED" }));
      expect(readFileSync(path.join(folder, "home.json"), "utf8")).toBe(content);
    },
  );
});
