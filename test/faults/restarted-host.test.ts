import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { control, createSandbox, destroySandbox, getSandbox } from "../support/control-calls.ts";
import { type Json, Refusal } from "../support/host.ts";
import { poll, processesWith } from "../support/process.ts";
import { createRandom, IS_FULL, SEED, SLACK } from "../support/random.ts";
import { startServer, type TestServer } from "../support/server.ts";

/** A delay that grew with each death was 30 s at the fifth. */
const KILLS = IS_FULL ? 12 : 5;
const LANES = ["a", "b", "c"];
/** From the kill of a host that had served to its next answer. */
const SERVED_MS = 5000;
/** For so long an event loop may stand still. */
const STILL_MS = 10_000;
const SIGNS_MS = 2000;

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
}, 120_000);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
}, 120_000);

const hostPid = (): number => {
  const lines = processesWith(server.home).filter((line) => line.includes("turnbox-sandbox-host.mjs serve"));
  return Number(lines[0]?.split(" ")[0] ?? 0);
};

/** Asks the host of a sandbox, where it is now. Throws `Refusal`, or anything else if the host is gone. */
async function onHost(sandboxId: string, method: string, body: Json): Promise<Json> {
  const connection = (await control(server, "SandboxControlService/ConnectSandbox", { sandboxId })) as {
    readonly url: string;
    readonly token: string;
    readonly sessionId: string;
  };
  const response = await fetch(`${connection.url}/turnbox.host.v1.${method}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${connection.token}` },
    body: JSON.stringify({ sessionId: connection.sessionId, ...body }),
    signal: AbortSignal.timeout(60_000),
  });
  const answer = (await response.json()) as Json;
  if (response.ok) return answer;
  throw new Refusal(method, String(answer["code"]), String(answer["message"]));
}

const bash = async (sandboxId: string, cmd: string): Promise<string> => {
  const call = { toolCallId: randomUUID(), toolName: "bash", params: { cmd } };
  return ((await onHost(sandboxId, "ToolService/ExecuteTool", call))["content"] ?? "") as string;
};

/** One that an earlier call has destroyed, whose answer was lost, is not there any more. */
const destroyed = async (sandboxId: string): Promise<true> =>
  await destroySandbox(server, sandboxId).then(
    () => true as const,
    (thrown: unknown) => {
      if (thrown instanceof Refusal && thrown.reason === "SANDBOX_NOT_FOUND") return true;
      throw thrown;
    },
  );

/** Waits until the host of the sandbox answers by another process than this one; answers with how long that took. */
async function servedAgain(sandboxId: string, before: number, timeoutMs: number): Promise<number> {
  const begunMs = performance.now();
  const isServed = async (): Promise<true | undefined> => {
    if ([0, before].includes(hostPid())) return undefined;
    return await onHost(sandboxId, "SessionService/GetSession", {}).then(
      () => true as const,
      () => undefined,
    );
  };
  await poll("the sandbox to be served again", isServed, timeoutMs, 20);
  return performance.now() - begunMs;
}

/** Creates, turns and destroys in lanes; what was acknowledged is kept in mind. */
class Load {
  /** The acknowledged turns of the sandboxes that are to be there. */
  readonly turns = new Map<string, string[]>();
  readonly refusedCreates: string[] = [];
  creates = 0;
  #isOver = false;

  async run(lanes: readonly string[]): Promise<void> {
    await Promise.all(lanes.map((lane) => this.#work(lane)));
  }

  end(): void {
    this.#isOver = true;
  }

  /** A create that comes while the host is away; it waits for the host and is answered once. */
  async createAfter(ms: number): Promise<string> {
    await delay(ms);
    const sandboxId = await this.#create(randomUUID());
    this.turns.delete(sandboxId);
    return sandboxId;
  }

  async #work(lane: string): Promise<void> {
    const own: string[] = [];
    while (!this.#isOver) {
      const sandboxId = await this.#create(`${lane}-${randomUUID()}`);
      own.push(sandboxId);
      for (let turn = 0; turn < 3; turn += 1) await this.#turn(sandboxId);
      const old = own.length > 2 ? own.shift() : undefined;
      if (old === undefined) continue;
      this.turns.delete(old);
      await this.#insist(() => destroyed(old));
    }
  }

  async #create(idempotencyKey: string): Promise<string> {
    const { sandboxId } = await this.#insist(() =>
      createSandbox(server, { idempotencyKey }).catch((thrown: unknown) => {
        this.refusedCreates.push(String(thrown));
        throw thrown;
      }),
    );
    this.creates += 1;
    this.turns.set(sandboxId, []);
    return sandboxId;
  }

  async #turn(sandboxId: string): Promise<void> {
    await this.#insist(() => bash(sandboxId, "date +%s%N >> turns"));
    const sealed = await this.#insist(() => onHost(sandboxId, "SnapshotService/TurnComplete", {}));
    if (sealed["unchanged"] !== true) this.turns.get(sandboxId)?.push(String(sealed["snapshotId"]));
  }

  /** Does it until it is answered: the host may die under the call. */
  async #insist<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    return await poll("an answer", () => work().catch(() => undefined), 120_000);
  }
}

