import { type CallOptions, createClient } from "@connectrpc/connect";
import { hasReason, invalidArgument, parseSessionId, type Secret } from "@turnbox/core";
import {
  type GetStatsResponse,
  type HealthCheckResponse,
  HealthStatus,
  HostService,
  type Template,
} from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { ProcessService } from "@turnbox/protocol/turnbox/host/v1/process_pb";
import { type Session, SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type { HostConnection, HostReport } from "../host-connection.ts";
import { type ControlCall, type Sandbox, type SandboxCapabilities, urlToAddress } from "../sandbox-control.ts";
import {
  fromCapabilities,
  fromForkFailure,
  fromProcess,
  fromSession,
  fromTemplate,
  required,
  toCreateSession,
  toToolsPolicy,
} from "./convert.ts";
import { fromHostError } from "./host-error.ts";
import { createHostTransport, type HostTransport } from "./host-transport.ts";

/** On whose behalf the host is called: a tenant, or the fleet itself (reports, templates). */
export type HostCaller = { readonly kind: "tenant"; readonly tenant: string } | { readonly kind: "fleet" };

export interface NodeSandboxControlOptions {
  readonly url: string;
  /** The bearer token for a call. */
  readonly tokenFor: (caller: HostCaller) => Secret;
  readonly deadlines?: Partial<HostDeadlines>;
  /** How the host is reached; a connection of its own unless given. */
  readonly transport?: HostTransport;
}

/** How long a unary call may take. Streams have no deadline but their caller's. */
export interface HostDeadlines {
  readonly readMs: number;
  readonly changeMs: number;
  readonly createMs: number;
}

const DEFAULT_DEADLINES: HostDeadlines = { readMs: 10_000, changeMs: 60_000, createMs: 120_000 };

const FLEET: HostCaller = { kind: "fleet" };

/**
 * One sandbox-host behind `SandboxControl`. Sandbox ids are the host's session ids; there are no names. Capabilities are
 * the host's own answer, kept for as long as the connection to it lives.
 */
export function createNodeSandboxControl(options: NodeSandboxControlOptions): HostConnection {
  const { url, tokenFor } = options;
  const link = options.transport ?? createHostTransport(url);
  const deadlines = { ...DEFAULT_DEADLINES, ...options.deadlines };
  const sessions = createClient(SessionService, link.transport);
  const processes = createClient(ProcessService, link.transport);
  const host = createClient(HostService, link.transport);
  const address = urlToAddress(url);
  let known: SandboxCapabilities | undefined;

  const call = async <T>(
    { signal, caller, timeoutMs }: { signal: AbortSignal; caller: HostCaller; timeoutMs?: number },
    work: (options: CallOptions) => Promise<T>,
  ): Promise<T> => {
    signal.throwIfAborted();
    if (link.connection() === "new") known = undefined;
    const headers = { authorization: `Bearer ${tokenFor(caller).reveal()}` };
    try {
      return await work({ signal, headers, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
    } catch (thrown) {
      const error = fromHostError(thrown, { signal, url });
      if (hasReason(error, "HOST_UNREACHABLE")) known = undefined;
      throw error;
    }
  };
  const forTenant = ({ signal, tenant }: ControlCall, timeoutMs: number) => ({
    signal,
    caller: { kind: "tenant", tenant } as const,
    timeoutMs,
  });
  const asFleet = ({ signal }: { signal: AbortSignal }) => ({ signal, caller: FLEET, timeoutMs: deadlines.readMs });
  const idOf = (sandboxId: string): string => parseSessionId(sandboxId, "sandbox_id");

  const capabilities = async (control: ControlCall): Promise<SandboxCapabilities> => {
    const kept = link.connection() === "kept" ? known : undefined;
    if (kept !== undefined) return kept;
    const answer = await call(forTenant(control, deadlines.readMs), (options) => host.getCapabilities({}, options));
    known = fromCapabilities(required(answer.capabilities, "capabilities"));
    return known;
  };
  const toSandbox = (session: Session | undefined, able: SandboxCapabilities): Sandbox => {
    const described = fromSession(required(session, "session"));
    return { sandboxId: described.sessionId, address, capabilities: able, session: described };
  };

  return {
    createSandbox: async (request, control) => {
      if (request.name !== undefined) throw invalidArgument("name", "is kept by a fleet; one host has no names");
      // An id of the host's own choosing is the same for every repetition of the key.
      const sessionId = request.sessionId === undefined ? "" : parseSessionId(request.sessionId);
      const answer = await call(forTenant(control, deadlines.createMs), (options) =>
        sessions.createSession(toCreateSession(request, sessionId), options),
      );
      if (answer.capabilities !== undefined) known = fromCapabilities(answer.capabilities);
      return toSandbox(answer.session, known ?? (await capabilities(control)));
    },
    getSandbox: async ({ sandboxId }, control) => {
      const request = { sessionId: idOf(sandboxId) };
      const answer = await call(forTenant(control, deadlines.readMs), (options) =>
        sessions.getSession(request, options),
      );
      return toSandbox(answer.session, await capabilities(control));
    },
    listSandboxes: async ({ labels, pageSize, pageToken }, control) => {
      const request = { page: { pageSize, pageToken }, selector: { matchLabels: { ...labels } } };
      const answer = await call(forTenant(control, deadlines.readMs), (options) =>
        sessions.listSessions(request, options),
      );
      const able = await capabilities(control);
      return {
        sandboxes: answer.sessions.map((session) => toSandbox(session, able)),
        nextPageToken: answer.page?.nextPageToken ?? "",
        unreachableInstances: [],
      };
    },
    destroySandbox: async ({ sandboxId, idempotencyKey }, control) => {
      const request = { sessionId: idOf(sandboxId), idempotencyKey };
      await call(forTenant(control, deadlines.changeMs), (options) => sessions.destroySession(request, options));
    },
    connectSandbox: async ({ sandboxId }, control) => {
      const request = { sessionId: idOf(sandboxId) };
      await call(forTenant(control, deadlines.readMs), (options) => sessions.getSession(request, options));
      return { sandboxId, sessionId: sandboxId, url };
    },
    forkSandbox: async ({ sandboxId, idempotencyKey, snapshotId, count, labels }, control) => {
      const request = { sessionId: idOf(sandboxId), idempotencyKey, snapshotId, count, labels: { ...labels } };
      const answer = await call(forTenant(control, deadlines.createMs), (options) =>
        sessions.forkSession(request, options),
      );
      const able = await capabilities(control);
      return answer.results.map((one) =>
        one.result.case === "session"
          ? { kind: "forked", sandbox: toSandbox(one.result.value, able) }
          : { kind: "failed", error: fromForkFailure(one) },
      );
    },
    pauseSandbox: async ({ sandboxId, idempotencyKey, tools }, control) => {
      const request = { sessionId: idOf(sandboxId), idempotencyKey, tools: toToolsPolicy(tools) };
      const answer = await call(forTenant(control, deadlines.changeMs), (options) =>
        sessions.pauseSession(request, options),
      );
      return toSandbox(answer.session, await capabilities(control));
    },
    resumeSandbox: async ({ sandboxId, idempotencyKey }, control) => {
      const request = { sessionId: idOf(sandboxId), idempotencyKey };
      const answer = await call(forTenant(control, deadlines.changeMs), (options) =>
        sessions.resumeSession(request, options),
      );
      return toSandbox(answer.session, await capabilities(control));
    },
    launchProcess: async ({ sandboxId, idempotencyKey, binary, args, env, exposePort }, control) => {
      const request = {
        sessionId: idOf(sandboxId),
        idempotencyKey,
        binary,
        args: [...args],
        env: { ...env },
        exposePort,
      };
      const answer = await call(forTenant(control, deadlines.changeMs), (options) =>
        processes.launchProcess(request, options),
      );
      return fromProcess(required(answer.process, "process"));
    },
    killProcess: async ({ sandboxId, processId, signalNumber }, control) => {
      const request = { sessionId: idOf(sandboxId), processId, signal: signalNumber };
      await call(forTenant(control, deadlines.changeMs), (options) => processes.killProcess(request, options));
    },
    getProcessStatus: async ({ sandboxId, processId }, control) => {
      const request = { sessionId: idOf(sandboxId), processId };
      const answer = await call(forTenant(control, deadlines.readMs), (options) =>
        processes.getProcessStatus(request, options),
      );
      return fromProcess(required(answer.process, "process"));
    },
    importTemplate: async ({ archive, idempotencyKey, name }, { signal }) => {
      const parts = toImportParts({ idempotencyKey, name }, archive);
      const answer = await call({ signal, caller: FLEET }, (options) => host.importTemplate(parts, options));
      return { template: fromTemplate(required(answer.template, "template")), hosts: 1 };
    },
    listTemplates: async ({ signal }) => {
      const answer = await call(asFleet({ signal }), (options) => host.listTemplates({}, options));
      return answer.templates.map(fromTemplate);
    },
    capabilities,
    report: async ({ signal }) => {
      const [health, stats, templates] = await Promise.all([
        call(asFleet({ signal }), (options) => host.healthCheck({}, options)),
        call(asFleet({ signal }), (options) => host.getStats({}, options)).catch(unlessMissing),
        call(asFleet({ signal }), (options) => host.listTemplates({}, options)).catch(unlessMissing),
      ]);
      return toReport({ health, stats, templates: templates?.templates ?? [] });
    },
    [Symbol.asyncDispose]: async () => {
      link[Symbol.dispose]();
      await Promise.resolve();
    },
  };
}

const HEALTH: ReadonlyMap<HealthStatus, HostReport["health"]> = new Map([
  [HealthStatus.HEALTHY, "healthy"],
  [HealthStatus.DEGRADED, "degraded"],
  [HealthStatus.UNHEALTHY, "unhealthy"],
]);

interface Answers {
  readonly health: HealthCheckResponse;
  readonly stats: GetStatsResponse | undefined;
  readonly templates: readonly Template[];
}

function toReport({ health, stats, templates }: Answers): HostReport {
  const { poolSpace } = health;
  return {
    health: HEALTH.get(health.status) ?? "unhealthy",
    sessionCount: health.sessionCount,
    maxSessions: health.maxSessions,
    cpus: stats?.cpus ?? 0,
    memoryBytes: Number(stats?.memoryBytes ?? 0n),
    memoryAvailableBytes: Number(stats?.memoryAvailableBytes ?? 0n),
    poolBytes: Number(poolSpace?.sizeBytes ?? 0n),
    poolAvailableBytes: Number(poolSpace?.availableBytes ?? 0n),
    templates: templates.map(fromTemplate),
    problems: health.errors,
  };
}

/** A host that does not offer a question says nothing about its answer. */
function unlessMissing(error: unknown): undefined {
  if (!hasReason(error, "UNIMPLEMENTED")) throw error;
}

/** Bytes of one message of an upload. */
const PART_BYTES = 256 * 1024;

async function* toImportParts(
  header: { readonly idempotencyKey: string; readonly name: string },
  archive: AsyncIterable<Uint8Array>,
) {
  yield { part: { case: "header" as const, value: header } };
  for await (const chunk of archive) {
    for (let start = 0; start < chunk.length; start += PART_BYTES) {
      yield { part: { case: "data" as const, value: chunk.subarray(start, start + PART_BYTES) } };
    }
  }
}
