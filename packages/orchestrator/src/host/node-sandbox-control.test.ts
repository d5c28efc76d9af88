import { createServer as createNetServer } from "node:net";
import { describe, expect, it } from "@jest/globals";
import { type ConnectRouter, createRouterTransport } from "@connectrpc/connect";
import { type Reason, SandboxError, Secret } from "@turnbox/core";
import { toConnectError } from "@turnbox/rpc/wire";
import { Admission, HealthStatus, HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { ProcessService, ProcessState } from "@turnbox/protocol/turnbox/host/v1/process_pb";
import { SessionService, SessionState, ToolsPolicy } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type { ControlCall, CreateSandboxRequest } from "../control/sandbox-control.ts";
import type { HostCaller } from "./host-call.ts";
import { createNodeSandboxControl } from "./node-sandbox-control.ts";

const CALL: ControlCall = { signal: new AbortController().signal, tenant: "t1" };
const REQUEST: CreateSandboxRequest = {
  idempotencyKey: "k1",
  labels: { a: "b" },
  template: "py@abc",
  resources: { cpus: 2, memoryBytes: 1024 },
  quotaBytes: 77,
  lifetime: { ttlMs: 5000, idleTimeoutMs: 2500, onTimeout: "pause" },
  env: { SECRET: "s" },
  network: {
    publicIngress: "denied",
    outbound: "allowed",
    allowList: ["example.org"],
    denyList: [],
    enforcement: "required",
  },
  sessionId: "s1",
};

function createNode(routes: (router: ConnectRouter) => void) {
  const link = { state: "kept" as "kept" | "new" };
  const callers: HostCaller[] = [];
  const control = createNodeSandboxControl({
    url: "http://10.1.2.3:9100",
    tokenFor: (caller) => {
      callers.push(caller);
      return new Secret(`token-${caller.kind}`);
    },
    transport: {
      transport: createRouterTransport(routes),
      connection: () => link.state,
      [Symbol.dispose]: () => undefined,
    },
  });
  return { control, callers, link };
}

const session = (sessionId: string) => ({ sessionId, state: SessionState.ACTIVE, generation: 1, labels: { a: "b" } });

describe("createNodeSandboxControl", () => {
  it("hands a create to the host with everything that was asked for, and a deadline", async () => {
    let seen: unknown;
    let timeoutMs: number | undefined;
    let authorization: string | null = null;
    const { control, callers } = createNode((router) => {
      router.service(SessionService, {
        createSession: (request, context) => {
          seen = request;
          timeoutMs = context.timeoutMs();
          authorization = context.requestHeader.get("authorization");
          return { session: session(request.sessionId), capabilities: { snapshots: true, storage: "zfs" } };
        },
      });
    });
    const made = await control.createSandbox(REQUEST, CALL);
    expect(seen).toMatchObject({
      idempotencyKey: "k1",
      sessionId: "s1",
      base: "py@abc",
      quotaBytes: 77n,
      labels: { a: "b" },
      env: { SECRET: "s" },
      resources: { cpus: 2, memoryBytes: 1024n },
      ttl: { seconds: 5n },
      idleTimeout: { seconds: 2n, nanos: 500_000_000 },
      onTimeout: 1,
      networkPolicy: { allowOutbound: true, allowList: ["example.org"], required: true },
    });
    expect(timeoutMs).toBeGreaterThan(0);
    expect(authorization).toBe("Bearer token-tenant");
    expect(callers[0]).toEqual({ kind: "tenant", tenant: "t1" });
    expect(made).toMatchObject({ sandboxId: "s1", session: { state: "active" }, capabilities: { storage: "zfs" } });
  });

  it("hands a fork to the host with its key, and answers for each child what the host said of it", async () => {
    let seen: unknown;
    const { control } = createNode((router) => {
      router.service(SessionService, {
        forkSession: (request) => {
          seen = request;
          return {
            snapshotId: "snap-1",
            results: [
              { result: { case: "session", value: session("c1") } },
              { result: { case: "reason", value: "POOL_FULL" }, message: "no space" },
              { result: { case: "reason", value: "NEWER_THAN_US" } },
            ],
          };
        },
      });
      router.service(HostService, { getCapabilities: () => ({ capabilities: { fork: true, storage: "zfs" } }) });
    });
    const request = { sandboxId: "s1", idempotencyKey: "k7", snapshotId: "snap-1", count: 3, labels: { a: "b" } };
    expect(await control.forkSandbox(request, CALL)).toMatchObject([
      { kind: "forked", sandbox: { sandboxId: "c1", address: "10.1.2.3:9100", capabilities: { fork: true } } },
      { kind: "failed", error: { reason: "POOL_FULL", message: "no space" } },
      { kind: "failed", error: { reason: "INTERNAL" } },
    ]);
    expect(seen).toMatchObject({
      sessionId: "s1",
      idempotencyKey: "k7",
      snapshotId: "snap-1",
      count: 3,
      labels: { a: "b" },
    });
  });

  it("D24: answers with the host's true address, and with the capabilities that the host has", async () => {
    let asked = 0;
    let snapshots = false;
    const { control, link } = createNode((router) => {
      router.service(SessionService, { getSession: ({ sessionId }) => ({ session: session(sessionId) }) });
      router.service(HostService, {
        getCapabilities: () => {
          asked += 1;
          return { capabilities: { snapshots, storage: "local-disk", runtime: "none" } };
        },
      });
    });
    const first = await control.getSandbox({ sandboxId: "s1" }, CALL);
    expect(first.address).toBe("10.1.2.3:9100");
    expect(first.capabilities).toMatchObject({ snapshots: false, rollback: false, storage: "local-disk" });
    snapshots = true;
    await control.getSandbox({ sandboxId: "s1" }, CALL);
    expect(asked).toBe(1);
    link.state = "new";
    expect(await control.capabilities(CALL)).toMatchObject({ snapshots: true });
    expect(asked).toBe(2);
  });

  it("D25: sets no deadline on a stream", async () => {
    let timeoutMs: number | undefined = -1;
    const parts: string[] = [];
    const { control, callers } = createNode((router) => {
      router.service(HostService, {
        importTemplate: async (requests, context) => {
          timeoutMs = context.timeoutMs();
          for await (const { part } of requests)
            parts.push(part.case === "data" ? `data ${part.value.length}` : String(part.case));
          return { template: { name: "py", digest: "d", sizeBytes: 3n, latest: true } };
        },
      });
    });
    async function* archive() {
      yield await Promise.resolve(Buffer.alloc(300 * 1024));
    }
    const imported = await control.importTemplate({ idempotencyKey: "k", name: "py", archive: archive() }, CALL);
    expect(timeoutMs).toBeUndefined();
    expect(parts).toEqual(["header", `data ${256 * 1024}`, `data ${44 * 1024}`]);
    expect(imported).toMatchObject({ hosts: 1, template: { name: "py", sizeBytes: 3 } });
    expect(callers[0]).toEqual({ kind: "fleet" });
  });

  it("calls a session that is not there a sandbox that is not there, and passes everything else on", async () => {
    const { control } = createNode((router) => {
      router.service(SessionService, {
        getSession: () => {
          throw toConnectError(new SandboxError("SESSION_NOT_FOUND", "no session s1"), "r1");
        },
        createSession: () => {
          throw toConnectError(new SandboxError("POOL_FULL", "full", { retryAfterMs: 50 }), "r2");
        },
      });
    });
    await expect(control.getSandbox({ sandboxId: "s1" }, CALL)).rejects.toMatchObject({ reason: "SANDBOX_NOT_FOUND" });
    await expect(control.createSandbox(REQUEST, CALL)).rejects.toMatchObject({ reason: "POOL_FULL", retryAfterMs: 50 });
  });

  it("passes on that a host does not have a method yet", async () => {
    const { control } = createNode((router) => {
      router.service(SessionService, {});
    });
    await expect(
      control.pauseSandbox({ sandboxId: "s1", idempotencyKey: "", tools: "wait" }, CALL),
    ).rejects.toMatchObject({ reason: "UNIMPLEMENTED" });
  });

  it("names the field of an id that no host could have, without asking it", async () => {
    const { control, callers } = createNode(() => undefined);
    await expect(control.getSandbox({ sandboxId: "fleet:a:b" }, CALL)).rejects.toMatchObject({
      reason: "INVALID_ARGUMENT",
      metadata: { field: "sandbox_id" },
    });
    expect(callers).toEqual([]);
  });

  it("reports what the host says, also one that has no statistics yet", async () => {
    const { control } = createNode((router) => {
      router.service(HostService, {
        healthCheck: () => ({
          status: HealthStatus.DEGRADED,
          sessionCount: 3,
          maxSessions: 10,
          poolSpace: { sizeBytes: 100n, availableBytes: 40n },
          errors: ["pool DEGRADED"],
        }),
        listTemplates: () => ({ templates: [{ name: "mini", digest: "d1" }] }),
      });
    });
    expect(await control.report(CALL)).toMatchObject({
      health: "degraded",
      sessionCount: 3,
      maxSessions: 10,
      poolBytes: 100,
      poolAvailableBytes: 40,
      memoryBytes: 0,
      templates: [{ name: "mini" }],
      problems: ["pool DEGRADED"],
    });
  });
});

describe("createNodeSandboxControl for the fleet", () => {
  const COMMAND = { signal: CALL.signal, epoch: 7 };

  it("lists the sessions of all tenants, page by page", async () => {
    const pages: string[] = [];
    const { control, callers } = createNode((router) => {
      router.service(SessionService, {
        listSessions: ({ page }) => {
          pages.push(page?.pageToken ?? "");
          return pages.length === 1
            ? { sessions: [{ ...session("s1"), tenant: "a" }], page: { nextPageToken: "more" } }
            : { sessions: [{ ...session("s2"), tenant: "b", state: SessionState.PAUSED }], page: {} };
        },
      });
    });
    expect(await control.sessions(CALL)).toEqual([
      { sessionId: "s1", tenant: "a", state: "active" },
      { sessionId: "s2", tenant: "b", state: "paused" },
    ]);
    expect(pages).toEqual(["", "more"]);
    expect(callers).toEqual([{ kind: "fleet" }, { kind: "fleet" }]);
  });

  it("sends commands under their epoch, and passes on that it is stale", async () => {
    const seen: unknown[] = [];
    const { control } = createNode((router) => {
      router.service(HostService, {
        setAdmission: ({ admission }, { requestHeader }) => {
          seen.push([admission, requestHeader.get("turnbox-fleet-epoch"), requestHeader.get("authorization")]);
          if (seen.length > 1) throw toConnectError(new SandboxError("EPOCH_STALE", "8 is known"), "r1");
          return { admission };
        },
      });
    });
    await control.setAdmission("closed", COMMAND);
    await expect(control.setAdmission("open", COMMAND)).rejects.toMatchObject({ reason: "EPOCH_STALE" });
    expect(seen).toEqual([
      [Admission.CLOSED, "7", "Bearer token-fleet"],
      [Admission.OPEN, "7", "Bearer token-fleet"],
    ]);
  });

  it("pauses a session, its tools too, and has nothing to do where it runs nothing", async () => {
    const seen: unknown[] = [];
    const refuse = (reason: Reason, metadata: Record<string, string> = {}): never => {
      throw toConnectError(new SandboxError(reason, "no", { metadata }), "r1");
    };
    const { control } = createNode((router) => {
      router.service(SessionService, {
        pauseSession: ({ sessionId, tools }, { requestHeader }) => {
          seen.push([sessionId, tools, requestHeader.get("turnbox-fleet-epoch")]);
          if (sessionId === "gone") refuse("SESSION_NOT_FOUND");
          if (sessionId === "going") refuse("SESSION_DESTROYING");
          if (sessionId === "failed") refuse("INVALID_STATE", { state: "failed" });
          if (sessionId === "creating") refuse("INVALID_STATE", { state: "creating" });
          return { session: session(sessionId) };
        },
      });
    });
    const pause = (sessionId: string) => control.pauseSession({ sessionId, tenant: "a", state: "active" }, COMMAND);
    for (const sessionId of ["s1", "gone", "going", "failed"]) await pause(sessionId);
    await expect(pause("creating")).rejects.toMatchObject({ reason: "INVALID_STATE" });
    expect(seen[0]).toEqual(["s1", ToolsPolicy.KILL, "7"]);
  });

  it("says whether the host takes new sessions", async () => {
    const { control } = createNode((router) => {
      router.service(HostService, {
        healthCheck: () => ({ status: HealthStatus.HEALTHY, admission: Admission.CLOSED }),
      });
    });
    expect(await control.report(CALL)).toMatchObject({ health: "healthy", admission: "closed" });
  });

  it("D26: answers with an address of a process that others reach, not with the host's loopback", async () => {
    const { control } = createNode((router) => {
      router.service(ProcessService, {
        launchProcess: () => ({
          process: { processId: "p1", state: ProcessState.RUNNING, address: "127.0.0.1:40001" },
        }),
      });
    });
    const request = { sandboxId: "s1", idempotencyKey: "k", binary: "web", args: [], env: {}, exposePort: 80 };
    expect(await control.launchProcess(request, CALL)).toMatchObject({ address: "10.1.2.3:40001" });
  });
});

describe("createNodeSandboxControl over the network", () => {
  const connect = (url: string) => createNodeSandboxControl({ url, tokenFor: () => new Secret("t") });

  it("says that nothing was admitted if nothing listens", async () => {
    const server = createNetServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    await new Promise((resolve) => server.close(resolve));
    await using control = connect(`http://127.0.0.1:${port}`);
    await expect(control.createSandbox(REQUEST, CALL)).rejects.toMatchObject({
      reason: "HOST_UNREACHABLE",
      admitted: "no",
    });
  });

  it("says that the outcome is unknown where the connection breaks after the request", async () => {
    const server = createNetServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () => socket.resetAndDestroy());
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    try {
      await using control = connect(`http://127.0.0.1:${port}`);
      await expect(control.createSandbox(REQUEST, CALL)).rejects.toMatchObject({
        reason: "HOST_UNREACHABLE",
        admitted: "unknown",
      });
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });

  it("ends a call to a host that never answers at its deadline, and at its caller's wish", async () => {
    const sockets = new Set<{ destroy(): void }>();
    const server = createNetServer((socket) => {
      socket.on("error", () => undefined);
      sockets.add(socket);
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const url = `http://127.0.0.1:${port}`;
    try {
      await using control = createNodeSandboxControl({
        url,
        tokenFor: () => new Secret("t"),
        deadlines: { readMs: 100 },
      });
      await expect(control.getSandbox({ sandboxId: "s1" }, CALL)).rejects.toMatchObject({
        reason: "DEADLINE_EXCEEDED",
      });
      const leaving = new AbortController();
      const call = control.createSandbox(REQUEST, { ...CALL, signal: leaving.signal });
      leaving.abort();
      await expect(call).rejects.toMatchObject({ reason: "CANCELLED", admitted: "unknown" });
    } finally {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    }
  });
});
