import { execFileSync } from "node:child_process";
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { FileFailure } from "../../packages/sandbox-host/src/file/failure.ts";
import { prepareRoot } from "../../packages/sandbox-host/src/file/op/prepare-root.ts";
import { createWalk } from "../../packages/sandbox-host/src/file/walk.ts";
import { launchBoot } from "../../packages/sandbox-host/src/runtime/gvisor/container/boot-launcher.ts";
import { MOUNT_POINTS, RESOLVER_FILE } from "../../packages/sandbox-host/src/runtime/gvisor/container/oci-spec.ts";
import { IS_FULL } from "../support/random.ts";
import { startSwapper } from "../support/swapper.ts";

/** For each name; 1,000,000 over the seven names in the whole form. */
const SWAPS = IS_FULL ? 150_000 : 5_000;
const LAUNCHES = IS_FULL ? 300 : 10;
const LIMIT_MS = IS_FULL ? 3_600_000 : 120_000;
/** How many preparations there are at least; the swapper is quicker than they are. */
const PREPARATIONS = IS_FULL ? 20_000 : 500;

/** A root in memory with a directory outside, and a link to it beside the name that is swapped. */
class Arena implements Disposable {
  readonly base = mkdtempSync("/dev/shm/turnbox-root-");
  readonly root = join(this.base, "root");
  readonly outside = join(this.base, "outside");

  constructor(name: string) {
    mkdirSync(join(this.root, name), { recursive: true });
    for (const place of ["rootfs", "tmp", "state"]) mkdirSync(join(this.base, place));
    mkdirSync(this.outside);
    writeFileSync(join(this.outside, "secret"), "OUTSIDE");
    symlinkSync("../outside", join(this.root, "evil"));
  }

  [Symbol.dispose](): void {
    rmSync(this.base, { recursive: true, force: true });
  }

  expectUntouched(before: string): void {
    expect(this.look()).toBe(before);
    expect(readFileSync(join(this.outside, "secret"), "utf8")).toBe("OUTSIDE");
  }

  look(): string {
    const { mode, mtimeMs, ctimeMs } = lstatSync(this.outside);
    return JSON.stringify([readdirSync(this.outside), mode, mtimeMs, ctimeMs]);
  }
}

function prepare({ root }: Arena): string {
  using walk = createWalk(root);
  try {
    prepareRoot({ walk, body: () => [], send: () => undefined }, { directories: MOUNT_POINTS, files: [RESOLVER_FILE] });
    return "prepared";
  } catch (thrown) {
    if (thrown instanceof FileFailure) return thrown.reason;
    return (thrown as NodeJS.ErrnoException).code ?? "unknown";
  }
}

/** What was done before: look whether it is a directory, then use the path. */
function naiveLook({ root, outside }: Arena, name: string): boolean {
  const path = join(root, name);
  const isDirectory = lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  return isDirectory && readdirSync(path).join() === readdirSync(outside).join();
}

describe("F1: the preparation of a root while a name in it is exchanged with a link out", () => {
  it.each(["tmp", "run", "etc", "proc", "dev", "sys", "workspace"])(
    `attack 20: touches nothing outside through /%s, in ${SWAPS} swaps`,
    async (name) => {
      using arena = new Arena(name);
      const before = arena.look();
      const outcomes = new Map<string, number>();
      let swaps = 0;
      let fooled = 0;
      for (let rounds = 0; swaps < SWAPS || rounds * 100 < PREPARATIONS; rounds += 1) {
        const swapper = await startSwapper(arena.root, "exchange", [name, "evil"]);
        for (let count = 0; count < 100; count += 1) {
          const outcome = prepare(arena);
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
          for (let look = 0; fooled === 0 && look < 50; look += 1) if (naiveLook(arena, name)) fooled += 1;
        }
        swaps += await swapper.stop();
      }
      arena.expectUntouched(before);
      expect([...outcomes.keys()].filter((key) => !["prepared", "PATH_REFUSED"].includes(key))).toEqual([]);
      expect(fooled).toBeGreaterThan(0);
      process.stdout.write(`/${name}: ${swaps} swaps, ${JSON.stringify(Object.fromEntries(outcomes))}\n`);
    },
    LIMIT_MS,
  );

  it(
    `attack 20: the boot's view shows nothing outside and lets nothing outside be written, in ${LAUNCHES} launches`,
    async () => {
      using arena = new Arena("tmp");
      const before = arena.look();
      const swapper = await startSwapper(arena.root, "exchange", ["tmp", "evil"]);
      const place = (name: string): string => join(arena.base, name);
      // The last two are what runsc does for a mount point that is missing, here through a link that leads out for certain.
      symlinkSync("../outside", join(arena.root, "bad"));
      const script =
        `cat ${place("tmp")}/secret; echo x > ${place("state")}/made && echo x > ${place("rootfs")}/made && echo booted;` +
        `mkdir ${place("rootfs")}/bad/made ${arena.root}/bad/made; : > ${arena.root}/bad/file`;
      const spec = { command: "/bin/sh", args: ["-c", `(${script}) 2>/dev/null; true`], deadlineMs: 1 };
      const view = {
        rootPath: arena.root,
        rootTarget: place("rootfs"),
        targets: { tmp: place("tmp") },
        writable: [place("state")],
        writableMounts: ["/proc"],
      };
      const { command, args } = launchBoot(view, spec);
      let booted = 0;
      for (let launch = 0; launch < LAUNCHES; launch += 1) {
        const output = runQuietly(command, args);
        expect(output).not.toContain("OUTSIDE");
        if (output.includes("booted")) booted += 1;
      }
      await swapper.stop();
      arena.expectUntouched(before);
      expect(booted).toBeGreaterThan(0);
      process.stdout.write(`launches: ${LAUNCHES}, ${booted} saw the session's own /tmp\n`);
    },
    LIMIT_MS,
  );
});

/** What a program says; one that found no directory in its place ends with an error. */
function runQuietly(command: string, args: readonly string[]): string {
  try {
    return execFileSync(command, [...args], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  } catch {
    return "";
  }
}
