import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { FileFailure } from "../../packages/sandbox-host/src/file/failure.ts";
import { removeTree } from "../../packages/sandbox-host/src/file/op/remove.ts";
import type { OperationContext } from "../../packages/sandbox-host/src/file/operation.ts";
import { createWalk, type Walk } from "../../packages/sandbox-host/src/file/walk.ts";
import { FILE_OPERATIONS } from "../../packages/sandbox-host/src/file/file-operations.ts";
import { textTool } from "../../packages/sandbox-host/src/tool/text/text-tool.ts";
import { IS_FULL } from "../support/random.ts";
import { startSwapper, type Swapper } from "../support/swapper.ts";

/** Reads and writes, half of each. */
const RACES = IS_FULL ? 1_000_000 : 10_000;
const OTHER_RACES = IS_FULL ? 10_000 : 300;
const REMOVALS = IS_FULL ? 20_000 : 300;
const LIMIT_MS = IS_FULL ? 3_600_000 : 240_000;
const NAIVE_READS = 20_000;

let base: string;
let work: string;
let walk: Walk;
let swapper: Swapper;

/** In memory, so that the races are with the swapper and not with a disk. */
beforeEach(async () => {
  base = mkdtempSync("/dev/shm/turnbox-race-");
  work = join(base, "root/workspace");
  mkdirSync(join(work, "d/made"), { recursive: true });
  mkdirSync(join(base, "outside"));
  writeFileSync(join(base, "outside/f"), "OUTSIDE");
  writeFileSync(join(work, "d/f"), "inside");
  symlinkSync(join(base, "outside"), join(work, "link"));
  walk = createWalk(join(base, "root"));
  swapper = await startSwapper(work, "exchange");
});

afterEach(async () => {
  const swaps = await swapper.stop();
  walk[Symbol.dispose]();
  rmSync(base, { recursive: true });
  expect(swaps).toBeGreaterThan(0);
});

/** Does an operation of the file workers here, and answers with what it sent and gave back. */
function perform(operation: (context: OperationContext) => unknown, body = ""): string {
  let sent = "";
  const output = operation({
    walk,
    body: () => [Buffer.from(body)],
    send: (bytes) => {
      sent += Buffer.from(bytes).toString("latin1");
    },
  });
  return sent + JSON.stringify(output ?? null);
}

const OPERATION_KINDS: Readonly<Record<string, () => string>> = {
  stat: () => perform((context) => FILE_OPERATIONS.stat(context, { path: "d/f" })),
  list: () => perform((context) => FILE_OPERATIONS.listDirectory(context, { path: "d", after: "", count: 10 })),
  pack: () => perform((context) => FILE_OPERATIONS.packArchive(context, { path: "d", excludes: [] })),
  make: () => perform((context) => FILE_OPERATIONS.makeDirectory(context, { path: "d/made", parents: "make" })),
  move: () =>
    perform((context) =>
      FILE_OPERATIONS.move(context, { source: "d/made", destination: "d/moved", existing: "replace" }),
    ),
  remove: () => perform((context) => FILE_OPERATIONS.remove(context, { path: "d/made", contents: "remove" })),
  read_file: () => perform((context) => textTool(context, { tool: "read_file", parameters: { path: "d/f" } })),
  write_file: () =>
    perform((context) => textTool(context, { tool: "write_file", parameters: { path: "d/f", content: "inside" } })),
  edit_file: () =>
    perform((context) =>
      textTool(context, {
        tool: "edit_file",
        parameters: { path: "d/f", old_string: "inside", new_string: "inside " },
      }),
    ),
  grep: () => perform((context) => textTool(context, { tool: "grep", parameters: { pattern: ".", path: "d" } })),
  glob: () => perform((context) => textTool(context, { tool: "glob", parameters: { pattern: "**", path: "d" } })),
};

const reasonOf = (attempt: () => string): string => {
  try {
    return attempt();
  } catch (thrown) {
    return thrown instanceof FileFailure ? thrown.reason : ((thrown as NodeJS.ErrnoException).code ?? "unknown");
  }
};

