import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomUUID } from "node:crypto";
import { expect } from "@jest/globals";

/** Files of the machine that no sandbox may read, change or see: `secret`, and `inner/secret`. */
export interface Canary extends Disposable {
  readonly directory: string;
  readonly secret: string;
  /** Nothing was added, removed, written, or given other rights or owners. */
  expectUntouched(): void;
  isUntouched(): boolean;
}

/** In a directory of its own, unless a path that is free is given. */
export function createCanary(at?: string): Canary {
  const directory = at ?? mkdtempSync(join(tmpdir(), "turnbox-canary-"));
  mkdirSync(directory, { recursive: true });
  const secret = `CANARY-${randomUUID()}`;
  mkdirSync(join(directory, "inner"));
  for (const name of ["secret", "inner/secret"]) writeFileSync(join(directory, name), `${secret}\n`);
  const look = (): readonly unknown[] =>
    ["", ...readdirSync(directory, { recursive: true, encoding: "utf8" }).sort()].map((name) => {
      const path = join(directory, name);
      const { ino, mode, uid, gid, size, nlink, mtimeMs, ctimeMs } = statSync(path);
      const content = statSync(path).isFile() ? readFileSync(path, "utf8") : "";
      return { name, ino, mode, uid, gid, size, nlink, mtimeMs, ctimeMs, content };
    });
  const before = look();
  return {
    directory,
    secret,
    expectUntouched: () => {
      expect(look()).toEqual(before);
    },
    isUntouched: () => JSON.stringify(look()) === JSON.stringify(before),
    [Symbol.dispose]: () => {
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
