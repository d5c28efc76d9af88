import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { ACCESS_VERBS, createTokenSigner, loadOrCreateSigningKeys, openHome, systemClock } from "@turnbox/core";
import { linkOf } from "../../packages/sandbox-host/src/network/netns/names.ts";
import { type Json, Refusal, startHost, type TestHost } from "../support/host.ts";
import { bash, createSession, destroy, getSession, script } from "../support/host-calls.ts";
import { allow, containerOf, denials, linkIn, namesOf, netnsOf, reaches } from "../support/networked-session.ts";
import { makeOutside, type Outside } from "../support/outside.ts";
import { poll, run } from "../support/process.ts";
import { SLACK } from "../support/random.ts";

jest.setTimeout(120_000);

const PUBLIC = "192.31.196.71";
const OTHER = "192.31.196.72";
/** Addresses that no policy opens by itself. */
const CLOSED = ["169.254.196.71", "100.127.196.71", "10.250.196.71"];

let directory: string;
let outside: Outside;
let host: TestHost;
/** While this file is there, the host's `nft` fails. */
let refuseRules: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "turnbox-attack-"));
  refuseRules = join(directory, "refuse");
  const real = (await run("which", ["nft"])).stdout.trim();
  await writeFile(join(directory, "nft"), `#!/bin/sh\n[ ! -e ${refuseRules} ] || exit 1\nexec ${real} "$@"\n`);
  await chmod(join(directory, "nft"), 0o755);
  outside = await makeOutside([PUBLIC, OTHER, ...CLOSED]);
  host = await startHost({ env: { PATH: `${directory}:${process.env["PATH"] ?? ""}` } });
  await createSession(host, "open", { networkPolicy: { allowOutbound: true, required: true } });
  await script(host, "open", "true");
});
afterAll(async () => {
  await host[Symbol.asyncDispose]();
  await outside[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});
beforeEach(() => {
  outside.packets();
});

/** Calls as somebody of another tenant. Throws `Refusal`. */
async function callAs(tenant: string, method: string, body: Json): Promise<Json> {
  const { privateKey } = loadOrCreateSigningKeys(join(host.home, "keys"));
  const signer = createTokenSigner({ privateKey, issuer: openHome(host.home).id, clock: systemClock });
  const { token } = signer.sign({ tenant, verbs: ACCESS_VERBS, lifetimeMs: 600_000 });
  const response = await fetch(`${host.url}/turnbox.host.v1.${method}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token.reveal()}` },
    body: JSON.stringify(body),
  });
  const answer = (await response.json()) as Json;
  if (response.ok) return answer;
  const [detail] = (answer["details"] ?? []) as readonly { readonly debug?: { readonly reason?: string } }[];
  throw new Refusal(method, detail?.debug?.reason ?? "", JSON.stringify(answer));
}

type Call = (method: string, body: Json) => Promise<Json>;

/** A session with a web server at port 8080 that tells its name, and the way to it. */
async function serve(
  sessionId: string,
  call: Call = host.call,
): Promise<{ readonly url: string; readonly token: string }> {
  await call("SessionService/CreateSession", { sessionId });
  const make = `mkdir -p www; echo from ${sessionId} > www/index.html`;
  await call("ToolService/ExecuteTool", { sessionId, toolCallId: "make", toolName: "bash", params: { cmd: make } });
  const args = ["-f", "-p", "127.0.0.1:8080", "-h", "/workspace/www"];
  const launched = await call("ProcessService/LaunchProcess", { sessionId, binary: "httpd", args, exposePort: 8080 });
  const { processId } = launched["process"] as { readonly processId: string };
  await poll("the server to accept", async () => {
    const { process } = await call("ProcessService/GetProcessStatus", { sessionId, processId });
    return (process as { readonly state: string }).state === "PROCESS_STATE_RUNNING" ? true : undefined;
  });
  const access = await call("SessionService/CreatePortAccess", { sessionId, port: 8080 });
  return { url: String(access["url"]), token: String(access["token"]) };
}

/** `200 body`, the status of a refusal, or `closed`. */
async function get(url: string, token: string): Promise<string> {
  try {
    const answer = await fetch(`${url}/index.html`, { headers: { "turnbox-port-token": token, connection: "close" } });
    return answer.ok ? `${String(answer.status)} ${(await answer.text()).trim()}` : String(answer.status);
  } catch {
    return "closed";
  }
}

/** Sends lines as they are and answers with all that comes back. */
async function speak(url: string, lines: readonly string[]): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  let heard = "";
  socket.on("data", (chunk: Buffer) => (heard += chunk.toString()));
  socket.on("error", () => undefined);
  socket.write(`${[...lines, "connection: close"].join("\r\n")}\r\n\r\n`);
  await once(socket, "close");
  return heard;
}

