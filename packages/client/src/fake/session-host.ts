import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createRouterTransport, type Interceptor } from "@connectrpc/connect";
import { SandboxError } from "@turnbox/core";
import { toConnectError } from "@turnbox/rpc/wire";
import { HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { SessionService, SessionState } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { SnapshotKind, SnapshotService } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import { ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { connectHost, type HostClients } from "../client.ts";
import { withSandboxErrors } from "../sandbox-error-transport.ts";
import type { SandboxState } from "../sandbox/sandbox-info.ts";
import { createFakeToolCalls, type FakeTools } from "./fake-tool-calls.ts";

export interface FakeHostCapabilities {
  snapshots: boolean;
  rollback: boolean;
  tierRouting: boolean;
  storage: string;
  runtime: string;
}

/** A session of a host in memory. */
export interface HostedSession {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly state: SandboxState;
  readonly generation: number;
}

/** What a host in memory keeps its sessions in. */
export interface SessionProvider extends FakeTools {
  create(config: {
    readonly sessionId: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly baseImage?: string;
  }): HostedSession;
  get(id: string): HostedSession;
  pause(id: string): Promise<void>;
  resume(id: string): void;
  destroy(id: string): void;
  snapshot(id: string): string;
  rollback(id: string, snapshotId: string): void;
}

/** A sandbox-host in memory. */
export interface FakeHost<P extends SessionProvider> {
  readonly provider: P;
  readonly clients: HostClients;
  /** The methods that were called, in order. */
  readonly methods: string[];
  capabilities: FakeHostCapabilities;
  /** What CreateSession says, if that is not what GetCapabilities says. */
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

const toWire = ({ id, state, labels, generation }: HostedSession) => ({
  sessionId: id,
  state: STATES[state],
  labels: { ...labels },
  generation,
});

export function createSessionHost<P extends SessionProvider>(provider: P): FakeHost<P> {
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
  (fake: Pick<FakeHost<SessionProvider>, "methods" | "lostAnswers" | "silent">): Interceptor =>
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
