import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { poll, processesWith } from "../support/process.ts";
import { findResidue } from "../support/residue.ts";
import { startServer, type TestServer } from "../support/server.ts";

/** The short form runs in `npm test`; `TURNBOX_FULL=1` (npm run soak) is the whole one. */
const KILLS = process.env["TURNBOX_FULL"] === "1" ? 200 : 3;
const SEED = Number(process.env["TURNBOX_SEED"] ?? 20261116);

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
}, 120_000);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
}, 120_000);

/** mulberry32: the same seed, the same kills. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const hostPid = (): number | undefined => {
  const line = processesWith(server.home).find((found) => found.includes("turnbox-sandbox-host.mjs serve"));
  return line === undefined ? undefined : Number(line.split(" ")[0]);
};

interface Connection {
  readonly url: string;
  readonly token: string;
  readonly sessionId: string;
}

/** JSON over HTTP; undefined where the host died under the call. */
async function call(
  to: Connection,
  method: string,
  body: Record<string, unknown>,
): Promise<Record<string, unknown> | undefined> {
  try {
    const response = await fetch(`${to.url}/turnbox.host.v1.${method}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${to.token}` },
      body: JSON.stringify({ sessionId: to.sessionId, ...body }),
      signal: AbortSignal.timeout(30_000),
    });
    const answer = (await response.json()) as Record<string, unknown>;
    return response.ok ? answer : undefined;
  } catch {
    return undefined;
  }
}

it(`keeps every acknowledged turn over ${KILLS} kills of the host under load (seed ${SEED})`, async () => {
  const random = createRandom(SEED);
  const id = String((await server.json("create", "--name", "victim"))["sandboxId"]);
  const connect = async (): Promise<Connection> =>
    await poll(
      "the host to serve again",
      async () => {
        const { exitCode, stdout } = await server.cli("connect", id, "--json");
        if (exitCode !== 0) return undefined;
        const to = JSON.parse(stdout) as Connection;
        return (await call(to, "SessionService/GetSession", {})) === undefined ? undefined : to;
      },
      60_000,
    );
  const acknowledged = new Map<string, { readonly number: number; readonly content: string }>();
  let to = await connect();
  let step = 0;
  for (let kill = 0; kill < KILLS; kill += 1) {
    const deadline = performance.now() + 200 + random() * 1500;
    const killer = poll("the time to kill", () => (performance.now() > deadline ? true : undefined)).then(() => {
      const pid = hostPid();
      if (pid !== undefined) process.kill(pid, "SIGKILL");
    });
    for (let alive = true; alive; ) {
      step += 1;
      const content = `step ${step}`;
      const ran = await call(to, "ToolService/ExecuteTool", {
        toolCallId: `c${step}`,
        toolName: "bash",
        params: { cmd: `echo ${content} > state` },
      });
      const turn =
        ran === undefined ? undefined : await call(to, "SnapshotService/TurnComplete", { turnKey: `t${step}` });
      if (turn !== undefined)
        acknowledged.set(String(turn["snapshotId"]), { number: Number(turn["turnNumber"]), content });
      const choices = [...acknowledged.keys()];
      const target = choices[Math.floor(random() * choices.length)];
      if (turn !== undefined && target !== undefined && random() < 0.3) {
        await call(to, "SnapshotService/RollbackSession", { snapshotId: target, idempotencyKey: `r${step}` });
      }
      alive = turn !== undefined;
    }
    await killer;
    to = await connect();
    const listed = await call(to, "SnapshotService/ListSnapshots", { page: { pageSize: 1000 } });
    const ids = (listed?.["snapshots"] as readonly Record<string, unknown>[]).map((snapshot) =>
      String(snapshot["snapshotId"]),
    );
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toEqual(expect.arrayContaining([...acknowledged.keys()]));
  }
  const numbers = [...acknowledged.values()].map(({ number }) => number);
  expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
  expect(new Set(numbers).size).toBe(numbers.length);
  for (const [snapshotId, { content }] of [...acknowledged].slice(-5)) {
    await server.cli("rollback", id, snapshotId);
    expect((await server.cli("exec", id, "--no-stdin", "--", "cat", "state")).stdout).toBe(`${content}\n`);
  }
  expect((await server.cli("rm", id)).exitCode).toBe(0);
  const left = await findResidue(server.home);
  expect(left).toEqual({ datasets: [], mounts: [], containers: [], cgroups: [], netns: [], processes: [] });
}, 600_000);