describe("the address of a port", () => {
  it("attack 45: is no proxy: absolute forms and CONNECT are refused, and a foreign Host leads nowhere else", async () => {
    const { url, token } = await serve("served");
    const auth = `turnbox-port-token: ${token}`;
    const elsewhere = ["host: x", auth];
    for (const target of [CLOSED[0] ?? "", new URL(host.url).host]) {
      expect(await speak(url, [`GET http://${target}/ HTTP/1.1`, ...elsewhere])).toMatch(/^HTTP\/1\.1 400/);
      expect(await speak(url, [`CONNECT ${target}:80 HTTP/1.1`, ...elsewhere])).not.toMatch(/^HTTP\/1\.1 2/);
      const foreign = await speak(url, ["GET /index.html HTTP/1.1", `host: ${target}`, auth]);
      expect(foreign).toMatch(/^HTTP\/1\.[01] 200[\s\S]*from served/);
    }
    expect(outside.packets()).toEqual([]);
  });

  it("attack 47: opens to its own token alone, at one port for two sessions and for two tenants", async () => {
    const rival: Call = (method, body) => callAs("rival", method, body);
    const [one, two, three] = [await serve("one"), await serve("two"), await serve("three", rival)];
    expect(new Set([one.url, two.url, three.url]).size).toBe(3);
    expect([await get(one.url, one.token), await get(two.url, two.token), await get(three.url, three.token)]).toEqual([
      "200 from one",
      "200 from two",
      "200 from three",
    ]);
    for (const token of [two.token, three.token, ""]) expect(await get(one.url, token)).toBe("401");
    for (const method of ["CreatePortAccess", "GetNetworkPolicy", "UpdateNetworkPolicy"]) {
      const body = { sessionId: "one", ...(method === "CreatePortAccess" ? { port: 8080 } : {}) };
      await expect(rival(`SessionService/${method}`, body)).rejects.toMatchObject({ reason: "SESSION_NOT_FOUND" });
    }
  });

  it("attack 47: is given to no other session when its own is gone", async () => {
    const gone = await serve("gone");
    expect(await get(gone.url, gone.token)).toBe("200 from gone");
    await destroy(host, "gone");
    await poll("the address to be closed", async () =>
      (await get(gone.url, gone.token)) === "closed" ? true : undefined,
    );
    const again = await serve("next");
    expect(again.url).not.toBe(gone.url);
    expect([await get(again.url, gone.token), await get(again.url, again.token)]).toEqual(["401", "200 from next"]);
    expect(await get(gone.url, again.token)).toBe("closed");
  });
});

