import { createServer } from "node:http2";
import { createServer as createNetServer, type Socket } from "node:net";
import type { ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { describe, expect, it } from "@jest/globals";
import { Secret, systemClock } from "@turnbox/core";
import { HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { SessionService, SessionState } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type { ControlCall, CreateSandboxRequest } from "../control/sandbox-control.ts";
import { createHostTransport, HOST_TRANSPORT_TIMES } from "./host-transport.ts";
import { listenOn } from "./listen-on.suite.ts";
import { createNodeSandboxControl } from "./node-sandbox-control.ts";
import { startSilentProxy } from "./silent-proxy.suite.ts";

const CALL: ControlCall = { signal: new AbortController().signal, tenant: "t1" };
const CREATE: CreateSandboxRequest = {
  idempotencyKey: "k1",
  labels: {},
  template: "",
  resources: {},
  lifetime: {},
  env: {},
};
const TIMES = { connectTimeoutMs: 300, pingIntervalMs: 200, pingTimeoutMs: 200 };
/** The times above together, five times over: the machine may be busy. */
const NOTICED_MS = 5 * 400;

/** A host behind a proxy that can fall silent. Creates never end by themselves. */
async function start() {
  const stack = new AsyncDisposableStack();
  const creates: unknown[] = [];
  const arrived = Promise.withResolvers<undefined>();
  const routes = (router: ConnectRouter): void => {
    router.service(SessionService, {
      getSession: ({ sessionId }) => ({ session: { sessionId, state: SessionState.ACTIVE, generation: 1 } }),
      createSession: (request) => {
        creates.push(request);
        arrived.resolve(undefined);
        return new Promise(() => undefined);
      },
    });
    router.service(HostService, {
      getCapabilities: () => ({ capabilities: { snapshots: true, storage: "zfs" } }),
      importTemplate: async (parts) => {
        try {
          for await (const _ of parts) arrived.resolve(undefined);
        } catch {
          // The test ends the connection under it.
        }
        return {};
      },
    });
  };
  const server = createServer(connectNodeAdapter({ routes }));
  const proxy = stack.use(await startSilentProxy(await listenOn(server)));
  stack.defer(() => {
    server.close();
  });
  let passedMs = 0;
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + passedMs };
  const transport = createHostTransport(proxy.url, { times: TIMES, clock });
  const control = stack.use(createNodeSandboxControl({ url: proxy.url, tokenFor: () => new Secret("t"), transport }));
  /** Lets time pass for the line alone, at once. */
  const pass = (ms: number): void => {
    passedMs += ms;
  };
  return { proxy, control, creates, pass, arrived: arrived.promise, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

async function timed<T>(work: Promise<T>): Promise<{ readonly result: T; readonly tookMs: number }> {
  const begunMs = performance.now();
  return { result: await work, tookMs: performance.now() - begunMs };
}

describe("a connection that is dead without a word", () => {
  it("is noticed within 20 seconds, and before the shortest deadline of a call", () => {
    const { connectTimeoutMs, pingIntervalMs, pingTimeoutMs } = HOST_TRANSPORT_TIMES;
    expect(pingIntervalMs + pingTimeoutMs).toBeLessThan(10_000);
    expect(pingIntervalMs + pingTimeoutMs + connectTimeoutMs).toBeLessThanOrEqual(20_000);
  });

  it("is replaced under a read, which is answered over another one", async () => {
    await using world = await start();
    await world.control.getSandbox({ sandboxId: "s1" }, CALL);
    world.proxy.goSilent();
    const { result, tookMs } = await timed(world.control.getSandbox({ sandboxId: "s1" }, CALL));
    expect(result).toMatchObject({ sandboxId: "s1", capabilities: { storage: "zfs" } });
    expect(tookMs).toBeLessThan(NOTICED_MS);
    expect(world.proxy.connections).toBe(2);
  });

  it("ends a create that is under way, which is not sent a second time and may have been done", async () => {
    await using world = await start();
    await world.control.getSandbox({ sandboxId: "s1" }, CALL);
    const create = world.control.createSandbox(CREATE, CALL).catch((error: unknown) => error);
    await world.arrived;
    world.proxy.goSilent();
    const { result, tookMs } = await timed(create);
    expect(result).toMatchObject({ reason: "HOST_UNREACHABLE", admitted: "unknown" });
    expect(tookMs).toBeLessThan(NOTICED_MS);
    expect(world.creates).toHaveLength(1);
  });

  it("ends a stream, which has no deadline of its own (D25)", async () => {
    await using world = await start();
    const endless = async function* () {
      yield Buffer.from("first");
      await new Promise(() => undefined);
    };
    const stream = world.control
      .importTemplate({ idempotencyKey: "k", name: "py", archive: endless() }, CALL)
      .catch((error: unknown) => error);
    await world.arrived;
    world.proxy.goSilent();
    const { result, tookMs } = await timed(stream);
    expect(result).toMatchObject({ reason: "HOST_UNREACHABLE", admitted: "unknown" });
    expect(tookMs).toBeLessThan(NOTICED_MS);
  });

  it("fails all the calls on it where there is no other one, and nothing else", async () => {
    await using world = await start();
    await world.control.getSandbox({ sandboxId: "s1" }, CALL);
    world.proxy.goAway();
    const reads = Array.from({ length: 20 }, async (_, index) => {
      // Some come while it is being asked whether it is there, some while another one is being made.
      await new Promise((resolve) => setTimeout(resolve, index * 40));
      return await world.control.getSandbox({ sandboxId: "s1" }, CALL).catch((error: unknown) => error);
    });
    const unreachable: unknown = expect.objectContaining({ reason: "HOST_UNREACHABLE" });
    expect(await Promise.all(reads)).toEqual(reads.map(() => unreachable));
  });

  it("is checked before it is used again after a pause", async () => {
    await using world = await start();
    await world.control.getSandbox({ sandboxId: "s1" }, CALL);
    world.proxy.goSilent();
    world.pass(TIMES.pingIntervalMs * 1.5);
    const created = world.control.createSandbox(CREATE, CALL).catch((error: unknown) => error);
    await world.arrived;
    expect(world.proxy.connections).toBe(2);
    await world.control[Symbol.asyncDispose]();
    expect(await created).toMatchObject({ reason: "HOST_UNREACHABLE" });
  });
});

describe("a host that takes no connections", () => {
  it("is given up after the time for a connection, and nothing was admitted", async () => {
    const sockets: Socket[] = [];
    const server = createNetServer((socket) => {
      socket.on("error", () => undefined);
      sockets.push(socket);
    });
    const url = `https://127.0.0.1:${await listenOn(server)}`;
    await using control = createNodeSandboxControl({
      url,
      tokenFor: () => new Secret("t"),
      transport: createHostTransport(url, { times: TIMES }),
    });
    const { result, tookMs } = await timed(control.createSandbox(CREATE, CALL).catch((error: unknown) => error));
    expect(result).toMatchObject({ reason: "HOST_UNREACHABLE", admitted: "no" });
    expect(tookMs).toBeLessThan(NOTICED_MS);
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
});
