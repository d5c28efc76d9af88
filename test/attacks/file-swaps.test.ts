import { randomUUID } from "node:crypto";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { uploadOf } from "../support/file-client.ts";
import { type FileRoom, openFileRoom } from "../support/file-room.ts";
import { SWAPPER } from "../support/hostile-programs.ts";
import { IS_FULL } from "../support/random.ts";
import { startSwapper } from "../support/swapper.ts";

const CALLS = IS_FULL ? 3000 : 60;
const REMOVALS = IS_FULL ? 1000 : 20;
const LIMIT_MS = IS_FULL ? 1_800_000 : 120_000;

let room: FileRoom;
beforeAll(async () => {
  room = await openFileRoom();
  const { files, sessionId } = room;
  await files.writeFile(uploadOf({ sessionId, path: "/usr/swap", mode: 0o755 }, SWAPPER));
}, 120_000);
afterAll(async () => {
  await room[Symbol.asyncDispose]();
}, 120_000);

/** Lays out a directory with a link out beside it, as the agent. */
async function layOut(directory: string): Promise<void> {
  const { agent, canary } = room;
  await agent(
    `rm -rf ${directory}; mkdir -p ${directory}/d; cd ${directory}; echo inside > d/secret; ln -s ${canary.directory} link`,
  );
}

/** Reads and writes through both tiers in turn; answers with what was seen. */
async function callAround(directory: string): Promise<ReadonlySet<string>> {
  const { victims, canary } = room;
  const kinds = [
    victims.fileReads["ReadFile"],
    victims.fileReads["read_file"],
    victims.fileWrites["WriteFile"],
    victims.fileWrites["write_file"],
    victims.directoryReads["grep"],
    victims.directoryReads["DownloadArchive"],
  ];
  const seen = new Set<string>();
  for (let call = 0; call < CALLS; call += 1) {
    const isOnDirectory = call % kinds.length > 3;
    const outcome = await kinds[call % kinds.length]?.(isOnDirectory ? `${directory}/d` : `${directory}/d/secret`);
    expect(outcome?.text).not.toContain(canary.secret);
    expect(outcome?.text).not.toMatch(/^(INTERNAL|UNKNOWN)/);
    seen.add(outcome?.isDone === true ? "done" : "refused");
  }
  canary.expectUntouched();
  return seen;
}

describe("a directory that is swapped for a link out, on a real host", () => {
  it(
    `attack 4: by the agent, in its sandbox: ${CALLS} calls are led nowhere`,
    async () => {
      await layOut("/workspace/inside");
      const swapping = await room.agent("cd inside; /usr/swap > /dev/null 2>&1 & echo $!");
      const seen = await callAround("inside");
      // It swapped until now.
      await room.agent(`kill -9 ${swapping}`);
      expect(seen).toContain("done");
    },
    LIMIT_MS,
  );

  it(
    `attack 4: on the files themselves, as fast as the machine can: ${CALLS} calls are led nowhere`,
    async () => {
      await layOut("/workspace/outside");
      const swapper = await startSwapper(join(room.root(), "workspace/outside"), "renames");
      const seen = await callAround("outside");
      expect(await swapper.stop()).toBeGreaterThan(CALLS);
      expect(seen).toContain("done");
    },
    LIMIT_MS,
  );

  it(
    `attack 13: ${REMOVALS} recursive removals take nothing outside with them`,
    async () => {
      const { files, sessionId, canary } = room;
      await layOut("/workspace/removed");
      const directory = join(room.root(), "workspace/removed");
      const swapper = await startSwapper(directory, "renames");
      let removed = 0;
      for (let round = 0; round < REMOVALS; round += 1) {
        await files.remove({ sessionId, path: "removed/d", recursive: true }).then(
          () => (removed += 1),
          () => undefined,
        );
        restore(directory);
        canary.expectUntouched();
      }
      await swapper.stop();
      expect(removed).toBeGreaterThan(0);
      const tree = `legal-${randomUUID()}`;
      await room.agent(`mkdir -p ${tree}/a/b; ln -s ${canary.directory} ${tree}/a/link; echo x > ${tree}/a/b/c`);
      await files.remove({ sessionId, path: tree, recursive: true });
      expect(await room.agent(`ls -d ${tree} 2>&1 || true`)).toContain("No such file");
      canary.expectUntouched();
    },
    LIMIT_MS,
  );

  /** What the removal took comes back, whatever the swapper made of it. */
  function restore(directory: string): void {
    for (const make of [
      () => mkdirSync(join(directory, "d/inner"), { recursive: true }),
      () => {
        symlinkSync(room.canary.directory, join(directory, "link"));
      },
    ]) {
      try {
        make();
      } catch {
        // It is there.
      }
    }
  }
});
