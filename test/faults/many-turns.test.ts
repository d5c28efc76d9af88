import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { startHost, type TestHost } from "../support/host.ts";
import {
  completeTurn,
  createSession,
  getSession,
  health,
  listSnapshots,
  rollBack,
  script,
} from "../support/host-calls.ts";
import { expectConsistent, expectNothingLeft } from "../support/invariants.ts";
import { poll, run } from "../support/process.ts";
import { createRandom, IS_FULL, pick, SEED } from "../support/random.ts";
import { findPool } from "../support/residue.ts";

const TURNS = IS_FULL ? 1000 : 40;
const LIMIT = IS_FULL ? 50 : 8;
const ROLLBACKS = 0.1;
/** What each turn writes anew. */
const BYTES = 100_000;

let host: TestHost;
beforeAll(async () => {
  host = await startHost({ env: { TURNBOX_MAX_SNAPSHOTS_PER_SESSION: String(LIMIT) } });
}, 120_000);
afterAll(async () => {
  await host[Symbol.asyncDispose]();
}, 120_000);

const poolUsed = async (): Promise<number> => Number((await health(host)).poolSpace?.usedBytes);
const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;

async function countHeads(): Promise<number> {
  const pool = await findPool(host.home);
  const { stdout } = await run("zfs", ["list", "-H", "-r", "-t", "filesystem", "-o", "name", `${pool ?? ""}/sessions`]);
  return stdout.split("\n").filter((name) => /\/g\d+$/.test(name)).length;
}

it(`gives ${TURNS} turns with retention ${LIMIT} and random rollbacks rising numbers, and stays as small and as fast as it was (D10, seed ${SEED})`, async () => {
  const random = createRandom();
  const sessionId = "long";
  await createSession(host, sessionId);
  const listingMs: number[] = [];
  const turnMs: number[] = [];
  const heads: number[] = [];
  const used: number[] = [];
  let last = 0;
  const ids = new Set<string>();
  const contents = new Map<string, string>();
  for (let turn = 1; turn <= TURNS; turn += 1) {
    const startedMs = performance.now();
    await script(host, sessionId, `cd /workspace && echo ${turn} > a && head -c ${BYTES} /dev/urandom > data`);
    const { turnNumber, snapshotId, unchanged } = await completeTurn(host, sessionId, `t${turn}`);
    expect(unchanged ?? false).toBe(false);
    expect(turnNumber).toBe(last + 1);
    expect(ids.has(snapshotId)).toBe(false);
    ids.add(snapshotId);
    contents.set(snapshotId, `${turn}\n`);
    last = turnNumber;
    if (turn > LIMIT) turnMs.push(performance.now() - startedMs);
    const begunMs = performance.now();
    const listed = await listSnapshots(host, sessionId);
    if (turn > LIMIT) listingMs.push(performance.now() - begunMs);
    expect(listed.filter(({ head }) => head === true).map((one) => one.snapshotId)).toEqual([snapshotId]);
    const target = pick(random, listed);
    if (target !== undefined && random() < ROLLBACKS) {
      const before = await getSession(host, sessionId);
      await rollBack(host, sessionId, target.snapshotId);
      expect((await getSession(host, sessionId)).generation).toBe(before.generation + 1);
      const known = contents.get(target.snapshotId);
      if (known !== undefined) expect(await script(host, sessionId, "cat /workspace/a")).toBe(known);
    }
    if (turn % 10 === 0 && turn > LIMIT) {
      heads.push(await countHeads());
      used.push(await poolUsed());
    }
  }
  const [first, final] = [median(listingMs.slice(0, 10)), median(listingMs.slice(-10))];
  const [firstTurn, finalTurn] = [median(turnMs.slice(0, 10)), median(turnMs.slice(-10))];
  process.stdout.write(
    `turns: ${TURNS}, retention ${LIMIT}: listing ${first.toFixed(1)} ms at first, ${final.toFixed(1)} ms at the end; turn ${firstTurn.toFixed(0)} and ${finalTurn.toFixed(0)} ms; ` +
      `heads at most ${Math.max(...heads)}; pool ${used[0] ?? 0} to ${Math.max(...used)} bytes\n`,
  );
  expect(final).toBeLessThan(3 * first);
  expect(finalTurn).toBeLessThan(3 * firstTurn);
  expect(Math.max(...heads)).toBeLessThanOrEqual(LIMIT + 1);
  // Each snapshot holds what its turn wrote, and no more than the retained ones are held.
  expect(Math.max(...used) - (used[0] ?? 0)).toBeLessThan(LIMIT * BYTES * 3 + 20_000_000);
  const within = async (): Promise<true | undefined> =>
    (await listSnapshots(host, sessionId)).length <= LIMIT + heads.at(-1)! ? true : undefined;
  await poll("retention to be done", within);
  await expectConsistent(host);
  await expectNothingLeft(host);
}, 3_600_000);
