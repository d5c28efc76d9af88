import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createRouterTransport, type Interceptor } from "@connectrpc/connect";
import { SandboxError, toConnectError } from "@turnbox/core";
import { HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { SessionService, SessionState } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { SnapshotKind, SnapshotService } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import { ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { connectHost, type HostClients } from "../../client.ts";
import { withSandboxErrors } from "../../sandbox-error-transport.ts";
import { createFakeSessions, type FakeSession, type FakeSessions } from "./fake-sessions.suite.ts";
import { createFakeToolCalls } from "./fake-tool-calls.suite.ts";

export interface FakeHostCapabilities {
  snapshots: boolean;
  rollback: boolean;
  tierRouting: boolean;
  storage: string;
  runtime: string;
}

/** A sandbox-host in memory. */
export interface FakeHost {
  readonly provider: FakeSessions;
  readonly clients: HostClients;
  /** The methods that were called, in order. */
  readonly methods: string[];
  capabilities: FakeHostCapabilities;
  /** What CreateSession says, where that is not what GetCapabilities says. */
  capabilitiesOnCreate: FakeHostCapabilities | undefined;
  /** Streams of tools break after so many messages, one after the other. */
  readonly breakAfter: number[];
  /** The next answers of these methods get lost after the work is done. */
  readonly lostAnswers: string[];
  /** Methods that never answer. */
  readonly silent: Set<string>;
}

export const ZFS_GVISOR: FakeHostCapabilities = {
  snapshots: true,
  rollback: true,
  tierRouting: true,
  storage: "zfs",
  runtime: "gvisor",
};

const STATES = {
  creating: SessionState.CREATING,
  active: SessionState.ACTIVE,
  paused: SessionState.PAUSED,
  destroying: SessionState.DESTROYING,
  failed: SessionState.FAILED,
} as const;

const toWire = ({ id, state, labels, generation }: FakeSession) => ({
  sessionId: id,
  state: STATES[state],
  labels: { ...labels },
  generation,
});

export function createFakeHost(provider: FakeSessions = createFakeSessions()): FakeHost {
  const fake = {
    provider,
    methods: [] as string[],
    capabilities: ZFS_GVISOR,
    capabilitiesOnCreate: undefined as FakeHostCapabilities | undefined,
    breakAfter: [] as number[],
    lostAnswers: [] as string[],
    silent: new Set<string>(),
  };
  const offered = (given: FakeHostCapabilities) => ({ pause: true, streamingProgress: true, ...given });
  const madeBy = new Map<string, string>();
  const toolCalls = createFakeToolCalls(provider, () => fake.breakAfter.shift());

  const transport = createRouterTransport(
    (router) => {
      router.service(HostService, { getCapabilities: () => ({ capabilities: offered(fake.capabilities) }) });
      router.service(SessionService, {
        createSession: ({ sessionId, base, labels, idempotencyKey }) => {
          const known = madeBy.get(idempotencyKey);
          const session =
            known === undefined
              ? provider.create({ sessionId, labels, ...(base === "" ? {} : { baseImage: base }) })
              : provider.get(known);
          madeBy.set(idempotencyKey, session.id);
          return { session: toWire(session), capabilities: offered(fake.capabilitiesOnCreate ?? fake.capabilities) };
        },
        getSession: ({ sessionId }) => ({ session: toWire(provider.get(sessionId)) }),
        pauseSession: async ({ sessionId }) => {
          await provider.pause(sessionId);
          return {};
        },
        resumeSession: ({ sessionId }) => {
          provider.resume(sessionId);
          return {};
        },
        destroySession: ({ sessionId }) => {
          provider.destroy(sessionId);
          return {};
        },
      });
      router.service(SnapshotService, {
        createSnapshot: ({ sessionId, name }) => ({
          snapshot: {
            snapshotId: provider.snapshot(sessionId),
            kind: SnapshotKind.NAMED,
            name,
            createdAt: timestampFromMs(1),
          },
        }),
        rollbackSession: ({ sessionId, snapshotId }) => {
          provider.rollback(sessionId, snapshotId);
          return {};
        },
      });
      router.service(ToolService, toolCalls);
    },
    { transport: { interceptors: [createTrouble(fake)] }, router: { interceptors: [tellErrors] } },
  );
  const clients = connectHost({
    url: "http://127.0.0.1:7999",
    token: "token",
    connect: ({ url }, peer) => ({
      transport: withSandboxErrors(transport, { peer, url }),
      close: () => undefined,
      [Symbol.dispose]: () => undefined,
    }),
  });
  return Object.assign(fake, { clients });
}

const tellErrors: Interceptor = (next) => async (request) => {
  try {
    return await next(request);
  } catch (thrown) {
    throw thrown instanceof SandboxError ? toConnectError(thrown, "r1") : thrown;
  }
};

/** Counts the calls and loses answers. */
const createTrouble =
  (fake: Pick<FakeHost, "methods" | "lostAnswers" | "silent">): Interceptor =>
  (next) =>
  async (request) => {
    fake.methods.push(request.method.name);
    if (fake.silent.has(request.method.name)) {
      await new Promise<never>((_, reject) => {
        request.signal.addEventListener("abort", () => reject(new ConnectError("cancelled", Code.Canceled)));
      });
    }
    const response = await next(request);
    const lost = fake.lostAnswers.indexOf(request.method.name);
    if (lost < 0) return response;
    fake.lostAnswers.splice(lost, 1);
    throw new ConnectError("the connection broke", Code.Unavailable);
  };
