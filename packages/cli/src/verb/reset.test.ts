import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { ERROR_TABLE, identifyProcess } from "@turnbox/core";
import { createServices, newWorld } from "@turnbox/client/fake";
import { createHarness, type Harness, installServices } from "../cli-harness.suite.ts";
import { assertIsTurnboxHome, assertNothingMounted } from "./reset.ts";

let harness: Harness;

beforeEach(async () => {
  harness = await createHarness(createServices(newWorld()));
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

describe("turnbox reset", () => {
  it("asks for yes, and does nothing without it", async () => {
    expect((await harness.run(["reset"])).exitCode).toBe(2);
    const ran = await harness.run(["reset"], { ask: () => Promise.resolve("y") });
    expect(ran.exitCode).toBe(130);
    expect(await readdir(harness.home)).toEqual(["home.json", "token"]);
  });

  it("removes the home with --yes", async () => {
    expect((await harness.run(["reset", "--yes", "--json"])).json()).toEqual({ home: harness.home, removed: true });
    await expect(readdir(harness.home)).rejects.toThrow("ENOENT");
    expect((await harness.run(["reset", "--yes", "--json"])).json()).toEqual({ home: harness.home, removed: false });
  });

  it("keeps servers out for as long as it works", async () => {
    const host = join(harness.home, "hosts", "h1");
    await mkdir(host, { recursive: true });
    const seen = join(harness.home, "..", `${basename(harness.home)}-seen`);
    await installServices(harness.home, {
      host: `import { copyFileSync } from "node:fs";
        copyFileSync(process.argv[4] + "/../../orchestrator.lock", ${JSON.stringify(seen)});`,
    });
    try {
      expect((await harness.run(["reset", "--yes", "--json"])).json()).toMatchObject({ removed: true });
      expect(JSON.parse(await readFile(seen, "utf8"))).toMatchObject(identifyProcess(process.pid) ?? {});
    } finally {
      await rm(seen, { force: true });
    }
  });

  it("says what to do where storage hangs, in words for the command line, and gives the home free", async () => {
    await mkdir(join(harness.home, "hosts", "h1"), { recursive: true });
    await installServices(harness.home, {
      host: `console.error("COMMAND_OUTCOME_UNKNOWN: zpool was ended at its deadline\\nremedy: ${ERROR_TABLE.COMMAND_OUTCOME_UNKNOWN.remedy}");
        process.exit(1);`,
    });
    const ran = await harness.run(["reset", "--yes"]);
    expect(ran.stderr).toMatch(/^COMMAND_OUTCOME_UNKNOWN: zpool.*\nremedy: Run `turnbox doctor`.*command again/);
    expect(await readdir(harness.home)).toEqual(["home.json", "hosts", "node_modules", "token"]);
  });

  it("leaves a home of another version alone", async () => {
    await writeFile(join(harness.home, "home.json"), '{"version":2,"id":"abcdefgh"}');
    const ran = await harness.run(["reset", "--yes"]);
    expect(ran.stderr).toMatch(/^HOME_VERSION_UNSUPPORTED: .*version 2/);
    expect(await readdir(harness.home)).toEqual(["home.json", "token"]);
  });

  it("leaves a directory alone that is no home of Turnbox", async () => {
    await rm(join(harness.home, "home.json"));
    await mkdir(join(harness.home, "photos"));
    const ran = await harness.run(["reset", "--yes"]);
    expect(ran.stderr).toContain("CONFIG_INVALID");
    expect(await readdir(harness.home)).toEqual(["photos", "token"]);
  });
});

describe("the safety of reset", () => {
  it("knows a home by its marks", () => {
    expect(() => {
      assertIsTurnboxHome("/srv/t", ["home.json"]);
    }).not.toThrow();
    expect(() => {
      assertIsTurnboxHome("/srv/t", []);
    }).not.toThrow();
    expect(() => {
      assertIsTurnboxHome("/srv/t", ["orchestrator.lock", "orchestrator.lock.draft-abc"]);
    }).not.toThrow();
    expect(() => {
      assertIsTurnboxHome("/srv/t", ["photos", "token"]);
    }).toThrow(/left alone/);
    expect(() => {
      assertIsTurnboxHome("/", ["home.json"]);
    }).toThrow(/left alone/);
  });

  it("refuses while something is mounted below the home, blanks in the path included", () => {
    const mountinfo = "1 2 0:3 / / rw - ext4 a rw\n4 1 0:5 / /srv/my\\040home/hosts/h/x rw - fuse z rw\n";
    expect(() => {
      assertNothingMounted("/srv/my home", mountinfo);
    }).toThrow("/srv/my home/hosts/h/x");
    expect(() => {
      assertNothingMounted("/srv/my", mountinfo);
    }).not.toThrow();
  });
});
