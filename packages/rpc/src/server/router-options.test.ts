import { Code, ConnectError, type ConnectRouter, createClient, createRouterTransport } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { Health } from "@turnbox/protocol/health/v1/health_pb";
import { ErrorDetailSchema } from "@turnbox/protocol/turnbox/common/v1/error_pb";
import { FileService } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import { HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { SandboxError, Secret } from "@turnbox/core";
import { createManualClock, createTestAccess } from "@turnbox/core/testing";
import { fromConnectError } from "../wire/connect-error.ts";
import { ANYBODY, createAdmission, DEFAULT_ADMISSION_LIMITS } from "./admission/admission.ts";
import { principalOf, requestIdOf } from "./call-context.ts";
import { createHealthBoard } from "./health.ts";
import { createRouterOptions, type ServerPolicy } from "./router-options.ts";

function createServer(routes: (router: ConnectRouter) => void, changes: Partial<ServerPolicy> = {}) {
  const clock = createManualClock();
  const access = createTestAccess({ clock });
  const admission = changes.admission ?? createAdmission(DEFAULT_ADMISSION_LIMITS, clock);
  const router = createRouterOptions({ verifier: access.verifier, log: access.log, clock, admission, ...changes });
  const transport = (token?: Secret) =>
    createRouterTransport(routes, { router, transport: { interceptors: [access.bearer(token)] } });
  return { clock, access, admission, transport };
}

const failureOf = async (call: Promise<unknown>): Promise<SandboxError> => {
  try {
    await call;
  } catch (thrown) {
    return fromConnectError(thrown);
  }
  throw new Error("the call succeeded");
};

const until = async (condition: () => boolean): Promise<void> => {
  for (const endMs = performance.now() + 5000; !condition(); ) {
    if (performance.now() > endMs) throw new Error("waited in vain");
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
};

describe("who may call", () => {
  const routes = (router: ConnectRouter): void => {
    router.service(SessionService, {
      getSession: ({ sessionId }, context) => ({
        session: { sessionId: `${sessionId} for ${principalOf(context).tenant}` },
      }),
      listSessions: () => ({}),
    });
    router.service(HostService, { getStats: () => ({}) });
    router.service(FileService, {
      writeFile: async (parts) => {
        for await (const part of parts) expect(part).toBeDefined();
        return {};
      },
    });
    createHealthBoard().register(router);
  };
  const server = createServer(routes);
  const sessions = (token?: Secret) => createClient(SessionService, server.transport(token));

  it("needs no token for health and one for the rest", async () => {
    await createClient(Health, server.transport()).check({});
    expect((await failureOf(sessions().getSession({ sessionId: "s1" }))).reason).toBe("UNAUTHENTICATED");
  });

  it("checks a bounded number of wrong tokens for each peer, and goes on to serve known ones", async () => {
    const { access, clock, transport } = createServer(routes);
    const other = createTestAccess({ clock });
    const ask = (token: Secret) => createClient(SessionService, transport(token)).getSession({ sessionId: "s1" });
    const known = access.sign({});
    await ask(known);
    const reasons = new Map<string, number>();
    for (let count = 0; count < 1010; count += 1) {
      const { reason } = await failureOf(ask(other.sign({})));
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
    }
    expect(Object.fromEntries(reasons)).toEqual({ UNAUTHENTICATED: 1000, RATE_LIMITED: 10 });
    await ask(known);
    expect(await failureOf(ask(access.sign({ tenant: "late" })))).toMatchObject({
      reason: "RATE_LIMITED",
      retryAfterMs: 2,
    });
    await clock.advance(2);
    // Right ones do not count.
    for (let count = 0; count < 3; count += 1) await ask(access.sign({ tenant: `late-${count}` }));
  });

  it("hands the caller to the handler", async () => {
    const token = server.access.sign({ tenant: "acme" });
    const { session } = await sessions(token).getSession({ sessionId: "s1" });
    expect(session?.sessionId).toBe("s1 for acme");
    expect((await sessions(server.access.homeToken).getSession({ sessionId: "s1" })).session?.sessionId).toBe(
      "s1 for default",
    );
  });

  it("answers the same for a sandbox that is absent and one that is another's (attack 58)", async () => {
    const bound = sessions(server.access.sign({ sandbox: "s1" }));
    await bound.getSession({ sessionId: "s1" });
    const answers = await Promise.all(
      ["s2", "absent", ""].map((sessionId) => failureOf(bound.getSession({ sessionId }))),
    );
    expect(new Set(answers.map(({ reason, message }) => `${reason} ${message}`)).size).toBe(1);
    expect(answers[0]?.reason).toBe("PERMISSION_DENIED");
  });

  it("keeps tokens to their verbs, and sandbox tokens from tenant and host (attacks 57, 59)", async () => {
    const { sign } = server.access;
    const denied = [
      sessions(sign({ verbs: ["execute"] })).getSession({ sessionId: "s1" }),
      sessions(sign({ sandbox: "s1" })).listSessions({}),
      createClient(HostService, server.transport(sign({ sandbox: "s1" }))).getStats({}),
      createClient(HostService, server.transport(sign())).getStats({}),
    ];
    for (const call of denied) expect((await failureOf(call)).reason).toBe("PERMISSION_DENIED");
    await createClient(HostService, server.transport(sign({ tenant: "*" }))).getStats({});
  });

  it("checks the session of an upload in its header, and in every later one", async () => {
    const files = createClient(FileService, server.transport(server.access.sign({ sandbox: "s1" })));
    const header = (sessionId: string) => ({ part: { case: "header" as const, value: { sessionId, path: "/a" } } });
    const data = { part: { case: "data" as const, value: new Uint8Array(1) } };
    const send = async (
      ...parts: Parameters<typeof files.writeFile>[0] extends AsyncIterable<infer P> ? P[] : never
    ) => {
      await files.writeFile(
        (async function* () {
          yield* await Promise.resolve(parts);
        })(),
      );
    };
    await send(header("s1"), data);
    for (const parts of [[header("s2")], [data], [header("s1"), data, header("s2")]]) {
      expect((await failureOf(send(...parts))).reason).toBe("PERMISSION_DENIED");
    }
  });

  it("refuses an expired token when time has passed", async () => {
    const token = server.access.sign({ lifetimeMs: 1000 });
    await sessions(token).getSession({ sessionId: "s1" });
    await server.clock.advance(10_000);
    expect((await failureOf(sessions(token).getSession({ sessionId: "s1" }))).message).toContain("expired");
  });
});

describe("what a failed call answers", () => {
  const cause = new Error("open /srv/secret/file: EACCES");
  const server = createServer((router) => {
    router.service(SessionService, {
      getSession: ({ sessionId }, context) => {
        if (sessionId === "internal") throw cause;
        if (sessionId === "connect") throw new ConnectError("/srv/secret", Code.Unknown);
        if (sessionId === "id") return { session: { sessionId: requestIdOf(context) } };
        throw new SandboxError("SESSION_NOT_FOUND", "no such session", { metadata: { sessionId } });
      },
      async *watchSessions() {
        yield await Promise.resolve({});
        throw cause;
      },
    });
  });
  const sessions = createClient(SessionService, server.transport(server.access.homeToken));

  it("carries the reason, code and metadata of the table", async () => {
    expect(await failureOf(sessions.getSession({ sessionId: "s9" }))).toMatchObject({
      reason: "SESSION_NOT_FOUND",
      metadata: { sessionId: "s9" },
    });
  });

  it("keeps the cause of an unexpected failure in the log, under the request's id", async () => {
    for (const sessionId of ["internal", "connect"]) {
      const thrown = await sessions.getSession({ sessionId }).catch((error: unknown) => error);
      expect(JSON.stringify((thrown as ConnectError).rawMessage)).not.toContain("secret");
      const detail = (thrown as ConnectError).findDetails(ErrorDetailSchema)[0];
      expect(detail).toMatchObject({ reason: "INTERNAL" });
      const line = server.access.logLines.find((text) => text.includes(detail?.requestId ?? "none"));
      expect(line).toContain("/srv/secret");
      expect(line).toContain("SessionService/GetSession");
    }
  });

  it("covers what a stream throws after its first message", async () => {
    const read = async (): Promise<void> => {
      for await (const event of sessions.watchSessions({})) expect(event).toBeDefined();
    };
    expect(await failureOf(read())).toMatchObject({ reason: "INTERNAL", message: "an unexpected failure" });
  });

  it("names methods that are not implemented", async () => {
    expect((await failureOf(sessions.listSessions({}))).reason).toBe("UNIMPLEMENTED");
  });

  it("echoes a sane request id and replaces others", async () => {
    const idFor = async (sent: string): Promise<[string, string]> => {
      let echoed = "";
      const { session } = await sessions.getSession(
        { sessionId: "id" },
        { headers: { "x-request-id": sent }, onHeader: (header) => (echoed = header.get("x-request-id") ?? "") },
      );
      return [session?.sessionId ?? "", echoed];
    };
    expect(await idFor("trace-1.a")).toEqual(["trace-1.a", "trace-1.a"]);
    for (const bad of ["-x", "a b", "a".repeat(65), '{"level":"fatal"}']) {
      const [seen, echoed] = await idFor(bad);
      expect(seen).toBe(echoed);
      expect(seen).toMatch(/^[0-9a-f-]{36}$/);
    }
  });

  it("logs a flood of failures at a bounded rate (attack 35)", async () => {
    const before = server.access.logLines.length;
    await Promise.all(Array.from({ length: 300 }, () => failureOf(sessions.getSession({ sessionId: "internal" }))));
    expect(server.access.logLines.length - before).toBeLessThanOrEqual(20);
  });
});

describe("how much is admitted", () => {
  const LIMITS = {
    ...DEFAULT_ADMISSION_LIMITS,
    maxUnaryCalls: 3,
    maxStreams: 2,
    maxReservedCalls: 3,
    maxCallsPerTenant: 2,
    maxReservedPerTenant: 2,
    maxAnonymousCalls: 1,
  };

  function createBusyServer(limits = LIMITS) {
    const releases: (() => void)[] = [];
    const clock = createManualClock();
    const admission = createAdmission(limits, clock);
    const server = createServer(
      (router) => {
        router.service(ToolService, {
          executeTool: async () => {
            await new Promise<void>((resolve) => releases.push(resolve));
            return {};
          },
          async *executeToolStream(_request, { signal }) {
            yield {};
            await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
          },
        });
        router.service(SessionService, {
          destroySession: async ({ sessionId }) => {
            if (sessionId === "slow") await new Promise<void>((resolve) => releases.push(resolve));
            return {};
          },
          getSession: () => ({}),
        });
        createHealthBoard().register(router);
      },
      { admission, clock },
    );
    return { ...server, clock, releases };
  }

  it("refuses what does not fit at once, with a time to come back, and goes on afterwards", async () => {
    const { transport, access, admission, releases } = createBusyServer();
    const acme = createClient(ToolService, transport(access.sign()));
    const other = createClient(ToolService, transport(access.sign({ tenant: "other" })));
    const running = [acme.executeTool({}), acme.executeTool({})];
    await until(() => releases.length === 2);
    expect(await failureOf(acme.executeTool({}))).toMatchObject({
      reason: "OVERLOADED",
      retryable: true,
      retryAfterMs: 1000,
      admitted: "no",
    });
    running.push(other.executeTool({}));
    await until(() => releases.length === 3);
    expect((await failureOf(other.executeTool({}))).reason).toBe("OVERLOADED");
    for (const release of releases) release();
    await Promise.all(running);
    expect(admission.inFlight.unary).toBe(0);
  });

  it("keeps room for destroy while data takes all there is", async () => {
    const { transport, access, releases } = createBusyServer();
    const tools = createClient(ToolService, transport(access.homeToken));
    const running = [tools.executeTool({}), tools.executeTool({})];
    await until(() => releases.length === 2);
    await createClient(SessionService, transport(access.homeToken)).destroySession({ sessionId: "s1" });
    for (const release of releases) release();
    await Promise.all(running);
  });

  it("keeps room for destroy and health while callers without a token watch health (attack 50)", async () => {
    const { transport, access, admission } = createBusyServer();
    const anybody = createClient(Health, transport());
    const controller = new AbortController();
    const watches = Array.from({ length: 20 }, () => anybody.watch({}, { signal: controller.signal }));
    const opened = await Promise.allSettled(watches.map((watch) => watch[Symbol.asyncIterator]().next()));
    expect(opened.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(admission.inFlight).toEqual({ unary: 0, stream: 1, reserved: 0 });
    await createClient(SessionService, transport(access.homeToken)).destroySession({ sessionId: "s1" });
    await anybody.check({});
    const stream = createClient(ToolService, transport(access.homeToken)).executeToolStream(
      {},
      { signal: controller.signal },
    );
    expect((await stream[Symbol.asyncIterator]().next()).done).toBe(false);
    controller.abort();
    await until(() => admission.inFlight.stream === 0);
  });

  it("keeps the reserved room of those with a token apart from that of everybody else, and from each other's", async () => {
    const clock = createManualClock();
    const admission = createAdmission(LIMITS, clock);
    const reserve = (tenant: string) => admission.admit({ lane: "reserved", kind: "unary", tenant });
    reserve(ANYBODY);
    expect(() => reserve(ANYBODY)).toThrow(expect.objectContaining({ reason: "OVERLOADED" }));
    reserve("acme");
    const { transport, access, releases } = createBusyServer();
    const acme = createClient(SessionService, transport(access.sign()));
    const running = [acme.destroySession({ sessionId: "slow" }), acme.destroySession({ sessionId: "slow" })];
    await until(() => releases.length === 2);
    expect((await failureOf(acme.destroySession({ sessionId: "s1" }))).reason).toBe("OVERLOADED");
    const other = transport(access.sign({ tenant: "other" }));
    await createClient(SessionService, other).destroySession({ sessionId: "s1" });
    for (const release of releases) release();
    await Promise.all(running);
  });

  it("takes a public call with a token on its holder's account, and one with a bad token on everybody's", async () => {
    const { transport, access, admission } = createBusyServer({ ...LIMITS, maxAnonymousCalls: 0 });
    await createClient(Health, transport(access.sign())).check({});
    for (const token of [undefined, new Secret("not-a-token")]) {
      expect((await failureOf(createClient(Health, transport(token)).check({}))).reason).toBe("OVERLOADED");
    }
    expect(admission.inFlight.reserved).toBe(0);
  });

  it("counts the work of a call whose caller went away until it is over (attack 50)", async () => {
    const { transport, access, admission, releases } = createBusyServer();
    const tools = createClient(ToolService, transport(access.homeToken));
    for (let reset = 0; reset < 50; reset += 1) {
      const controller = new AbortController();
      const call = failureOf(tools.executeTool({}, { signal: controller.signal }));
      await new Promise((resolve) => setImmediate(resolve));
      controller.abort();
      await call;
    }
    expect(releases.length).toBe(2);
    expect(admission.inFlight.unary).toBe(2);
    for (const release of releases) release();
    await until(() => admission.inFlight.unary === 0);
  });

  it("gives the place of a stream back when its reader leaves", async () => {
    const { transport, access, admission } = createBusyServer();
    const tools = createClient(ToolService, transport(access.homeToken));
    const controller = new AbortController();
    const stream = tools.executeToolStream({}, { signal: controller.signal })[Symbol.asyncIterator]();
    await stream.next();
    expect(admission.inFlight.stream).toBe(1);
    controller.abort();
    await failureOf(stream.next());
    await until(() => admission.inFlight.stream === 0);
  });

  it("limits the rate of each tenant by itself, and says how long to wait", async () => {
    const rate = { perSecond: 10, burst: 2 };
    const { transport, access, clock } = createBusyServer({ ...LIMITS, rate });
    const acme = createClient(SessionService, transport(access.sign()));
    const other = createClient(SessionService, transport(access.sign({ tenant: "other" })));
    await acme.getSession({ sessionId: "a" });
    await acme.getSession({ sessionId: "a" });
    expect(await failureOf(acme.getSession({ sessionId: "a" }))).toMatchObject({
      reason: "RATE_LIMITED",
      retryAfterMs: 100,
    });
    await other.getSession({ sessionId: "a" });
    await acme.destroySession({ sessionId: "a" });
    await clock.advance(100);
    await acme.getSession({ sessionId: "a" });
  });

  it("gives the place of a refused call back", async () => {
    const { transport, access, admission } = createBusyServer();
    const bound = createClient(SessionService, transport(access.sign({ sandbox: "s1" })));
    for (let call = 0; call < 10; call += 1) {
      expect((await failureOf(bound.getSession({ sessionId: "s2" }))).reason).toBe("PERMISSION_DENIED");
    }
    expect(admission.inFlight.unary).toBe(0);
  });
});

describe("how long a call may take", () => {
  const server = createServer(
    (router) => {
      router.service(ToolService, {
        executeTool: async ({ toolCallId }, { signal }) => {
          if (toolCallId === "deaf") await new Promise(() => undefined);
          await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
          throw signal.reason as Error;
        },
        async *executeToolStream(_request, { signal }) {
          yield {};
          await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        },
      });
    },
    { deadlines: { defaultUnaryMs: 1000, maxUnaryMs: 5000 } },
  );
  const tools = createClient(ToolService, server.transport(server.access.homeToken));

  it.each(["", "deaf"])(
    "ends a unary call without a deadline at the server's default, even a handler that is %p to it (attack 53)",
    async (toolCallId) => {
      const call = failureOf(tools.executeTool({ toolCallId }));
      await until(() => server.clock.sleeping > 0);
      await server.clock.advance(1000);
      expect(await call).toMatchObject({ reason: "DEADLINE_EXCEEDED", admitted: "unknown" });
    },
  );

  it("caps a deadline that is too long", async () => {
    const call = failureOf(tools.executeTool({}, { headers: { "connect-timeout-ms": "9999999" } }));
    await until(() => server.clock.sleeping > 0);
    await server.clock.advance(5000);
    expect((await call).reason).toBe("DEADLINE_EXCEEDED");
  });

  it("keeps a caller's shorter deadline", async () => {
    expect((await failureOf(tools.executeTool({ toolCallId: "deaf" }, { timeoutMs: 20 }))).reason).toBe(
      "DEADLINE_EXCEEDED",
    );
  });

  it("leaves streams alone (D25)", async () => {
    const controller = new AbortController();
    const stream = tools.executeToolStream({}, { signal: controller.signal })[Symbol.asyncIterator]();
    await stream.next();
    await server.clock.advance(24 * 3_600_000);
    const pending = stream.next().then(
      () => "ended",
      () => "ended",
    );
    expect(await Promise.race([pending, new Promise((resolve) => setTimeout(resolve, 30, "open"))])).toBe("open");
    controller.abort();
    await pending;
  });

  it("ends calls at shutdown with the reason it is given", async () => {
    const shutdown = new AbortController();
    const stopping = createServer(
      (router) => {
        router.service(ToolService, { executeTool: async () => await new Promise(() => undefined) });
      },
      { shutdownSignal: shutdown.signal },
    );
    const call = failureOf(createClient(ToolService, stopping.transport(stopping.access.homeToken)).executeTool({}));
    await until(() => stopping.admission.inFlight.unary === 1);
    shutdown.abort(new SandboxError("SHUTTING_DOWN", "the server is stopping"));
    expect((await call).reason).toBe("SHUTTING_DOWN");
    const later = createClient(ToolService, stopping.transport(stopping.access.homeToken));
    expect((await failureOf(later.executeTool({}))).reason).toBe("SHUTTING_DOWN");
    expect((await failureOf(later.executeToolStream({})[Symbol.asyncIterator]().next())).reason).toBe("SHUTTING_DOWN");
  });
});
