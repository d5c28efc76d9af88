import { type Client, createClient } from "@connectrpc/connect";
import { invalidArgument, parseSessionId } from "@turnbox/core";
import { HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { ProcessService } from "@turnbox/protocol/turnbox/host/v1/process_pb";
import { type Session, SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type { HostConnection, HostReport } from "../control/host-connection.ts";
import {
  type ControlCall,
  type CreatedSandbox,
  type CreateSandboxRequest,
  type ForkResult,
  type ForkSandboxRequest,
  type GetSandboxRequest,
  type ImportedTemplate,
  type ImportTemplateRequest,
  type KillProcessRequest,
  type LaunchProcessRequest,
  type ListSandboxesRequest,
  type MutateSandboxRequest,
  type PauseSandboxRequest,
  type ProcessRef,
  type Sandbox,
  type SandboxCapabilities,
  type SandboxConnection,
  type SandboxPage,
  type SandboxProcess,
  type SandboxRef,
  type Template,
  urlToAddress,
} from "../control/sandbox-control.ts";
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
import { type CallHost, type CallHostOptions, createCallHost, type HostCall, type HostCaller } from "./host-call.ts";
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
  return new NodeSandboxControl(options);
}

class NodeSandboxControl implements HostConnection {
  readonly sessions: HostConnection["sessions"];
  readonly setAdmission: HostConnection["setAdmission"];
  readonly pauseSession: HostConnection["pauseSession"];
  readonly #url: string;
  readonly #address: string;
  readonly #deadlines: HostDeadlines;
  readonly #transport: HostTransport;
  readonly #call: CallHost;
  readonly #sessions: Client<typeof SessionService>;
  readonly #processes: Client<typeof ProcessService>;
  readonly #host: Client<typeof HostService>;
  #capabilities: SandboxCapabilities | undefined;

  constructor({ url, tokenFor, transport = createHostTransport(url), deadlines }: NodeSandboxControlOptions) {
    this.#url = url;
    this.#address = urlToAddress(url);
    this.#deadlines = { ...DEFAULT_DEADLINES, ...deadlines };
    this.#transport = transport;
    this.#sessions = createClient(SessionService, transport.transport);
    this.#processes = createClient(ProcessService, transport.transport);
    this.#host = createClient(HostService, transport.transport);
    const onNewConnection = (): void => {
      this.#capabilities = undefined;
    };
    this.#call = createCallHost({ url, tokenFor, link: transport, onNewConnection });
    const { readMs, createMs } = this.#deadlines;
    const commands = { call: this.#call, host: this.#host, sessions: this.#sessions, readMs, commandMs: createMs };
    const { sessions, setAdmission, pauseSession } = createHostCommands(commands);
    this.sessions = sessions;
    this.setAdmission = setAdmission;
    this.pauseSession = pauseSession;
  }

  async createSandbox(request: CreateSandboxRequest, control: ControlCall): Promise<CreatedSandbox> {
    if (request.name !== undefined) throw invalidArgument("name", "is kept by a fleet; one host has no names");
    // An id of the host's own choosing is the same for every repetition of the key.
    const sessionId = request.sessionId === undefined ? "" : parseSessionId(request.sessionId);
    const answer = await this.#call(this.#changing(control, this.#deadlines.createMs), (options) =>
      this.#sessions.createSession(toCreateSession(request, sessionId), options),
    );
    if (answer.capabilities !== undefined) this.#capabilities = fromCapabilities(answer.capabilities);
    const made = this.#toSandbox(answer.session, this.#capabilities ?? (await this.capabilities(control)));
    return { ...made, connection: { sandboxId: made.sandboxId, sessionId: made.sandboxId, url: this.#url } };
  }

  async getSandbox({ sandboxId, name = "" }: GetSandboxRequest, control: ControlCall): Promise<Sandbox> {
    if (name !== "") throw invalidArgument("name", "is kept by a fleet; one host has no names");
    const request = { sessionId: idOf(sandboxId) };
    const answer = await this.#call(this.#reading(control), (options) => this.#sessions.getSession(request, options));
    return this.#toSandbox(answer.session, await this.capabilities(control));
  }

  async listSandboxes(query: ListSandboxesRequest, control: ControlCall): Promise<SandboxPage> {
    const { labels, pageSize, pageToken } = query;
    const request = { page: { pageSize, pageToken }, selector: { matchLabels: { ...labels } } };
    const answer = await this.#call(this.#reading(control), (options) => this.#sessions.listSessions(request, options));
    const able = await this.capabilities(control);
    return {
      sandboxes: answer.sessions.map((session) => this.#toSandbox(session, able)),
      nextPageToken: answer.page?.nextPageToken ?? "",
      unreachableInstances: [],
    };
  }

  async destroySandbox({ sandboxId, idempotencyKey }: MutateSandboxRequest, control: ControlCall): Promise<void> {
    const request = { sessionId: idOf(sandboxId), idempotencyKey };
    await this.#call(this.#changing(control), (options) => this.#sessions.destroySession(request, options));
  }

  async connectSandbox({ sandboxId }: SandboxRef, control: ControlCall): Promise<SandboxConnection> {
    const request = { sessionId: idOf(sandboxId) };
    await this.#call(this.#reading(control), (options) => this.#sessions.getSession(request, options));
    return { sandboxId, sessionId: sandboxId, url: this.#url };
  }

  async forkSandbox(fork: ForkSandboxRequest, control: ControlCall): Promise<readonly ForkResult[]> {
    const { sandboxId, idempotencyKey, snapshotId, count, labels } = fork;
    const request = { sessionId: idOf(sandboxId), idempotencyKey, snapshotId, count, labels: { ...labels } };
    const answer = await this.#call(this.#changing(control, this.#deadlines.createMs), (options) =>
      this.#sessions.forkSession(request, options),
    );
    const able = await this.capabilities(control);
    return answer.results.map((one) =>
      one.result.case === "session"
        ? { kind: "forked", sandbox: this.#toSandbox(one.result.value, able) }
        : { kind: "failed", error: fromForkFailure(one) },
    );
  }

  async pauseSandbox(pause: PauseSandboxRequest, control: ControlCall): Promise<Sandbox> {
    const { sandboxId, idempotencyKey, tools } = pause;
    const request = { sessionId: idOf(sandboxId), idempotencyKey, tools: toToolsPolicy(tools) };
    const answer = await this.#call(this.#changing(control), (options) =>
      this.#sessions.pauseSession(request, options),
    );
    return this.#toSandbox(answer.session, await this.capabilities(control));
  }

  async resumeSandbox({ sandboxId, idempotencyKey }: MutateSandboxRequest, control: ControlCall): Promise<Sandbox> {
    const request = { sessionId: idOf(sandboxId), idempotencyKey };
    const answer = await this.#call(this.#changing(control), (options) =>
      this.#sessions.resumeSession(request, options),
    );
    return this.#toSandbox(answer.session, await this.capabilities(control));
  }

  async launchProcess(launch: LaunchProcessRequest, control: ControlCall): Promise<SandboxProcess> {
    const { sandboxId, args, env, ...rest } = launch;
    const request = { ...rest, sessionId: idOf(sandboxId), args: [...args], env: { ...env } };
    const answer = await this.#call(this.#changing(control), (options) =>
      this.#processes.launchProcess(request, options),
    );
    return fromProcess(required(answer.process, "process"), this.#url);
  }

  async killProcess({ sandboxId, processId, signalNumber }: KillProcessRequest, control: ControlCall): Promise<void> {
    const request = { sessionId: idOf(sandboxId), processId, signal: signalNumber };
    await this.#call(this.#changing(control), (options) => this.#processes.killProcess(request, options));
  }

  async getProcessStatus({ sandboxId, processId }: ProcessRef, control: ControlCall): Promise<SandboxProcess> {
    const request = { sessionId: idOf(sandboxId), processId };
    const answer = await this.#call(this.#reading(control), (options) =>
      this.#processes.getProcessStatus(request, options),
    );
    return fromProcess(required(answer.process, "process"), this.#url);
  }

  async importTemplate(upload: ImportTemplateRequest, { signal }: ControlCall): Promise<ImportedTemplate> {
    const { archive, idempotencyKey, name } = upload;
    const parts = toImportParts({ idempotencyKey, name }, archive);
    const answer = await this.#call({ signal, caller: FLEET, effect: "some" }, (options) =>
      this.#host.importTemplate(parts, options),
    );
    return { template: fromTemplate(required(answer.template, "template")), hosts: 1 };
  }

  async listTemplates(call: ControlCall): Promise<readonly Template[]> {
    const answer = await this.#call(this.#asFleet(call), (options) => this.#host.listTemplates({}, options));
    return answer.templates.map(fromTemplate);
  }

  async capabilities(control: ControlCall): Promise<SandboxCapabilities> {
    const kept = this.#transport.connection() === "kept" ? this.#capabilities : undefined;
    if (kept !== undefined) return kept;
    const answer = await this.#call(this.#reading(control), (options) => this.#host.getCapabilities({}, options));
    this.#capabilities = fromCapabilities(required(answer.capabilities, "capabilities"));
    return this.#capabilities;
  }

  async report(call: { readonly signal: AbortSignal }): Promise<HostReport> {
    const asFleet = this.#asFleet(call);
    const [health, stats, templates] = await Promise.all([
      this.#call(asFleet, (options) => this.#host.healthCheck({}, options)),
      this.#call(asFleet, (options) => this.#host.getStats({}, options)).catch(unlessMissing),
      this.#call(asFleet, (options) => this.#host.listTemplates({}, options)).catch(unlessMissing),
    ]);
    return toReport({ health, stats, templates: templates?.templates ?? [] });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#transport[Symbol.dispose]();
    await Promise.resolve();
  }

  #reading({ signal, tenant }: ControlCall): HostCall {
    return { signal, caller: { kind: "tenant", tenant }, timeoutMs: this.#deadlines.readMs, effect: "none" };
  }

  #changing(control: ControlCall, timeoutMs = this.#deadlines.changeMs): HostCall {
    return { ...this.#reading(control), timeoutMs, effect: "some" };
  }

  #asFleet({ signal }: { readonly signal: AbortSignal }): HostCall {
    return { signal, caller: FLEET, timeoutMs: this.#deadlines.readMs, effect: "none" };
  }

  #toSandbox(session: Session | undefined, capabilities: SandboxCapabilities): Sandbox {
    const described = fromSession(required(session, "session"));
    return { sandboxId: described.sessionId, address: this.#address, capabilities, session: described };
  }
}

const idOf = (sandboxId: string): string => parseSessionId(sandboxId, "sandbox_id");

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
