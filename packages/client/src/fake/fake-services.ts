import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { SandboxError } from "@turnbox/core";
import { toConnectError } from "@turnbox/rpc/wire";
import { FleetService } from "@turnbox/protocol/turnbox/control/v1/fleet_pb";
import {
  type CreateSandboxRequest,
  type ForkSandboxRequest,
  type Sandbox,
  SandboxControlService,
  SandboxSchema,
} from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { HealthStatus, HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { type NetworkPolicy, NetworkPolicySchema } from "@turnbox/protocol/turnbox/host/v1/network_pb";
import {
  type ExtendSessionRequest,
  type Session,
  type SessionEventKind,
  SessionService,
  SessionState,
  type ToolsPolicy,
} from "@turnbox/protocol/turnbox/host/v1/session_pb";
import {
  type ChangeSchema,
  type DiffSnapshotsRequest,
  SnapshotKind,
  type SnapshotSchema,
  SnapshotService,
  TurnOutcome,
} from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import {
  type ExecuteToolRequest,
  type ExecuteToolResponseSchema,
  ExitReason,
  OutputStream,
  type ToolSchema,
  ToolService,
} from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { NOW_MS, type Services } from "./connect-services.ts";
import { createFakeFleetService, type FleetWorld, newFleetWorld } from "./fake-fleet-service.ts";

export const HOST_URL = "http://127.0.0.1:7999";
const at = (agoMs: number) => timestampFromMs(NOW_MS - agoMs);
const refuse = (error: SandboxError) => toConnectError(error, "r1");

/** What the services in memory were asked and how they answer. */
export interface World extends FleetWorld {
  created: { template: string; name: string; quotaBytes: bigint; labels: Record<string, string> }[];
  executed: ExecuteToolRequest[];
  cancelled: string[];
  destroyed: string[];
  rolledBackTo: string[];
  toolsPolicies: ToolsPolicy[];
  outcomes: TurnOutcome[];
  /** Whether the host can make snapshots at all. */
  storage: "zfs" | "local-disk";
  imported: { name: string; key: string; bytes: number; largest: number };
  deleted: string[];
  looksUntilGone: number;
  exit: Omit<MessageInitShape<typeof ExecuteToolResponseSchema>, "$typeName" | "$unknown" | "toolCallId">;
  /** The catalog. */
  tools: readonly MessageInitShape<typeof ToolSchema>[];
  hold: Promise<void>;
  /** What the list of sandboxes waits for. */
  onList: () => Promise<void>;
  /** Whether a create says how its sandbox is reached. */
  access: "told" | "asked";
  unreachableInstances: string[];
  lifetimes: Pick<CreateSandboxRequest, "ttl" | "idleTimeout" | "onTimeout">[];
  forked: ForkSandboxRequest[];
  /** How many children are made; the rest fails. */
  room: number;
  extended: ExtendSessionRequest[];
  snapshots: { created: string[]; deleted: string[]; list: readonly MessageInitShape<typeof SnapshotSchema>[] };
  diffed: DiffSnapshotsRequest[];
  changes: readonly MessageInitShape<typeof ChangeSchema>[];
  repaired: string[];
  /** What new sandboxes may talk to, and what the one there is may. */
  network: { created: (NetworkPolicy | undefined)[]; policy: NetworkPolicy };
  sandboxes: Sandbox[];
  /** What hosts say to watchers; each settles when there is something. */
  watched: () => AsyncIterable<SessionEventKind>;
}

export const newWorld = (): World => ({
  created: [],
  executed: [],
  cancelled: [],
  destroyed: [],
  rolledBackTo: [],
  toolsPolicies: [],
  outcomes: [],
  storage: "zfs",
  imported: { name: "", key: "", bytes: 0, largest: 0 },
  deleted: [],
  looksUntilGone: 2,
  exit: { exitCode: 0, exitReason: ExitReason.EXITED },
  tools: TOOLS,
  hold: Promise.resolve(),
  onList: () => Promise.resolve(),
  access: "asked",
  unreachableInstances: [],
  ...newFleetWorld([HOST_URL]),
  lifetimes: [],
  forked: [],
  room: 100,
  extended: [],
  snapshots: { created: [], deleted: [], list: SNAPSHOTS },
  diffed: [],
  changes: [],
  repaired: [],
  network: { created: [], policy: create(NetworkPolicySchema) },
  sandboxes: SANDBOXES.map((sandbox) => create(SandboxSchema, sandbox)),
  async *watched() {
    yield* await Promise.resolve([]);
  },
});

const SANDBOXES = [
  { sandboxId: "fleet:i1:abc123", name: "web", turnCount: 2, spaceUsedBytes: 1536n },
  { sandboxId: "fleet:i1:abd999", name: "", turnCount: 0, spaceUsedBytes: 0n },
].map(({ sandboxId, name, turnCount, spaceUsedBytes }) => ({
  sandboxId,
  name,
  session: {
    state: SessionState.ACTIVE,
    base: `mini@${"a".repeat(64)}`,
    createdAt: at(120_000),
    turnCount,
    spaceUsedBytes,
    generation: 1,
  },
}));

const TEMPLATES = [
  { name: "debian", digest: "11".repeat(32), latest: true, sizeBytes: 1024n },
  { name: "debian", digest: "22".repeat(32), sizeBytes: 1024n },
  { name: "mini", digest: "aa".repeat(32), latest: true, sizeBytes: 2048n },
];

const TOOLS = [
  {
    name: "read_file",
    tier: 1,
    aliases: ["Read"],
    readOnly: true,
    inputSchema: {
      type: "object",
      properties: { limit: { type: "integer" }, path: { type: "string" } },
      required: ["path"],
    },
  },
];

const SNAPSHOTS = [
  { snapshotId: "s1", kind: SnapshotKind.TURN, turnNumber: 1, createdAt: at(300_000), usedBytes: 1024n },
  {
    snapshotId: "s2",
    kind: SnapshotKind.TURN,
    turnNumber: 2,
    turnKey: "build",
    outcome: TurnOutcome.FAILED,
    createdAt: at(200_000),
    parentSnapshotId: "s1",
  },
  { snapshotId: "u1", kind: SnapshotKind.UNDO, createdAt: at(100_000), parentSnapshotId: "s2" },
  {
    snapshotId: "s3",
    kind: SnapshotKind.TURN,
    turnNumber: 3,
    createdAt: at(50_000),
    parentSnapshotId: "s1",
    head: true,
  },
];

export const createServices = (world: World): Services => {
  const find = (sandboxId: string): Sandbox => {
    const sandbox = world.sandboxes.find((one) => one.sandboxId === sandboxId);
    if (sandbox === undefined) throw refuse(new SandboxError("SANDBOX_NOT_FOUND", `no sandbox ${sandboxId}`));
    return sandbox;
  };
  const sessionOf = (sessionId: string): Session => {
    const session = world.sandboxes.find(({ sandboxId }) => sandboxId.endsWith(`:${sessionId}`))?.session;
    if (session === undefined) throw refuse(new SandboxError("SESSION_NOT_FOUND", `no session ${sessionId}`));
    return session;
  };
  const enter = (sandboxId: string, state: SessionState): Sandbox => {
    const sandbox = find(sandboxId);
    if (sandbox.session !== undefined) sandbox.session.state = state;
    return sandbox;
  };
  return services({ world, find, sessionOf, enter });
};

/** What a tool writes and how it ends. */
async function* toolEvents(world: World, toolCallId: string) {
  const piece = (stream: OutputStream, text: string, offset = 0n) => ({
    event: { case: "progress" as const, value: { stream, data: new TextEncoder().encode(text), offset } },
  });
  yield piece(OutputStream.STDOUT, "out ");
  yield piece(OutputStream.STDERR, "err");
  yield piece(OutputStream.STDOUT, "more", 4n);
  await world.hold;
  yield { event: { case: "response" as const, value: { toolCallId, content: "done", ...world.exit } } };
}

interface Held {
  readonly world: World;
  readonly find: (sandboxId: string) => Sandbox;
  readonly sessionOf: (sessionId: string) => Session;
  /** Moves a sandbox to a state. */
  readonly enter: (sandboxId: string, state: SessionState) => Sandbox;
}

const services = ({ world, find, sessionOf, enter }: Held): Services => ({
  server: (router) => {
    router.service(SandboxControlService, {
      createSandbox: ({ template, name, quotaBytes, labels, ttl, idleTimeout, onTimeout, networkPolicy }) => {
        if (template === "nope") throw refuse(new SandboxError("TEMPLATE_NOT_FOUND", "no template nope"));
        world.network.created.push(networkPolicy);
        world.created.push({ template, name, quotaBytes, labels });
        world.lifetimes.push({ onTimeout, ...(ttl && { ttl }), ...(idleTimeout && { idleTimeout }) });
        const sandboxId = "fleet:i1:new";
        const access = { url: HOST_URL, token: "scoped", sessionId: "new", sandboxId };
        return { sandboxId, sandbox: { sandboxId, name }, ...(world.access === "told" ? { access } : {}) };
      },
      // One sandbox on each page, so that paging is walked.
      listSandboxes: async ({ page }) => {
        await world.onList();
        const index = Number(page?.pageToken ?? "") || 0;
        const next = index + 1 < world.sandboxes.length ? String(index + 1) : "";
        return {
          sandboxes: world.sandboxes.slice(index, index + 1),
          page: { nextPageToken: next },
          unreachableInstances: world.unreachableInstances,
        };
      },
      getSandbox: ({ sandboxId, name }) => {
        if (name === "") return { sandbox: find(sandboxId) };
        const [sandbox] = world.sandboxes.filter((one) => one.name === name || one.sandboxId.endsWith(`:${name}`));
        return { sandbox: sandbox ?? find(name) };
      },
      pauseSandbox: ({ sandboxId, tools }) => {
        world.toolsPolicies.push(tools);
        return { sandbox: enter(sandboxId, SessionState.PAUSED) };
      },
      resumeSandbox: ({ sandboxId }) => ({ sandbox: enter(sandboxId, SessionState.ACTIVE) }),
      connectSandbox: ({ sandboxId }) => {
        find(sandboxId);
        return {
          url: HOST_URL,
          token: "scoped",
          sessionId: sandboxId.split(":")[2] ?? "",
          sandboxId,
          expiresAt: at(-3_600_000),
        };
      },
      destroySandbox: ({ sandboxId }) => {
        if (sandboxId === "fleet:i1:abd999") throw refuse(new SandboxError("HOST_UNREACHABLE", "no answer"));
        world.destroyed.push(sandboxId);
        return {};
      },
      forkSandbox: (request) => {
        world.forked.push(request);
        return {
          results: Array.from({ length: request.count }, (_, index) =>
            index < world.room
              ? { result: { case: "sandbox" as const, value: { sandboxId: `fleet:i1:child${String(index)}` } } }
              : { result: { case: "reason" as const, value: "POOL_FULL" }, message: "the pool is full" },
          ),
        };
      },
      listTemplates: () => ({ templates: TEMPLATES }),
      importTemplate: async (parts) => {
        for await (const { part } of parts) {
          if (part.case === "header")
            Object.assign(world.imported, { name: part.value.name, key: part.value.idempotencyKey });
          if (part.case !== "data") continue;
          world.imported.bytes += part.value.length;
          world.imported.largest = Math.max(world.imported.largest, part.value.length);
        }
        return { template: { name: world.imported.name, digest: "d".repeat(64), sizeBytes: 7n }, hosts: 1 };
      },
    });
    router.service(FleetService, createFakeFleetService(world));
  },
  host: (router) => {
    router.service(ToolService, {
      async *executeToolStream({ call }) {
        if (call !== undefined) world.executed.push(call);
        yield* toolEvents(world, call?.toolCallId ?? "");
      },
      async *attachToolCall({ toolCallId }) {
        if (!world.executed.some((call) => call.toolCallId === toolCallId))
          throw refuse(new SandboxError("TOOL_CALL_NOT_FOUND", `no call ${toolCallId}`));
        yield* toolEvents(world, toolCallId);
      },
      listTools: () => ({ tools: [...world.tools] }),
      executeTool: async (call) => {
        world.executed.push(call);
        await world.hold;
        return { toolCallId: call.toolCallId, content: "done", ...world.exit };
      },
      cancelToolCall: ({ toolCallId }) => {
        world.cancelled.push(toolCallId);
        return { wasRunning: true };
      },
    });
    router.service(SnapshotService, {
      turnComplete: ({ outcome }) => {
        world.outcomes.push(outcome);
        if (world.storage === "local-disk") return { turnNumber: 4, generation: 1 };
        const snapshot = { snapshotId: "s4", kind: SnapshotKind.TURN, turnNumber: 4, outcome, head: true };
        return { snapshotId: "s4", turnNumber: 4, generation: 1, spaceUsedBytes: 9n, snapshot };
      },
      listSnapshots: ({ kinds }) => ({
        snapshots: world.snapshots.list.filter(
          ({ kind = SnapshotKind.UNSPECIFIED }) => kinds.length === 0 || kinds.includes(kind),
        ),
      }),
      createSnapshot: ({ name }) => {
        world.snapshots.created.push(name);
        return { snapshot: { snapshotId: "n9", kind: SnapshotKind.NAMED, name, generation: 1, head: true } };
      },
      deleteSnapshot: ({ snapshotId }) => {
        world.snapshots.deleted.push(snapshotId);
        return {};
      },
      // One difference on each page.
      diffSnapshots: (request) => {
        world.diffed.push(request);
        const index = Number(request.page?.pageToken ?? "") || 0;
        const next = index + 1 < world.changes.length ? String(index + 1) : "";
        return { changes: world.changes.slice(index, index + 1), page: { nextPageToken: next } };
      },
      rollbackSession: ({ snapshotId, tools }) => {
        world.toolsPolicies.push(tools);
        world.rolledBackTo.push(snapshotId);
        return { undoSnapshotId: "u2", generation: 2 };
      },
    });
    router.service(HostService, {
      healthCheck: () => {
        world.looksUntilGone -= 1;
        return {
          status: HealthStatus.HEALTHY,
          maxSessions: 9,
          poolState: "ONLINE",
          poolSpace: { sizeBytes: 4n << 30n, availableBytes: 3n << 30n },
          backgroundDestroys: world.looksUntilGone > 0 ? [{ sessionId: "abc123" }] : [],
        };
      },
      getStats: () => ({
        at: at(0),
        cpus: 2,
        loadAverage: 0.5,
        memoryBytes: 4n << 30n,
        memoryAvailableBytes: 1n << 30n,
        sessionCount: 2,
      }),
      deleteTemplate: ({ name, digest }) => {
        world.deleted.push(`${name}@${digest}`);
        return {};
      },
    });
    router.service(SessionService, {
      extendSession: (request) => {
        world.extended.push(request);
        const session = sessionOf(request.sessionId);
        if (request.ttl === undefined) delete session.expiresAt;
        else session.expiresAt = at(-durationMs(request.ttl));
        return { session };
      },
      repairSession: ({ sessionId }) => {
        world.repaired.push(sessionId);
        const session = Object.assign(sessionOf(sessionId), { state: SessionState.ACTIVE, generation: 3 });
        return { session, actions: ["mounted the files\u001b[2J"] };
      },
      getNetworkPolicy: () => ({
        policy: world.network.policy,
        ineffectiveEntries: ["10.0.0.0/8"],
        denials: [{ at: at(0), destination: "evil.example\u001b[2J:443", rule: "default" }],
      }),
      updateNetworkPolicy: ({ policy = world.network.policy }) => {
        world.network.policy = policy;
        return { policy };
      },
      createPortAccess: ({ port }) => ({ url: `http://127.0.0.1:9000/${String(port)}`, token: "port-token" }),
      getSessionStats: () => ({
        at: at(0),
        cpuTime: { seconds: 1n, nanos: 250_000_000 },
        memoryBytes: 12n << 20n,
        memoryLimitBytes: 512n << 20n,
        pids: 3,
        referencedBytes: 5n << 20n,
        spaceUsedBytes: 1n << 20n,
      }),
      async *watchSessions() {
        for await (const kind of world.watched()) yield { kind };
      },
    });
  },
});
