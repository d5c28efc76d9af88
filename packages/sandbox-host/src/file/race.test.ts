import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { FileFailure } from "./failure.ts";
import { removeTree } from "./op/remove.ts";
import { createWalk } from "./walk.ts";
import { writeWhole } from "./write-whole.ts";

/** Swaps a directory and a link that leads out, as fast as it can, until it is killed. */
const RACER = `
const { renameSync, symlinkSync, mkdirSync, writeFileSync } = require("node:fs");
const [work, outside] = process.argv.slice(1);
process.chdir(work);
symlinkSync(outside, "link");
process.stdout.write("ready");
for (;;) {
  try { renameSync("d", "real"); renameSync("link", "d"); renameSync("d", "link"); renameSync("real", "d"); }
  catch { try { mkdirSync("d"); writeFileSync("d/f", "inside"); } catch {} }
}`;
const OPERATIONS = 20_000;
const LIMIT_MS = 30_000;

let base: string;
let work: string;
let racer: ChildProcess;

beforeEach(async () => {
  base = mkdtempSync(join(tmpdir(), "turnbox-race-"));
  work = join(base, "root/workspace");
  mkdirSync(join(work, "d"), { recursive: true });
  mkdirSync(join(base, "outside"));
  writeFileSync(join(base, "outside/f"), "OUTSIDE");
  writeFileSync(join(work, "d/f"), "inside");
  racer = spawn(process.execPath, ["-e", RACER, work, join(base, "outside")], { stdio: ["ignore", "pipe", "inherit"] });
  if (racer.stdout !== null) await once(racer.stdout, "data");
});

afterEach(async () => {
  racer.kill("SIGKILL");
  if (racer.exitCode === null && racer.signalCode === null) await once(racer, "exit");
  rmSync(base, { recursive: true });
});

/** What a careful-looking program does: resolve, compare, read. */
function naiveRead(path: string): string {
  const real = realpathSync(path);
  return real.startsWith(work) ? readFileSync(path, "utf8") : "refused";
}

const outcomeOf = (attempt: () => string): string => {
  try {
    return attempt();
  } catch (thrown) {
    return thrown instanceof FileFailure ? thrown.reason : ((thrown as NodeJS.ErrnoException).code ?? "unknown");
  }
};

describe("a directory that is swapped for a link out, again and again (attack 4, D16)", () => {
  it(
    "is never read or written outside, in 20,000 operations under a racer that fools the naive check",
    () => {
      using walk = createWalk(join(base, "root"));
      const counts = new Map<string, number>();
      const count = (outcome: string): void => void counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
      const startedMs = performance.now();
      let fooled = 0;
      let done = 0;
      while (done < OPERATIONS && performance.now() - startedMs < LIMIT_MS) {
        count(
          outcomeOf(() => {
            using file = walk.open("d/f");
            return readFileSync(file.descriptor, "utf8");
          }),
        );
        if (done % 40 === 0) {
          count(
            outcomeOf(() => {
              using place = walk.find("d/f");
              writeWhole(place, [Buffer.from("inside")]);
              return "written";
            }),
          );
        }
        if (done % 5 === 0 && outcomeOf(() => naiveRead(join(work, "d/f"))) === "OUTSIDE") fooled += 1;
        done += 1;
      }
      expect(counts.get("OUTSIDE") ?? 0).toBe(0);
      expect(
        [...counts.keys()].filter((one) => !["inside", "written", "FILE_NOT_FOUND", "PATH_REFUSED"].includes(one)),
      ).toEqual([]);
      expect(counts.get("inside") ?? 0).toBeGreaterThan(0);
      expect(counts.get("written") ?? 0).toBeGreaterThan(0);
      expect(fooled).toBeGreaterThan(0);
      expect(done).toBe(OPERATIONS);
      expect(readdirSync(join(base, "outside"))).toEqual(["f"]);
      expect(readFileSync(join(base, "outside/f"), "utf8")).toBe("OUTSIDE");
    },
    2 * LIMIT_MS,
  );

  it(
    "loses nothing outside to a recursive removal (attack 13)",
    () => {
      using walk = createWalk(join(base, "root"));
      using workspace = walk.directory(".");
      let removed = 0;
      for (let n = 0; n < 500; n += 1) {
        outcomeOf(() => {
          removeTree(workspace, "d");
          removed += 1;
          return "removed";
        });
        outcomeOf(() => {
          symlinkSync(join(base, "outside"), join(work, "link"));
          return "again";
        });
      }
      expect(removed).toBeGreaterThan(0);
      expect(readFileSync(join(base, "outside/f"), "utf8")).toBe("OUTSIDE");
    },
    LIMIT_MS,
  );
});
