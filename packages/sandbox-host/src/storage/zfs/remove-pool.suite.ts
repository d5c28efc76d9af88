import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { CommandRunner } from "@turnbox/core";

/** Ends the pool of a test's home. Tests only: the product never destroys a pool. */
export async function removePool({
  runner,
  home,
}: {
  readonly runner: CommandRunner;
  readonly home: string;
}): Promise<void> {
  const pool = poolOf(home);
  for (let triesLeft = 40; ; triesLeft -= 1) {
    const { exitCode, stderr } = await runner.run({ command: "zpool", args: ["destroy", pool], deadlineMs: 30_000 });
    if (exitCode === 0 || stderr.includes("no such pool")) return;
    if (triesLeft === 0) throw new Error(`the test's pool stays: ${stderr}`);
    await delay(200);
  }
}

export function poolOf(home: string): string {
  return `tbx${createHash("sha256").update(home).digest("hex").slice(0, 10)}`;
}
