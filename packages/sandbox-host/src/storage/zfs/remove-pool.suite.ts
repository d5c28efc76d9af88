import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { CommandRunner } from "@turnbox/core";

/** The daemon calls a pool busy for a while after its last mount has gone. */
const PATIENCE_MS = 60_000;
const PAUSE_MS = 200;

/** Ends the pool of a test's home. Tests only: the product never destroys a pool. */
export async function removePool({
  runner,
  home,
}: {
  readonly runner: CommandRunner;
  readonly home: string;
}): Promise<void> {
  const pool = poolOf(home);
  const giveUpAtMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const { exitCode, stderr } = await runner.run({ command: "zpool", args: ["destroy", pool], deadlineMs: 30_000 });
    if (exitCode === 0 || stderr.includes("no such pool")) return;
    if (performance.now() > giveUpAtMs) throw new Error(`the test's pool stays: ${stderr}`);
    await delay(PAUSE_MS);
  }
}

export function poolOf(home: string): string {
  return `tbx${createHash("sha256").update(home).digest("hex").slice(0, 10)}`;
}