/** What a careful-looking program does: resolve, compare, read. */
function naiveRead(): string {
  const path = join(work, "d/f");
  return realpathSync(path).startsWith(work) ? readFileSync(path, "utf8") : "refused";
}

function expectNothingOutside(): void {
  expect(readdirSync(join(base, "outside"))).toEqual(["f"]);
  expect(readFileSync(join(base, "outside/f"), "utf8")).toBe("OUTSIDE");
}

describe("a directory that is exchanged with a link out, again and again (D16)", () => {
  it(
    `attack 4: is never read or written outside, in ${RACES} races that fool the naive check`,
    () => {
      const counts = new Map<string, number>();
      const count = (outcome: string): void => void counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
      const read = (): string => {
        using own = createWalk(join(base, "root"));
        return readFileSync(own.open("d/f").descriptor, "utf8");
      };
      const write = (): string => {
        perform(
          (context) => FILE_OPERATIONS.writeFile(context, { path: "d/f", mode: null, parents: "expect" }),
          "inside",
        );
        return "written";
      };
      for (let race = 0; race < RACES; race += 1) count(reasonOf(race % 2 === 0 ? read : write));
      expectNothingOutside();
      const known = new Set(["inside", "written", "FILE_NOT_FOUND", "PATH_REFUSED"]);
      expect([...counts.keys()].filter((outcome) => !known.has(outcome))).toEqual([]);
      for (const outcome of ["inside", "written"]) expect(counts.get(outcome) ?? 0).toBeGreaterThan(RACES / 100);
      let fooled = 0;
      for (let n = 0; n < NAIVE_READS && fooled === 0; n += 1) if (reasonOf(naiveRead) === "OUTSIDE") fooled += 1;
      expect(fooled).toBeGreaterThan(0);
      process.stdout.write(`path races: ${RACES}, ${JSON.stringify(Object.fromEntries(counts))}\n`);
    },
    LIMIT_MS,
  );

  it.each(Object.entries(OPERATION_KINDS))(
    `attack 4: %s leads nothing out either, in ${OTHER_RACES} races`,
    (_name, operation) => {
      const outcomes = new Set<string>();
      const succeeded = (): readonly string[] => [...outcomes].filter((outcome) => !/^[A-Z_]+$/.test(outcome));
      // The exchange may stand still for as long as the first races take: they go on until one finds the directory in its place.
      for (let race = 0; race < OTHER_RACES || (succeeded().length === 0 && race < 100 * OTHER_RACES); race += 1)
        outcomes.add(reasonOf(operation));
      expectNothingOutside();
      expect([...outcomes].filter((outcome) => /OUTSIDE|INTERNAL|unknown/.test(outcome))).toEqual([]);
      // A refusal is a reason and nothing else.
      expect(succeeded()).not.toEqual([]);
    },
    LIMIT_MS,
  );

  it(
    `attack 13: loses nothing outside to a recursive removal, in ${REMOVALS} races`,
    () => {
      using workspace = walk.directory(".");
      let removed = 0;
      for (let race = 0; race < REMOVALS; race += 1) {
        reasonOf(() => {
          removeTree(workspace, "d");
          removed += 1;
          return "removed";
        });
        restore();
      }
      expect(removed).toBeGreaterThan(0);
      expectNothingOutside();
    },
    LIMIT_MS,
  );
});

/**
 * Makes what a removal took: the directory with something in it, and the link. The directory comes whole under its name,
 * for a path through that name could lead out by itself.
 */
function restore(): void {
  const made = mkdtempSync(join(work, "made-"));
  mkdirSync(join(made, "deep"));
  reasonOf(() => {
    renameSync(made, join(work, "d"));
    return "made";
  });
  rmSync(made, { recursive: true, force: true });
  reasonOf(() => {
    symlinkSync(join(base, "outside"), join(work, "link"));
    return "made";
  });
}