describe("the policy of a sandbox", () => {
  it("attack 48: is shut when its rules are flushed, and has them again when the host has looked", async () => {
    const everything = [PUBLIC, ...CLOSED];
    const loop = `while :; do for to in ${everything.join(" ")}; do nc -w 1 $to 80; done; done > /dev/null 2>&1 < /dev/null`;
    const launched = await host.call("ProcessService/LaunchProcess", {
      sessionId: "open",
      binary: "bash",
      args: ["-c", loop],
    });
    const { processId } = launched["process"] as { readonly processId: string };
    await poll("the sandbox to be heard", () => (outside.packets().includes(`${PUBLIC}:80/tcp`) ? true : undefined));
    const sent = () => linkIn(namesOf(host).router, linkOf(containerOf(host, "open"))).received;
    // While the host stands still nobody puts the rules back, and the sandbox goes on.
    process.kill(host.pid, "SIGSTOP");
    try {
      execFileSync("ip", ["netns", "exec", namesOf(host).router, "nft", "flush", "ruleset"]);
      outside.packets();
      const before = sent();
      await poll("the sandbox to send more", () => (sent() > before + 20 ? true : undefined));
      expect(outside.packets()).toEqual([]);
    } finally {
      process.kill(host.pid, "SIGCONT");
    }
    await poll("its way out", () => (outside.packets().includes(`${PUBLIC}:80/tcp`) ? true : undefined), 6_000 * SLACK);
    await host.call("ProcessService/KillProcess", { sessionId: "open", processId, signal: 9 });
    expect(outside.packets().filter((packet) => !packet.startsWith(PUBLIC))).toEqual([]);
    expect(await readFile(join(host.dataDirectory, "host.log"), "utf8")).toContain(
      "the rules of the sandboxes' network were removed",
    );
  });

  it("attack 48: has no sandbox if its rules cannot be put in force, and keeps the old ones if new ones cannot", async () => {
    await createSession(host, "unruled", { networkPolicy: { allowOutbound: true, required: true } });
    await writeFile(refuseRules, "");
    try {
      await expect(bash(host, "unruled", "true")).rejects.toMatchObject({ reason: "RUNTIME_UNAVAILABLE" });
      await expect(allow(host, "open", { allowList: ["0.0.0.0/0"] })).rejects.toMatchObject({
        reason: "RUNTIME_UNAVAILABLE",
      });
      expect(await reaches(host, "open", CLOSED[0] ?? "")).toBe(false);
      expect(outside.packets()).toEqual([]);
    } finally {
      await rm(refuseRules);
    }
    expect(await reaches(host, "unruled", PUBLIC)).toBe(true);
    expect(await reaches(host, "open", PUBLIC)).toBe(true);
    await destroy(host, "unruled");
  });

  it("is filtered where its packets pass: a rule in its own namespace sees none of them, the same one in the router all", async () => {
    // The kernel gets a copy of what arrives there, so it is what the sandbox sends that is counted.
    const seen = `ip daddr ${PUBLIC} counter name seen`;
    const hooks = ["prerouting", "input", "forward", "output", "postrouting"];
    const chains = hooks.map(
      (hook) => `chain ${hook} { type filter hook ${hook} priority -400; policy drop; ${seen}; }`,
    );
    const rules = `table inet misplaced { counter seen { }\n${chains.join("\n")}\n}\n`;
    const seenIn = (netns: string): number => {
      const args = ["netns", "exec", netns, "nft", "-j", "list", "counter", "inet", "misplaced", "seen"];
      const { nftables } = JSON.parse(execFileSync("ip", args).toString()) as {
        readonly nftables: readonly { readonly counter?: { readonly packets: number } }[];
      };
      return nftables.find(({ counter }) => counter !== undefined)?.counter?.packets ?? -1;
    };
    const put = (netns: string) => execFileSync("ip", ["netns", "exec", netns, "nft", "-f", "-"], { input: rules });
    put(netnsOf(host, "open"));
    expect(await reaches(host, "open", PUBLIC)).toBe(true);
    expect(outside.packets()).toEqual([`${PUBLIC}:80/tcp`]);
    expect(seenIn(netnsOf(host, "open"))).toBe(0);
    const { router } = namesOf(host);
    put(router);
    try {
      expect(await reaches(host, "open", PUBLIC)).toBe(false);
      expect(outside.packets()).toEqual([]);
      expect(seenIn(router)).toBeGreaterThan(0);
    } finally {
      execFileSync("ip", ["netns", "exec", router, "nft", "delete", "table", "inet", "misplaced"]);
    }
  });

  it("changes while the sandbox runs, tells what was refused, and counts what was sent and received", async () => {
    const { generation } = await getSession(host, "open");
    const traffic = async (): Promise<readonly number[]> => {
      const stats = await host.call("SessionService/GetSessionStats", { sessionId: "open" });
      return [Number(stats["networkSentBytes"] ?? 0), Number(stats["networkReceivedBytes"] ?? 0)];
    };
    const container = containerOf(host, "open");
    const [sentBefore = 0, receivedBefore = 0] = await traffic();
    expect(await reaches(host, "open", OTHER)).toBe(true);
    const [sent = 0, received = 0] = await traffic();
    expect(sent - sentBefore).toBeGreaterThan(100);
    expect(received - receivedBefore).toBeGreaterThan(100);
    await allow(host, "open", { denyList: [OTHER] });
    expect(await reaches(host, "open", OTHER)).toBe(false);
    expect(await denials(host, "open")).toContainEqual(
      expect.objectContaining({ destination: `${OTHER}:80/tcp`, rule: "in the deny list" }),
    );
    const logged = async (): Promise<string | undefined> =>
      (await readFile(join(host.dataDirectory, "host.log"), "utf8"))
        .split("\n")
        .find((line) => line.includes("a connection was refused") && line.includes(`${OTHER}:80/tcp`));
    expect(await poll("the refusal in the host's log", logged, 60_000)).toContain('"sessionId":"open"');
    await allow(host, "open", {});
    expect(await reaches(host, "open", OTHER)).toBe(true);
    expect([containerOf(host, "open"), (await getSession(host, "open")).generation]).toEqual([container, generation]);
  });

  it("fails if it is required and the host cannot enforce it", async () => {
    await using bare = await startHost({
      env: { TURNBOX_CONTAINER_RUNTIME: "none", TURNBOX_STORAGE_BACKEND: "local-disk" },
    });
    const networkPolicy = { allowOutbound: true, allowList: ["192.31.196.0/24"] };
    await expect(
      createSession(bare, "bare", { networkPolicy: { ...networkPolicy, required: true } }),
    ).rejects.toMatchObject({ reason: "CAPABILITY_NOT_SUPPORTED" });
  });
});
