import { expect } from "@jest/globals";
import { ProcessService } from "@turnbox/protocol/turnbox/host/v1/process_pb";
import { type Json, Refusal, type TestHost } from "./host.ts";
import { digest, fork, listSnapshots, script } from "./host-calls.ts";
import { hostClient } from "./host-client.ts";
import { poll } from "./process.ts";

/** A call under a key: sent again it answers the same, also by a later version of the host. */
interface Keyed {
  readonly method: string;
  readonly body: Json;
  readonly answer: Json;
}

/** A home in which each kind of record has been written, and what its host says of it. */
export interface LivedIn {
  readonly keyed: readonly Keyed[];
  /** By session: what the host says of it and of its snapshots, policies and processes. */
  readonly views: Readonly<Record<string, Json>>;
  /** By session that runs: a digest of its files. */
  readonly digests: Readonly<Record<string, string>>;
  /** The content of /workspace/state in the turns of `tree`, by snapshot. */
  readonly sealed: Readonly<Record<string, string>>;
  readonly processId: string;
  /** What the process had written before the view was taken. */
  readonly output: string;
}

/** Rest: paused, with a program that counts. */
const RESTING = "resting";
const TREE = "tree";
const RUNNING = [TREE, "connected", "twin-1", "twin-2", "orphan"];
const COUNT = "cat /workspace/count";

const MINUTES = 'i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo "line $i"; sleep 0.1; done';

/** Makes sessions with turns, a rollback, forks, a husk, a pause, a process and finished calls, and looks at all of it. */
export async function liveIn(host: TestHost): Promise<LivedIn> {
  const made: Omit<Keyed, "answer">[] = [];
  const keyed = async (method: string, body: Json): Promise<Json> => {
    const whole = method === "ToolService/ExecuteTool" ? body : { idempotencyKey: `key-${made.length}`, ...body };
    made.push({ method, body: whole });
    return await host.call(method, whole);
  };
  const processId = await makeSessions(host, keyed);
  await poll("some output", async () => ((await outputOf(host, processId)).includes("line 10\n") ? true : undefined));
  return {
    keyed: await Promise.all(made.map(async (one) => ({ ...one, answer: await repeat(host, one) }))),
    views: await viewsOf(host),
    digests: await digestsOf(host),
    sealed: Object.fromEntries(
      (await listSnapshots(host, TREE)).flatMap(({ snapshotId, turnKey }) =>
        turnKey === undefined || turnKey === "" ? [] : [[snapshotId, turnKey]],
      ),
    ),
    processId,
    output: await outputOf(host, processId),
  };
}

type Call = (method: string, body: Json) => Promise<Json>;

/** Answers with the id of the process that runs in `tree`. */
async function makeSessions(host: TestHost, keyed: Call): Promise<string> {
  const create = (sessionId: string, more: Json = {}): Promise<Json> =>
    keyed("SessionService/CreateSession", { sessionId, ...more });
  const turn = async (turnKey: string): Promise<string> => {
    await script(host, TREE, `echo ${turnKey} > /workspace/state; mkdir -p d; echo ${turnKey} >> d/all`);
    const body = { sessionId: TREE, turnKey };
    return String((await host.call("SnapshotService/TurnComplete", body))["snapshotId"]);
  };
  const settings = { labels: { team: "a/b", empty: "" }, env: { COLOUR: "blue wörld" }, ttl: "86400s" };
  await create(TREE, { ...settings, onTimeout: "ON_TIMEOUT_PAUSE", quotaBytes: String(2 ** 30), ports: [8080] });
  const first = await turn("one");
  await turn("two");
  await keyed("SnapshotService/RollbackSession", { sessionId: TREE, snapshotId: first });
  await turn("three");
  await keyed("SnapshotService/CreateSnapshot", { sessionId: TREE, name: "a name" });
  const twins = { count: 2, childSessionIds: ["twin-1", "twin-2"], snapshotId: first };
  await keyed("SessionService/ForkSession", { sessionId: TREE, ...twins });
  const call = { sessionId: TREE, toolCallId: "once", toolName: "bash" };
  await keyed("ToolService/ExecuteTool", { ...call, params: { cmd: "echo x | tee -a once; date +%s%N; exit 3" } });
  await create("connected", { networkPolicy: { allowOutbound: true, allowList: ["*.example.org"] } });
  await script(host, "connected", "echo connected > state");
  await create("gone");
  await script(host, "gone", "echo gone > state");
  await keyed("SessionService/ForkSession", { sessionId: "gone", count: 1, childSessionIds: ["orphan"] });
  await host.call("SessionService/DestroySession", { sessionId: "gone" });
  await create(RESTING, { idleTimeout: "7200s" });
  await script(host, RESTING, "(i=0; while :; do i=$((i+1)); echo $i > count; sleep 0.1; done) >/dev/null 2>&1 &");
  await poll("the count to begin", async () => ((await script(host, RESTING, COUNT)) === "" ? undefined : true));
  await keyed("SessionService/PauseSession", { sessionId: RESTING });
  const launched = { sessionId: TREE, binary: "bash", args: ["-c", MINUTES] };
  const { process } = (await keyed("ProcessService/LaunchProcess", launched)) as { process?: { processId?: string } };
  return process?.processId ?? "";
}

