import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { createLog, parseConfig, systemClock } from "@turnbox/core";
import { CREATE, SIGNAL } from "../compose.suite.ts";
import { type ComposedHost, composeHost } from "../compose.ts";
import { HOST_SETTINGS } from "../config.ts";
import { DENY_ALL, type NetworkPolicy, parsePolicy } from "../network-policy/policy.ts";
import type { Session } from "../session/session.ts";
import { makeWorld, type World } from "../network/world.suite.ts";

jest.setTimeout(60_000);

const PUBLIC = "192.31.196.30";
const OTHER = "192.31.196.40";
const call = { signal: SIGNAL };

const allow = (more: Partial<NetworkPolicy> = {}): NetworkPolicy =>
  parsePolicy({ ...DENY_ALL, allowOutbound: true, required: true, ...more });

describe("a session in gVisor with a network", () => {
  let directory: string;
  let world: World;
  let composed: ComposedHost;

  const start = async (): Promise<void> => {
    composed = await composeHost(
      {
        config: { ...parseConfig(HOST_SETTINGS, { env: {} }), storageBackend: "local-disk" },
        dataDirectory: directory,
        log: createLog({ name: "test", level: "silent", to: "stderr" }),
        path: process.env["PATH"] ?? "",
        lookUp: (name) => Promise.resolve(name === "git.example.org" ? [{ address: PUBLIC, ttl: 60 }] : []),
      },
      call,
    );
    await composed.recovered;
  };

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "turnbox-network-"));
    world = await makeWorld([PUBLIC, OTHER]);
    await start();
  });
  afterAll(async () => {
    const { host } = composed;
    for (const session of host.registry.all()) await host.destroySession(session);
    await untilGone();
    await composed[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
    await rm(directory, { recursive: true, force: true });
  });

  const create = (sessionId: string, networkPolicy: NetworkPolicy | null): Promise<Session> =>
    composed.host.createSession({ ...CREATE, sessionId, networkPolicy }, call);

  let calls = 0;
  const bash = async (session: Session, cmd: string): Promise<string> => {
    calls += 1;
    const { result } = await composed.host.executeTool(session, {
      callId: `call-${String(calls)}`,
      toolName: "bash",
      parameters: { cmd },
      stdin: new Uint8Array(),
      expectedGeneration: undefined,
      kill: SIGNAL,
    });
    return result.content;
  };
  const connect = (session: Session, address: string): Promise<string> =>
    bash(session, `nc -w 3 ${address} 80 < /dev/null 2>&1`);
  const update = (session: Session, policy: NetworkPolicy): Promise<void> =>
    composed.host.updateNetworkPolicy(
      session,
      { idempotencyKey: "", payload: "", expectedGeneration: undefined, policy },
      call,
    );
  const expose = (session: Session, port: number) =>
    composed.host.ports.createAccess(session, {
      idempotencyKey: "",
      payload: "",
      expectedGeneration: undefined,
      port,
      ttlMs: null,
    });
  const untilGone = async (): Promise<void> => {
    const deadline = performance.now() + 30_000;
    while (composed.host.registry.all().length > 0) {
      if (performance.now() > deadline) throw new Error("sessions are not removed in time");
      await systemClock.sleep(20);
    }
  };
  const netnsOf = ({ row }: Session): string => {
    const all = execFileSync("ip", ["netns"]).toString().split("\n");
    return all.map((line) => line.split(" ")[0] ?? "").find((name) => name.endsWith(`-${row.container ?? ""}`)) ?? "";
  };

  it("connects to what its policy allows, by name too, and to nothing else (attacks 41, 43, D15)", async () => {
    const session = await create("by-name", allow({ allowList: ["git.example.org"] }));
    expect(await connect(session, PUBLIC)).toContain("refused");
    expect(await bash(session, "nslookup git.example.org")).toContain(PUBLIC);
    expect(await bash(session, "nslookup evil.example.com 2>&1")).toContain("NXDOMAIN");
    expect(await connect(session, PUBLIC)).toContain("hello");
    expect(await connect(session, OTHER)).toContain("refused");
    expect(await connect(session, "169.254.169.254")).toContain("refused");
    expect(await world.arrived()).toEqual([`${PUBLIC}:80`]);
    const { container } = session.row;
    await update(session, allow({ allowList: [OTHER] }));
    expect(await connect(session, PUBLIC)).toContain("refused");
    expect(await connect(session, OTHER)).toContain("hello");
    expect(session.row.container).toBe(container);
    const denials = await composed.host.network.denials(container ?? "", call);
    expect(denials.map(({ destination }) => destination)).toEqual(
      expect.arrayContaining([`${PUBLIC}:80/tcp`, "169.254.169.254:80/tcp", "evil.example.com"]),
    );
    await world.arrived();
  });

  it("is not affected by rules in its own namespace: its packets pass those of the router", async () => {
    const session = await create("wrong-place", allow());
    expect(await connect(session, PUBLIC)).toContain("hello");
    const chain = (hook: string): string => `chain ${hook} { type filter hook ${hook} priority 0; policy drop; }`;
    const drop = ["table inet wrong {", chain("input"), chain("output"), chain("prerouting"), "}\n"].join("\n");
    execFileSync("ip", ["netns", "exec", netnsOf(session), "nft", "-f", "-"], { input: drop });
    expect(await connect(session, PUBLIC)).toContain("hello");
    await update(session, DENY_ALL);
    expect(await connect(session, PUBLIC)).toContain("refused");
    expect(await world.arrived()).toEqual([`${PUBLIC}:80`, `${PUBLIC}:80`]);
  });

  it("has nothing but loopback by default, and gets a network by a new boot when it is allowed", async () => {
    const session = await create("late", null);
    expect(await connect(session, PUBLIC)).toContain("No route to host");
    expect(netnsOf(session)).toBe("");
    await update(session, allow());
    expect(await connect(session, PUBLIC)).toContain("hello");
    await world.arrived();
  });

  it("serves HTTP at its address, two at the same port without a clash, none without its token (D20, D21, 47)", async () => {
    const sessions = [await create("web-1", null), await create("web-2", allow())] as const;
    const accesses = [];
    for (const session of sessions) {
      const serve = `mkdir -p /workspace/www; echo from ${session.row.id} > /workspace/www/index.html;`;
      await bash(session, `${serve} httpd -p 127.0.0.1:8080 -h /workspace/www`);
      accesses.push(await expose(session, 8080));
    }
    const [one, two] = accesses;
    const get = async (url = "", token = ""): Promise<string> => {
      const answer = await fetch(`${url}/index.html`, { headers: { authorization: `Bearer ${token}` } });
      return `${String(answer.status)} ${await answer.text()}`;
    };
    expect(await get(one?.url, one?.token)).toBe("200 from web-1\n");
    expect(await get(two?.url, two?.token)).toBe("200 from web-2\n");
    expect(await get(one?.url, two?.token)).toMatch(/^401/);
    await update(sessions[1], allow({ allowPublicIngress: true }));
    expect(await get(two?.url)).toBe("200 from web-2\n");
    expect(await get(one?.url)).toMatch(/^401/);
  });

  it("keeps its policy, its names' addresses and those of its ports when the service dies", async () => {
    const session = await create("survivor", allow({ allowList: ["git.example.org"] }));
    await bash(session, "nslookup git.example.org");
    expect(await connect(session, PUBLIC)).toContain("hello");
    await bash(session, "mkdir -p /workspace/www; echo still > /workspace/www/a; httpd -p 8080 -h /workspace/www");
    const { url, token } = await expose(session, 8080);
    const { container } = session.row;
    await composed.abandon();
    await start();
    const again = composed.host.registry.find("survivor");
    if (again === undefined) throw new Error("the session is gone");
    expect(again.row.container).toBe(container);
    expect(await connect(again, PUBLIC)).toContain("hello");
    expect(await connect(again, OTHER)).toContain("refused");
    expect(await bash(again, "nslookup git.example.org")).toContain(PUBLIC);
    const answer = await fetch(`${url}/a`, { headers: { "turnbox-port-token": token } });
    expect(await answer.text()).toBe("still\n");
    await world.arrived();
  });

  it("leaves nothing on the machine when all are gone", async () => {
    const { host } = composed;
    for (const session of host.registry.all()) await host.destroySession(session);
    await untilGone();
    const key = createHash("sha256").update(directory).digest("hex").slice(0, 8);
    for (const argv of [
      ["ip", "netns"],
      ["ip", "-br", "link"],
      ["nft", "list", "tables"],
    ] as const) {
      expect(execFileSync(argv[0], argv.slice(1)).toString()).not.toContain(key);
    }
  });
});
