import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { type AccessVerb, createTokenSigner, loadOrCreateSigningKeys, openHome, systemClock } from "@turnbox/core";
import { type Json, Refusal, startHost, type TestHost } from "../support/host.ts";
import { createSession, script } from "../support/host-calls.ts";
import { allow, tries } from "../support/networked-session.ts";
import { makeOutside, type Outside } from "../support/outside.ts";

jest.setTimeout(120_000);

const PUBLIC = "192.31.196.81";
const METADATA = ["169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16"];
const NEIGHBOURS = ["10.250.196.81", "172.31.196.81", "192.168.196.81", "100.127.196.81", "169.254.196.81"];
const CLOSED = [...METADATA, ...NEIGHBOURS];
/** What ConnectSandbox gives unless more is asked for, and what tokens of earlier versions have. */
const OWN_VERBS: readonly AccessVerb[] = ["read", "execute", "files", "turn", "lifecycle"];
/** Lists that name closed addresses, each in a way of its own. */
const NAMED = [...CLOSED.map((address) => [`${address}/32`]), ["169.254.0.0/16"], ["10.0.0.0/8", "172.16.0.0/12"]];
/** Lists that cover closed addresses beside public ones. */
const WIDE = [["0.0.0.0/0"], ["0.0.0.0/1", "128.0.0.0/1"], ["10.0.0.0/7", "168.0.0.0/7", "100.0.0.0/8", "160.0.0.0/3"]];

/** What children are given beyond what their parent has. */
const FORKS: readonly Json[] = [
  { networkPolicy: { allowOutbound: true } },
  { networkPolicy: { allowOutbound: true, allowList: [PUBLIC, "example.org"] } },
  { networkPolicy: { allowOutbound: true, allowList: [PUBLIC], allowPublicIngress: true } },
  { resources: { memoryBytes: String(1024 ** 3) } },
  { resources: { pids: 2000 } },
];

let outside: Outside;
let host: TestHost;
let pid: number;

beforeAll(async () => {
  outside = await makeOutside([PUBLIC, ...CLOSED]);
  host = await startHost();
  pid = host.pid;
  const resources = { memoryBytes: String(512 * 1024 ** 2), pids: 1000 };
  await createSession(host, "box", { networkPolicy: { allowOutbound: true, allowList: [PUBLIC] }, resources });
  await script(host, "box", "true");
});
afterAll(async () => {
  await host[Symbol.asyncDispose]();
  await outside[Symbol.asyncDispose]();
});
beforeEach(() => {
  outside.packets();
});

/** Calls with a token that is bound to one sandbox. Throws `Refusal`. */
async function callAs(sandbox: string, verbs: readonly AccessVerb[], method: string, body: Json): Promise<Json> {
  const { privateKey } = loadOrCreateSigningKeys(join(host.home, "keys"));
  const signer = createTokenSigner({ privateKey, issuer: openHome(host.home).id, clock: systemClock });
  const { token } = signer.sign({ tenant: "default", sandbox, verbs, lifetimeMs: 600_000 });
  const response = await fetch(`${host.url}/turnbox.host.v1.SessionService/${method}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token.reveal()}` },
    body: JSON.stringify(body),
  });
  const answer = (await response.json()) as Json;
  if (response.ok) return answer;
  const [detail] = (answer["details"] ?? []) as readonly { readonly debug?: { readonly reason?: string } }[];
  throw new Refusal(method, detail?.debug?.reason ?? "", JSON.stringify(answer));
}

const reasonOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => "none",
    (thrown: unknown) => (thrown instanceof Refusal ? thrown.reason : String(thrown)),
  );

/** Which of the closed addresses a sandbox gets an answer from. */
async function reached(id: string): Promise<readonly string[]> {
  const answers = await tries(
    host,
    id,
    CLOSED.map((address) => [address, 80] as const),
  );
  return CLOSED.filter((address) => answers[`${address}:80`] === "hello");
}

/** Puts the sandbox's policy back to what its owner gave. */
const restore = (): Promise<void> => allow(host, "box", { allowList: [PUBLIC] });

const policyOf = async (id: string): Promise<Json> =>
  (await host.call("SessionService/GetNetworkPolicy", { sessionId: id }))["policy"] as Json;