describe("a local host that had come up", () => {
  it(`is served again at once after each of ${KILLS} kills in a row under load, and creates wait for it (seed ${SEED})`, async () => {
    const random = createRandom();
    const { sandboxId } = await createSandbox(server);
    await bash(sandboxId, "echo kept > a");
    const load = new Load();
    const working = load.run(LANES);
    const awayMs: number[] = [];
    for (let kill = 1; kill <= KILLS; kill += 1) {
      const enough = load.creates + 1;
      await poll("creates to be answered", () => (load.creates >= enough ? true : undefined), 120_000);
      await delay(Math.floor(random() * 500));
      const pid = hostPid();
      process.kill(pid, "SIGKILL");
      const meanwhile = [100, 500, 900].map((ms) => load.createAfter(ms));
      awayMs.push(await servedAgain(sandboxId, pid, 60_000));
      for (const id of await Promise.all(meanwhile)) await destroyed(id);
    }
    load.end();
    await working;
    const shown = awayMs.map((ms) => ms.toFixed(0)).join(" ");
    process.stdout.write(`away for ${shown} ms; ${load.creates} creates, ${load.refusedCreates.length} refused\n`);
    expect(load.refusedCreates).toEqual([]);
    expect(Math.max(...awayMs)).toBeLessThan(SERVED_MS * SLACK);
    expect(await bash(sandboxId, "cat a")).toBe("kept\n");
    for (const [id, turns] of load.turns) {
      const listed = await onHost(id, "SnapshotService/ListSnapshots", { page: { pageSize: 1000 } });
      const there = ((listed["snapshots"] ?? []) as readonly { readonly snapshotId: string }[]).map(
        ({ snapshotId }) => snapshotId,
      );
      expect(there).toEqual(expect.arrayContaining(turns));
    }
    for (const id of [...load.turns.keys(), sandboxId]) await destroySandbox(server, id);
  }, 900_000);

  it("fault 34: is ended and started again when it stands still for 10 s, and not for less; its sandboxes go on", async () => {
    const { sandboxId } = await createSandbox(server);
    await bash(sandboxId, "echo kept > a; sleep 100000 & echo $! > pid");
    const { generation } = await getSandbox(server, sandboxId);
    const pid = hostPid();
    process.kill(pid, "SIGSTOP");
    await delay(STILL_MS / 2);
    process.kill(pid, "SIGCONT");
    expect(await bash(sandboxId, "cat a")).toBe("kept\n");
    await delay(SIGNS_MS);
    expect(hostPid()).toBe(pid);

    process.kill(pid, "SIGSTOP");
    const stoppedMs = performance.now();
    // It comes while nothing answers, and waits.
    const created = createSandbox(server, { idempotencyKey: randomUUID() });
    await poll("the host that stands still to be ended", () => (hostPid() === pid ? undefined : true), 60_000, 20);
    const endedAfterMs = performance.now() - stoppedMs;
    const servedAfterMs = endedAfterMs + (await servedAgain(sandboxId, pid, 60_000));
    process.stdout.write(`ended after ${endedAfterMs.toFixed(0)} ms, served after ${servedAfterMs.toFixed(0)} ms\n`);
    expect(endedAfterMs).toBeGreaterThan(STILL_MS - SIGNS_MS);
    expect(endedAfterMs).toBeLessThan(STILL_MS + SIGNS_MS * SLACK);
    expect(servedAfterMs - endedAfterMs).toBeLessThan(SERVED_MS * SLACK);
    expect(await bash(sandboxId, "cat a; kill -0 $(cat pid) && echo alive")).toBe("kept\nalive\n");
    expect(await getSandbox(server, sandboxId)).toMatchObject({ generation });
    for (const id of [(await created).sandboxId, sandboxId]) await destroySandbox(server, id);
  }, 180_000);
});
