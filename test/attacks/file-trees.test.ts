import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { fromConnectError } from "@turnbox/rpc/wire";
import { bytesOf } from "../support/file-client.ts";
import { doneOf, type FileRoom, openFileRoom } from "../support/file-room.ts";
import { completeTurn, createSession, destroy, getSession, rollBack, script } from "../support/host-calls.ts";
import { expectNothingLeft } from "../support/invariants.ts";
import { poll } from "../support/process.ts";
import { IS_FULL } from "../support/random.ts";

/** Made by the agent; the rest of the whole form is made on the machine, which is faster. */
const OWN_ENTRIES = 3000;
const ENTRIES = IS_FULL ? 1_000_000 : OWN_ENTRIES;
const OWN_DEPTH = 50;
const DEPTH = IS_FULL ? 5000 : 600;
const PAGE_SIZE = 1000;
const MAX_PAGES = 20;
const LIMIT_MS = IS_FULL ? 1_800_000 : 300_000;

let room: FileRoom;
beforeAll(async () => {
  room = await openFileRoom();
}, 120_000);
afterAll(async () => {
  await room[Symbol.asyncDispose]();
}, 600_000);

const reasonOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => "done",
    (thrown: unknown) => fromConnectError(thrown).reason,
  );

describe("handles on files of another time, on a real host", () => {
  it("attack 17: what was opened before a rollback ends, and leads to no other session's files", async () => {
    const { host, agent, files, sessionId } = room;
    await createSession(host, "other");
    await script(host, "other", "mkdir -p many; cd many; echo OTHER > turned; for n in 1 2 3 4; do : > other-$n; done");
    await agent(
      "mkdir many; echo before > many/turned; for n in 1 2 3; do : > many/$n; done; truncate -s 8000000000 many/long",
    );
    const { snapshotId } = await completeTurn(host, sessionId);
    await agent("echo after > many/turned");
    const { generation } = await getSession(host, sessionId);
    const stream = files.readFile({ sessionId, path: "many/long" })[Symbol.asyncIterator]();
    await stream.next();
    const first = await files.listDirectory({ sessionId, path: "many", page: { pageSize: 2 } });
    const page = { pageSize: 10, pageToken: first.page?.nextPageToken ?? "" };
    await rollBack(host, sessionId, snapshotId);

    const drain = async (): Promise<void> => {
      for (let next = await stream.next(); next.done !== true; next = await stream.next());
    };
    expect(await reasonOf(drain())).toBe("GENERATION_CHANGED");
    const old = { sessionId, path: "many/turned", expectedGeneration: generation };
    expect(await reasonOf(files.remove(old))).toBe("GENERATION_CHANGED");
    expect(await reasonOf(files.listDirectory({ sessionId: "other", path: "many", page }))).toBe("INVALID_ARGUMENT");
    const rest = await files.listDirectory({ sessionId, path: "many", page });
    expect(rest.entries.map(({ name }) => name)).toEqual(["3", "long", "turned"]);
    expect((await bytesOf(files.readFile({ sessionId, path: "many/turned" }))).toString()).toBe("before\n");

    // A session that is gone takes its handles with it, also where another one has its name now.
    await destroy(host, "other");
    await poll("the name to be free", () =>
      host.attempt("SessionService/CreateSession", { sessionId: "other" }).catch(() => undefined),
    );
    expect(await reasonOf(files.stat({ sessionId: "other", path: "many/turned" }))).toBe("FILE_NOT_FOUND");
    expect(await reasonOf(files.remove({ ...old, expectedGeneration: undefined }))).toBe("done");
    await destroy(host, "other");
  }, 120_000);
});

describe("trees beyond all measure, on a real host", () => {
  it(
    `attack 12: a directory of ${ENTRIES} entries is listed in pages, each entry once, and searched within bounds`,
    async () => {
      const { agent, victims } = room;
      await agent(`mkdir wide; cd wide; for n in $(seq ${OWN_ENTRIES}); do : > entry-$n; done`);
      fill(join(room.root(), "workspace/wide"), OWN_ENTRIES + 1, ENTRIES);
      const names = await listSome("wide");
      expect(names).toHaveLength(Math.min(ENTRIES, MAX_PAGES * PAGE_SIZE));
      expect([...new Set(names)].sort()).toEqual(names);
      for (const name of ["list_dir", "glob", "grep"]) {
        const outcome = await victims.directoryReads[name]?.("wide");
        expect([name, outcome?.text.length]).toEqual([name, expect.any(Number)]);
        expect(outcome?.text.length).toBeLessThan(1024 ** 2);
        expect(outcome?.text).not.toMatch(/^(INTERNAL|UNKNOWN)/);
      }
      expect((await victims.fileReads["Stat"]?.("wide/entry-7"))?.isDone).toBe(true);
    },
    LIMIT_MS,
  );

  it(
    `attack 12: ${DEPTH} directories in one another are refused or walked, and removed`,
    async () => {
      const { agent, files, sessionId, victims, expectHarmless } = room;
      await agent(`mkdir -p deep/${"d/".repeat(OWN_DEPTH)}`);
      deepen(join(room.root(), "workspace/deep"), DEPTH);
      expect(depthOf(join(room.root(), "workspace/deep"))).toBe(DEPTH);
      const outcomes = await expectHarmless(victims.directoryReads, "deep");
      expect(doneOf(outcomes)).toContain("ListDirectory");
      expect((await victims.fileReads["Stat"]?.(`deep/${"d/".repeat(2000)}`))?.text).not.toMatch(/^(INTERNAL|UNKNOWN)/);
      await files.remove({ sessionId, path: "deep", recursive: true });
      expect(await agent("ls")).not.toContain("deep");
    },
    LIMIT_MS,
  );

  it(
    "attack 12: a session with such trees is destroyed with nothing left of it",
    async () => {
      await room.agent("mkdir last");
      deepen(join(room.root(), "workspace/last"), DEPTH);
      await destroy(room.host, room.sessionId);
      await expectNothingLeft(room.host);
    },
    LIMIT_MS,
  );
});

/** The names on the first pages. */
async function listSome(path: string): Promise<readonly string[]> {
  const { files, sessionId } = room;
  const names: string[] = [];
  let pageToken = "";
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const answer = await files.listDirectory({ sessionId, path, page: { pageSize: PAGE_SIZE, pageToken } });
    expect(answer.entries.length).toBeLessThanOrEqual(PAGE_SIZE);
    names.push(...answer.entries.map(({ name }) => name));
    pageToken = answer.page?.nextPageToken ?? "";
    if (pageToken === "") break;
  }
  return names;
}

/** Makes empty files with the numbers from one to another. */
function fill(directory: string, from: number, to: number): void {
  const program = "chdir shift or die; for ($ARGV[0] .. $ARGV[1]) { open my $file, '>', \"entry-$_\" or die $! }";
  execFileSync("perl", ["-e", program, directory, String(from), String(to)]);
}

/** Makes directories of the name `d` in one another, down to a depth. */
function deepen(directory: string, depth: number): void {
  const program = "chdir shift or die; for (1 .. shift) { mkdir 'd'; chdir 'd' or die $! }";
  execFileSync("perl", ["-e", program, directory, String(depth)]);
}

/** How many directories of the name `d` are in one another. */
function depthOf(directory: string): number {
  const program = "chdir shift or die; my $depth = 0; $depth++ while chdir 'd'; print $depth";
  return Number(execFileSync("perl", ["-e", program, directory], { encoding: "utf8" }));
}
