import { createClient } from "@connectrpc/connect";
import { invalidArgument, parseSessionId } from "@turnbox/core";
import { HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { ProcessService } from "@turnbox/protocol/turnbox/host/v1/process_pb";
import { type Session, SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type { HostConnection } from "../host-connection.ts";
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
import { type CallHostOptions, createCallHost, type HostCall, type HostCaller } from "./host-call.ts";
import { createHostCommands } from "./host-commands.ts";
import { createHostTransport, type HostTransport } from "./host-transport.ts";
import { toReport, unlessMissing } from "./report.ts";

export interface NodeSandboxControlOptions extends Pick<CallHostOptions, "url" | "tokenFor"> {
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

  const call = createCallHost({
    url,
    tokenFor,
    link,
    onNewConnection: () => {
      known = undefined;
    },
  });
  const reading = ({ signal, tenant }: ControlCall): HostCall => ({
    signal,
    caller: { kind: "tenant", tenant },
    timeoutMs: deadlines.readMs,
    effect: "none",
  });
  const changing = (control: ControlCall, timeoutMs = deadlines.changeMs): HostCall => ({
    ...reading(control),
    timeoutMs,
    effect: "some",
  });
  const asFleet = ({ signal }: { readonly signal: AbortSignal }): HostCall => ({
    signal,
    caller: FLEET,
    timeoutMs: deadlines.readMs,
    effect: "none",
  });
  const idOf = (sandboxId: string): string => parseSessionId(sandboxId, "sandbox_id");

  const capabilities = async (control: ControlCall): Promise<SandboxCapabilities> => {
    const kept = link.connection() === "kept" ? known : undefined;
    if (kept !== undefined) return kept;
    const answer = await call(reading(control), (options) => host.getCapabilities({}, options));
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
      const answer = await call(changing(control, deadlines.createMs), (options) =>
        sessions.createSession(toCreateSession(request, sessionId), options),
      );
      if (answer.capabilities !== undefined) known = fromCapabilities(answer.capabilities);
      const made = toSandbox(answer.session, known ?? (await capabilities(control)));
      return { ...made, connection: { sandboxId: made.sandboxId, sessionId: made.sandboxId, url } };
    },
    getSandbox: async ({ sandboxId, name = "" }, control) => {
      if (name !== "") throw invalidArgument("name", "is kept by a fleet; one host has no names");
      const request = { sessionId: idOf(sandboxId) };
      const answer = await call(reading(control), (options) => sessions.getSession(request, options));
      return toSandbox(answer.session, await capabilities(control));
    },
    listSandboxes: async ({ labels, pageSize, pageToken }, control) => {
      const request = { page: { pageSize, pageToken }, selector: { matchLabels: { ...labels } } };
      const answer = await call(reading(control), (options) => sessions.listSessions(request, options));
      const able = await capabilities(control);
      return {
        sandboxes: answer.sessions.map((session) => toSandbox(session, able)),
        nextPageToken: answer.page?.nextPageToken ?? "",
        unreachableInstances: [],
      };
    },
    destroySandbox: async ({ sandboxId, idempotencyKey }, control) => {
      const request = { sessionId: idOf(sandboxId), idempotencyKey };
      await call(changing(control), (options) => sessions.destroySession(request, options));
    },
    connectSandbox: async ({ sandboxId }, control) => {
      const request = { sessionId: idOf(sandboxId) };
      await call(reading(control), (options) => sessions.getSession(request, options));
      return { sandboxId, sessionId: sandboxId, url };
    },
    forkSandbox: async ({ sandboxId, idempotencyKey, snapshotId, count, labels }, control) => {
      const request = { sessionId: idOf(sandboxId), idempotencyKey, snapshotId, count, labels: { ...labels } };
      const answer = await call(changing(control, deadlines.createMs), (options) =>
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
      const answer = await call(changing(control), (options) => sessions.pauseSession(request, options));
      return toSandbox(answer.session, await capabilities(control));
    },
    resumeSandbox: async ({ sandboxId, idempotencyKey }, control) => {
      const request = { sessionId: idOf(sandboxId), idempotencyKey };
      const answer = await call(changing(control), (options) => sessions.resumeSession(request, options));
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
      const answer = await call(changing(control), (options) => processes.launchProcess(request, options));
      return fromProcess(required(answer.process, "process"), url);
    },
    killProcess: async ({ sandboxId, processId, signalNumber }, control) => {
      const request = { sessionId: idOf(sandboxId), processId, signal: signalNumber };
      await call(changing(control), (options) => processes.killProcess(request, options));
    },
    getProcessStatus: async ({ sandboxId, processId }, control) => {
      const request = { sessionId: idOf(sandboxId), processId };
      const answer = await call(reading(control), (options) => processes.getProcessStatus(request, options));
      return fromProcess(required(answer.process, "process"), url);
    },
    importTemplate: async ({ archive, idempotencyKey, name }, { signal }) => {
      const parts = toImportParts({ idempotencyKey, name }, archive);
      const answer = await call({ signal, caller: FLEET, effect: "some" }, (options) =>
        host.importTemplate(parts, options),
      );
      return { template: fromTemplate(required(answer.template, "template")), hosts: 1 };
    },
    listTemplates: async ({ signal }) => {
      const answer = await call(asFleet({ signal }), (options) => host.listTemplates({}, options));
      return answer.templates.map(fromTemplate);
    },
    capabilities,
    ...createHostCommands({ call, host, sessions, readMs: deadlines.readMs, commandMs: deadlines.createMs }),
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
