import { describe, expect, it } from "@jest/globals";
import type { Client } from "@connectrpc/connect";
import { type AccessVerb, Secret } from "@turnbox/core";
import { Verb } from "@turnbox/protocol/turnbox/common/v1/access_pb";
import { SandboxControlService } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { ProcessState } from "@turnbox/protocol/turnbox/host/v1/process_pb";
import { OnTimeout, SessionState } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { createServer, refusal } from "./server.suite.ts";

describe("SandboxControlService", () => {
  it("makes, reads, lists and destroys a sandbox", async () => {
    const client = createServer().sandboxes();
    const created = await client.createSandbox({
      idempotencyKey: "k1",
      name: "web",
      template: "py@abc",
      labels: { app: "x" },
      resources: { cpus: 0.5, memoryBytes: 1n << 30n },
      quotaBytes: 1n << 20n,
      ttl: { seconds: 60n },
    });
    expect(created.sandbox).toMatchObject({ sandboxId: created.sandboxId, name: "web", address: "127.0.0.1:9100" });
    expect(created.sandbox?.session).toMatchObject({
      state: SessionState.ACTIVE,
      base: "py@abc",
      labels: { app: "x" },
      quotaBytes: 1n << 20n,
    });
    expect(created.sandbox?.session?.expiresAt).toBeDefined();
    const { sandboxId } = created;
    expect((await client.getSandbox({ sandboxId })).sandbox?.name).toBe("web");
    const listed = await client.listSandboxes({ selector: { matchLabels: { app: "x" } } });
    expect(listed.sandboxes.map((one) => one.sandboxId)).toEqual([sandboxId]);
    await client.destroySandbox({ sandboxId });
    expect(await refusal(client.getSandbox({ sandboxId }))).toMatchObject({ reason: "SANDBOX_NOT_FOUND" });
  });

  it("pages lists", async () => {
    const client = createServer().sandboxes();
    for (let index = 0; index < 3; index += 1) await client.createSandbox({});
    const first = await client.listSandboxes({ page: { pageSize: 2 } });
    expect(first.sandboxes).toHaveLength(2);
    const second = await client.listSandboxes({ page: { pageSize: 2, pageToken: first.page?.nextPageToken ?? "" } });
    expect(second.sandboxes).toHaveLength(1);
    expect(second.page?.nextPageToken).toBe("");
  });

  it.each<[string, Parameters<Client<typeof SandboxControlService>["createSandbox"]>[0]]>([
    ["name", { name: "no spaces please" }],
    ["name", { name: "a..b" }],
    ["template", { template: "../etc" }],
    ["template", { template: "pool/base@x" }],
    ["labels", { labels: { "": "x" } }],
    ["labels", { labels: Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`k${index}`, ""])) }],
    ["labels", { labels: { a: "x".repeat(256) } }],
    ["resources.cpus", { resources: { cpus: -1 } }],
    ["resources.cpus", { resources: { cpus: Number.NaN } }],
    ["resources.cpus", { resources: { cpus: 2000 } }],
    ["resources.memory_bytes", { resources: { memoryBytes: 1n << 60n } }],
    ["quota_bytes", { quotaBytes: 1n << 60n }],
    ["ttl", { ttl: { seconds: -5n } }],
    ["idle_timeout", { idleTimeout: {} }],
    ["on_timeout", { onTimeout: 99 as unknown as OnTimeout }],
    ["env", { env: { "A=B": "x" } }],
    ["env", { env: { A: "x\0y" } }],
    ["idempotency_key", { idempotencyKey: "k".repeat(257) }],
  ])("refuses a wrong %s by its name", async (field, request) => {
    expect(await refusal(createServer().sandboxes().createSandbox(request))).toMatchObject({
      reason: "INVALID_ARGUMENT",
      field,
    });
  });

  it("does not repeat a secret in a refusal", async () => {
    const { message } = await refusal(
      createServer()
        .sandboxes()
        .createSandbox({ env: { "API KEY": "hunter2" } }),
    );
    expect(message).not.toMatch(/hunter2|API KEY/);
  });

  it("refuses a page that is too large", async () => {
    expect(
      await refusal(
        createServer()
          .sandboxes()
          .listSandboxes({ page: { pageSize: 1001 } }),
      ),
    ).toMatchObject({
      field: "page.page_size",
    });
  });

  it("signs a token for one sandbox that hosts of the fleet accept, and says where they are", async () => {
    const server = createServer();
    const { sandboxId } = await server.sandboxes().createSandbox({});
    const connected = await server.sandboxes().connectSandbox({ sandboxId, verbs: [Verb.READ, Verb.EXECUTE] });
    expect(connected).toMatchObject({ url: "http://127.0.0.1:9100", sessionId: sandboxId, sandboxId });
    expect(server.verifier.verify(new Secret(connected.token))).toEqual({
      kind: "scoped",
      tenant: "default",
      sandbox: sandboxId,
      verbs: ["read", "execute"],
      expiresAtMs: Number(connected.expiresAt?.seconds) * 1000,
    });
    const open = await server.sandboxes().connectSandbox({ sandboxId });
    expect(server.verifier.verify(new Secret(open.token)).verbs).toEqual([
      "read",
      "execute",
      "files",
      "turn",
      "lifecycle",
    ]);
    expect(Number(open.expiresAt?.seconds) * 1000).toBeGreaterThan(Date.now() + 3_500_000);
  });

  it("answers a create with the same at once, for as much as the caller may do itself", async () => {
    const server = createServer();
    const token = server.tokenOf("t1", { verbs: ["read", "lifecycle"], lifetimeMs: 5000 });
    const { sandboxId, access } = await server.sandboxes(token).createSandbox({});
    expect(access).toMatchObject({ url: "http://127.0.0.1:9100", sessionId: sandboxId, sandboxId });
    expect(server.verifier.verify(new Secret(access?.token ?? ""))).toEqual({
      kind: "scoped",
      tenant: "t1",
      sandbox: sandboxId,
      verbs: ["read", "lifecycle"],
      expiresAtMs: server.verifier.verify(new Secret(token)).expiresAtMs,
    });
  });

  it("never signs more than the caller may do itself", async () => {
    const server = createServer();
    const token = server.tokenOf("t1", { verbs: ["read", "lifecycle"] });
    const { sandboxId } = await server.sandboxes(token).createSandbox({});
    const connected = await server.sandboxes(token).connectSandbox({ sandboxId });
    expect(server.verifier.verify(new Secret(connected.token))).toMatchObject({
      tenant: "t1",
      verbs: ["read", "lifecycle"],
    });
    expect(await refusal(server.sandboxes(token).connectSandbox({ sandboxId, verbs: [Verb.EXECUTE] }))).toMatchObject({
      reason: "PERMISSION_DENIED",
    });
    expect(await refusal(server.sandboxes().connectSandbox({ sandboxId, verbs: [Verb.ADMIN] }))).toMatchObject({
      reason: "INVALID_ARGUMENT",
      field: "verbs",
    });
    expect(
      await refusal(server.sandboxes(token).connectSandbox({ sandboxId, ttl: { seconds: 90_000n } })),
    ).toMatchObject({
      field: "ttl",
    });
  });

  it("signs changes of the network only for who asks for it and could make a sandbox with any, or holds it", async () => {
    const server = createServer();
    const tenant = server.tokenOf("t1");
    const { sandboxId } = await server.sandboxes(tenant).createSandbox({});
    const verbsFor = async (token: string | undefined, verbs: Verb[]): Promise<readonly string[]> => {
      const connected = await server.sandboxes(token).connectSandbox({ sandboxId, verbs });
      return server.verifier.verify(new Secret(connected.token)).verbs;
    };
    const own = (verbs: readonly AccessVerb[]) => server.tokenOf("t1", { sandbox: sandboxId, verbs });
    expect(await verbsFor(tenant, [])).not.toContain("network");
    expect(await verbsFor(tenant, [Verb.READ, Verb.NETWORK])).toEqual(["read", "network"]);
    expect(await verbsFor(own(["read", "network"]), [Verb.NETWORK])).toEqual(["network"]);
    expect(await verbsFor(own(["read", "network"]), [])).toEqual(["read"]);
    for (const token of [
      own(["read", "execute", "files", "turn", "lifecycle"]),
      server.tokenOf("t1", { verbs: ["read", "execute"] }),
    ]) {
      expect(await refusal(verbsFor(token, [Verb.NETWORK]))).toMatchObject({
        reason: "PERMISSION_DENIED",
        field: "verbs",
      });
    }
  });

  it("signs nothing that outlasts the caller's own token, however often it is renewed", async () => {
    const server = createServer();
    const { sandboxId } = await server.sandboxes().createSandbox({});
    let token = server.tokenOf("default", { sandbox: sandboxId, lifetimeMs: 5000 });
    const endMs = server.verifier.verify(new Secret(token)).expiresAtMs;
    for (const ttl of [{ seconds: 86_400n }, undefined, { seconds: 3600n }]) {
      const connected = await server.sandboxes(token).connectSandbox({ sandboxId, ...(ttl && { ttl }) });
      ({ token } = connected);
      expect(Number(connected.expiresAt?.seconds) * 1000).toBe(endMs);
      expect(server.verifier.verify(new Secret(token)).expiresAtMs).toBe(endMs);
    }
    const shorter = await server.sandboxes(token).connectSandbox({ sandboxId, ttl: { seconds: 1n } });
    expect(Number(shorter.expiresAt?.seconds) * 1000).toBeLessThan(endMs ?? 0);
  });

  it("signs nothing for a sandbox of another tenant", async () => {
    const server = createServer();
    const { sandboxId } = await server.sandboxes(server.tokenOf("t1")).createSandbox({});
    expect(await refusal(server.sandboxes(server.tokenOf("t2")).connectSandbox({ sandboxId }))).toMatchObject({
      reason: "SANDBOX_NOT_FOUND",
    });
  });

  it("needs a token that covers the call", async () => {
    const server = createServer();
    expect(await refusal(server.sandboxes("").listSandboxes({}))).toMatchObject({ reason: "UNAUTHENTICATED" });
    expect(await refusal(server.sandboxes(server.tokenOf("t1", { verbs: ["read"] })).createSandbox({}))).toMatchObject({
      reason: "PERMISSION_DENIED",
    });
    expect(
      await refusal(server.sandboxes(server.tokenOf("t1", { sandbox: "s1" })).getSandbox({ sandboxId: "s2" })),
    ).toMatchObject({
      reason: "PERMISSION_DENIED",
    });
  });

  it("refuses a look-up by name with a token that is bound to one sandbox, whether the name is known or not", async () => {
    const server = createServer();
    await server.sandboxes(server.tokenOf("t1")).createSandbox({ name: "web" });
    const { sandboxId } = await server.sandboxes(server.tokenOf("t1")).createSandbox({ name: "own" });
    const bound = server.sandboxes(server.tokenOf("t1", { sandbox: sandboxId.split(":").at(-1) ?? "" }));
    expect((await bound.getSandbox({ sandboxId })).sandbox?.name).toBe("own");
    for (const name of ["web", "own", "unknown"])
      expect(await refusal(bound.getSandbox({ name }))).toMatchObject({ reason: "PERMISSION_DENIED" });
    expect(await refusal(bound.getSandbox({ sandboxId, name: "web" }))).toMatchObject({ reason: "INVALID_ARGUMENT" });
  });

  it("imports a template, header first", async () => {
    const server = createServer();
    async function* upload() {
      yield { part: { case: "header" as const, value: { name: "py" } } };
      for (const text of ["one", "two"])
        yield { part: { case: "data" as const, value: Buffer.from(await Promise.resolve(text)) } };
    }
    async function* headless() {
      yield { part: { case: "data" as const, value: Buffer.from(await Promise.resolve("x")) } };
    }
    const imported = await server.sandboxes().importTemplate(upload());
    expect(imported).toMatchObject({ hosts: 1, template: { name: "py", sizeBytes: 6n } });
    expect((await server.sandboxes().listTemplates({})).templates).toHaveLength(1);
    expect(await refusal(server.sandboxes().importTemplate(headless()))).toMatchObject({ field: "header" });
    expect(await refusal(server.sandboxes(server.tokenOf("t1")).importTemplate(upload()))).toMatchObject({
      reason: "PERMISSION_DENIED",
    });
  });

  it("tells what sandboxes can do", async () => {
    expect((await createServer().sandboxes().getCapabilities({})).capabilities).toMatchObject({
      snapshots: true,
      storage: "fake",
    });
  });

  it("forks a sandbox, one child where no number is given, with a result for each", async () => {
    const server = createServer();
    const { sandboxId } = await server.sandboxes().createSandbox({ name: "web", labels: { app: "x" } });
    const one = await server.sandboxes().forkSandbox({ sandboxId });
    expect(one.results).toMatchObject([
      { result: { case: "sandbox", value: { name: "", session: { labels: { app: "x" } } } }, message: "" },
    ]);
    server.control.setCapabilities({ concurrentSandboxes: 3 });
    const { results } = await server.sandboxes().forkSandbox({ sandboxId, count: 2, labels: { app: "y" } });
    expect(results).toMatchObject([
      { result: { case: "sandbox", value: { session: { labels: { app: "y" }, generation: 1 } } } },
      { result: { case: "reason", value: "MAX_SESSIONS_REACHED" }, message: "the fake is full" },
    ]);
    const child = results[0]?.result;
    if (child?.case !== "sandbox") throw new Error("there is no child");
    const connected = await server.sandboxes().connectSandbox({ sandboxId: child.value.sandboxId });
    expect(server.verifier.verify(new Secret(connected.token)).sandbox).toBe(child.value.session?.sessionId);
  });

  it.each<[string, Parameters<Client<typeof SandboxControlService>["forkSandbox"]>[0]]>([
    ["count", { count: 101 }],
    ["labels", { labels: { "": "x" } }],
    ["snapshot_id", { snapshotId: "s".repeat(129) }],
    ["idempotency_key", { idempotencyKey: "k".repeat(257) }],
  ])("refuses a fork with a wrong %s by its name", async (field, request) => {
    expect(
      await refusal(
        createServer()
          .sandboxes()
          .forkSandbox({ sandboxId: "s1", ...request }),
      ),
    ).toMatchObject({
      reason: "INVALID_ARGUMENT",
      field,
    });
  });

  it("forks nothing for a token of another sandbox or another tenant", async () => {
    const server = createServer();
    const { sandboxId } = await server.sandboxes(server.tokenOf("t1")).createSandbox({});
    const other = server.sandboxes(server.tokenOf("t1", { sandbox: "s1" }));
    expect(await refusal(other.forkSandbox({ sandboxId }))).toMatchObject({ reason: "PERMISSION_DENIED" });
    const stranger = server.sandboxes(server.tokenOf("t2"));
    expect(await refusal(stranger.forkSandbox({ sandboxId }))).toMatchObject({ reason: "SANDBOX_NOT_FOUND" });
    expect(server.control.sandboxIds()).toHaveLength(1);
  });

  it("passes the times of a sandbox and what happens at their end on", async () => {
    const { sandbox } = await createServer()
      .sandboxes()
      .createSandbox({ ttl: { seconds: 60n }, idleTimeout: { seconds: 5n }, onTimeout: OnTimeout.PAUSE });
    expect(sandbox?.session).toMatchObject({ idleTimeout: { seconds: 5n }, onTimeout: OnTimeout.PAUSE });
    expect(sandbox?.session?.expiresAt).toBeDefined();
  });

  it("launches a process, tells how it is, and signals it", async () => {
    const sandboxes = createServer().sandboxes();
    const { sandboxId } = await sandboxes.createSandbox({});
    const { process } = await sandboxes.launchProcess({ sandboxId, binary: "server", args: ["-v"], exposePort: 80 });
    expect(process).toMatchObject({ state: ProcessState.RUNNING, address: "127.0.0.1:80" });
    const ref = { sandboxId, processId: process?.processId ?? "" };
    expect((await sandboxes.getProcessStatus(ref)).process).toEqual(process);
    await sandboxes.killProcess({ ...ref, signal: 9 });
    expect((await sandboxes.getProcessStatus(ref)).process).toMatchObject({ state: ProcessState.EXITED });
  });

  it("refuses a process without a program, a port or a signal that does not exist", async () => {
    const sandboxes = createServer().sandboxes();
    const { sandboxId } = await sandboxes.createSandbox({});
    const wrong = { reason: "INVALID_ARGUMENT" };
    expect(await refusal(sandboxes.launchProcess({ sandboxId }))).toMatchObject(wrong);
    expect(await refusal(sandboxes.launchProcess({ sandboxId, binary: "x", exposePort: 65_536 }))).toMatchObject(wrong);
    expect(await refusal(sandboxes.killProcess({ sandboxId, processId: "p", signal: 65 }))).toMatchObject(wrong);
    const unknown = { reason: "PROCESS_NOT_FOUND" };
    expect(await refusal(sandboxes.getProcessStatus({ sandboxId, processId: "p" }))).toMatchObject(unknown);
  });
});