describe("the network of a sandbox", () => {
  it("attack 41: no list of a tenant opens a closed address", async () => {
    for (const allowList of NAMED) {
      const refused = await allow(host, "box", { allowList }).catch((thrown: unknown) => thrown);
      expect([allowList, refused]).toEqual([allowList, expect.objectContaining({ reason: "INVALID_ARGUMENT" })]);
      expect(String(refused)).toMatch(/ policy\.allow_list\[0\]: \S+ is .*(privateRanges|allowMetadata)/);
      expect((await policyOf("box"))["allowList"]).toEqual([`${PUBLIC}/32`]);
    }
    for (const allowList of WIDE) {
      await allow(host, "box", { allowList });
      expect([allowList, await reached("box")]).toEqual([allowList, []]);
    }
    await host.call("SessionService/UpdateNetworkPolicy", { sessionId: "box", policy: { allowOutbound: true } });
    expect(await reached("box")).toEqual([]);
    expect(outside.packets()).toEqual([]);
    expect(Object.values(await tries(host, "box", [[PUBLIC, 80]]))).toEqual(["hello"]);
    await restore();
    expect(host.pid).toBe(pid);
  });

  it("attack 41: is not changed by the sandbox's own token, nor widened in a fork that it makes", async () => {
    const before = await policyOf("box");
    const sessions = async () =>
      ((await host.call("SessionService/ListSessions"))["sessions"] as readonly Json[]).length;
    const count = await sessions();
    for (const allowList of [...NAMED, ...WIDE, [PUBLIC], []]) {
      const change = { sessionId: "box", policy: { allowOutbound: true, allowList } };
      const reason = await reasonOf(callAs("box", OWN_VERBS, "UpdateNetworkPolicy", change));
      expect([allowList, reason]).toEqual([allowList, "PERMISSION_DENIED"]);
    }
    for (const more of FORKS) {
      const reason = await reasonOf(callAs("box", OWN_VERBS, "ForkSession", { sessionId: "box", ...more }));
      expect([more, reason]).toEqual([more, "PERMISSION_DENIED"]);
    }
    expect([await policyOf("box"), await sessions()]).toEqual([before, count]);
    expect(await reached("box")).toEqual([]);
    expect(outside.packets()).toEqual([]);
    // A token with the verb does it, and a fork that asks for no more is made.
    const wider = { sessionId: "box", policy: { allowOutbound: true } };
    await callAs("box", [...OWN_VERBS, "network"], "UpdateNetworkPolicy", wider);
    await restore();
    await callAs("box", OWN_VERBS, "ForkSession", { sessionId: "box", childSessionIds: ["child"], count: 1 });
    expect((await policyOf("child"))["allowList"]).toEqual([`${PUBLIC}/32`]);
    expect(host.pid).toBe(pid);
  });

  it("attack 41: is opened by the operator's settings to policies that name it, and closed when they are taken back", async () => {
    const env = { TURNBOX_PRIVATE_RANGES: "10.250.0.0/16,169.254.0.0/16", TURNBOX_ALLOW_METADATA: "false" };
    await host.stop();
    await host.start(env);
    const listed = [PUBLIC, "10.250.196.81", "169.254.0.0/16"];
    await allow(host, "box", { allowList: listed });
    expect(await reached("box")).toEqual(["10.250.196.81", "169.254.196.81"]);
    expect(await reasonOf(allow(host, "box", { allowList: [METADATA[0] ?? ""] }))).toBe("INVALID_ARGUMENT");
    await host.stop();
    await host.start({ TURNBOX_ALLOW_METADATA: "true" });
    await allow(host, "box", { allowList: [PUBLIC, ...METADATA] });
    expect(await reached("box")).toEqual(METADATA);
    await host.stop();
    outside.packets();
    // What is recorded now is what an earlier version took from anybody.
    await host.start();
    expect(await reached("box")).toEqual([]);
    expect(outside.packets()).toEqual([]);
    expect(Object.values(await tries(host, "box", [[PUBLIC, 80]]))).toEqual(["hello"]);
    const told = await host.call("SessionService/GetNetworkPolicy", { sessionId: "box" });
    expect(told["ineffectiveEntries"]).toEqual(METADATA.map((address) => `${address}/32`));
    expect(told["closedRanges"]).toContainEqual({ range: "168.63.129.16/32", setting: "allowMetadata" });
    await restore();
    pid = host.pid;
  });
});