/** All of it is there, runs on, and can be worked with. */
export async function expectKept(host: TestHost, lived: LivedIn): Promise<void> {
  expect(await viewsOf(host)).toMatchObject(lived.views);
  for (const one of lived.keyed) expect([one.method, await repeat(host, one)]).toMatchObject([one.method, one.answer]);
  expect(await digestsOf(host)).toEqual(lived.digests);
  expect(await script(host, TREE, "echo $COLOUR; cat once")).toBe("blue wörld\nx\n");
  expect((await outputOf(host, lived.processId)).startsWith(lived.output)).toBe(true);
}

/** The process goes on, the paused session is resumed, and files of each turn can be had. */
export async function expectUsable(host: TestHost, lived: LivedIn): Promise<void> {
  const seen = (await outputOf(host, lived.processId)).length;
  const more = await poll("the process to write more", async () => {
    const output = await outputOf(host, lived.processId);
    return output.length > seen ? output : undefined;
  });
  const lines = more.split("\n").slice(0, -1);
  expect(lines).toEqual(lines.map((_, index) => `line ${index + 1}`));

  const refused = host.call("ToolService/ExecuteTool", { sessionId: RESTING, toolCallId: "no", toolName: "bash" });
  await expect(refused).rejects.toMatchObject({ reason: expect.stringMatching(/SESSION_PAUSED|INVALID_ARGUMENT/) });
  const resumed = await host.call("SessionService/ResumeSession", { sessionId: RESTING });
  expect(resumed["session"]).toMatchObject({ state: "SESSION_STATE_ACTIVE", generation: 1 });
  const count = Number(await script(host, RESTING, COUNT));
  await poll("the count to go on", async () => (Number(await script(host, RESTING, COUNT)) > count ? true : undefined));

  expect(Object.values(lived.sealed).sort()).toEqual(["one", "three", "two"]);
  const readBack = Object.entries(lived.sealed).map(async ([snapshotId, state]) => {
    const { children } = await fork(host, TREE, { snapshotId });
    expect(await script(host, children[0]?.sessionId ?? "", "cat /workspace/state")).toBe(`${state}\n`);
  });
  await Promise.all(readBack);
  const turn = { sessionId: TREE, turnKey: "four" };
  expect(await host.call("SnapshotService/TurnComplete", turn)).toMatchObject({ turnNumber: 4 });
}

async function viewsOf(host: TestHost): Promise<Readonly<Record<string, Json>>> {
  const views = [...RUNNING, RESTING].map(async (sessionId) => {
    const policy = await host.call("SessionService/GetNetworkPolicy", { sessionId });
    const processes = await host.call("ProcessService/ListProcesses", { sessionId });
    const session = await host.call("SessionService/GetSession", { sessionId });
    const snapshots = await listSnapshots(host, sessionId);
    return [sessionId, steady({ ...session, snapshots, policy: policy["policy"], processes })] as const;
  });
  return Object.fromEntries(await Promise.all(views)) as Readonly<Record<string, Json>>;
}

async function digestsOf(host: TestHost): Promise<Readonly<Record<string, string>>> {
  const digests = RUNNING.map(async (sessionId) => [sessionId, await digest(host, sessionId)] as const);
  return Object.fromEntries(await Promise.all(digests));
}

/** The answer to the call sent once more; a refusal by its reason. */
async function repeat(host: TestHost, { method, body }: Omit<Keyed, "answer">): Promise<Json> {
  try {
    return steady(await host.call(method, body)) as Json;
  } catch (thrown) {
    if (thrown instanceof Refusal) return { refused: thrown.reason };
    throw thrown;
  }
}

async function outputOf(host: TestHost, processId: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  const call = { sessionId: TREE, processId };
  for await (const { data } of hostClient(host, ProcessService).readOutput(call)) chunks.push(data);
  return Buffer.concat(chunks).toString();
}

/** What changes while nothing happens to a session. */
const UNSTEADY = new Set(["spaceUsedBytes", "usedBytes", "referencedBytes", "activeTools", "outputBytes"]);

function steady(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(steady);
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([name]) => !UNSTEADY.has(name));
  return Object.fromEntries(kept.map(([name, inner]) => [name, steady(inner)]));
}
