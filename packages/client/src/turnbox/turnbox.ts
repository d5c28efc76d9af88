import { randomUUID } from "node:crypto";
import { hasReason, SandboxError, systemClock } from "@turnbox/core";
import type { Sandbox as WireSandbox } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { SessionState } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { connectHost, connectTurnbox, type HostClients } from "../client.ts";
import { resolveTurnbox } from "../config.ts";
import type { Endpoint } from "../connection.ts";
import { createFleet } from "../fleet/create-fleet.ts";
import type { Fleet } from "../fleet/fleet-types.ts";
import { createOperatorHosts, type OperatorHosts } from "../fleet/operator-hosts.ts";
import type { CallOptions, KeyedOptions } from "../sandbox/call.ts";
import { createSandbox, type SandboxParts } from "../sandbox/create-sandbox.ts";
import { DEFAULT_TIMEOUT_MS } from "../sandbox/link/default-timeouts.ts";
import { createLinkPool } from "../sandbox/link/link-pool.ts";
import type { SandboxCapabilities } from "../sandbox/sandbox-info.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { toCapabilities, toSandboxInfo } from "../sandbox/to-sandbox-info.ts";
import { createToolDefinitions } from "../sandbox/tool/create-tool-definitions.ts";
import type { ToolDefinitions } from "../sandbox/tool/tool-definitions.ts";
import { destroyAndWait } from "./destroy-and-wait.ts";
import { listSandboxes, resolveSandbox } from "./find-sandbox.ts";
import { createServerLink } from "../sandbox/link/server-link.ts";
import { toCreateRequest } from "./to-create-request.ts";
import { importTemplate, removeTemplate, toTemplate } from "./templates.ts";
import type {
  CreateOptions,
  DestroyAndWaitOptions,
  ImportedTemplate,
  ListOptions,
  Residue,
  SandboxList,
  Template,
  TurnboxOptions,
} from "./turnbox-types.ts";
import { watchSandboxes } from "./watch-sandboxes.ts";

/**
 * A Turnbox server: sandboxes are made, found and listed here. Every failure is a `SandboxError`. Its owner closes or
 * disposes of it, and of the sandboxes' handles before.
 */
export class Turnbox implements Disposable {
  readonly url: string;
  /** The machines behind the sandboxes, for their operator. */
  readonly fleet: Fleet;
  readonly #parts: SandboxParts;
  readonly #operator: OperatorHosts;
  readonly #host: (to: Endpoint) => HostClients;

  private constructor(parts: SandboxParts, host: (to: Endpoint) => HostClients) {
    const { server } = parts;
    this.url = server.clients.endpoint.url;
    this.#parts = parts;
    this.#host = host;
    this.#operator = createOperatorHosts({ server, host });
    this.fleet = createFleet(server, this.#operator);
  }

  /** Nothing is sent before the first call. What the environment says wrongly is refused here. */
  static connect(options: TurnboxOptions = {}): Turnbox {
    const { connect, clock = systemClock } = options;
    const endpoint = resolveTurnbox(options);
    const how = connect === undefined ? {} : { connect };
    const clients = connectTurnbox({ ...endpoint, ...how });
    const host = (to: Endpoint): HostClients => connectHost({ ...to, ...how });
    const links = createLinkPool({ server: clients, clock, host });
    return new Turnbox({ server: createServerLink(clients, clock), clock, links }, host);
  }

  /**
   * Makes a sandbox. Disposing of its handle destroys it, unless `keep()` was called. If the call is ended by its signal or its time,
   * the server destroys what it was making; under an `idempotencyKey` of the caller's it makes it, and the key finds it.
   */
  async create(options: CreateOptions = {}): Promise<Sandbox> {
    return await this.#create(options, options.idempotencyKey === undefined ? "discard" : "keep");
  }

  async #create(options: CreateOptions, ifAbandoned: "discard" | "keep"): Promise<Sandbox> {
    const { idempotencyKey = randomUUID() } = options;
    const request = toCreateRequest(options, { idempotencyKey, discardIfAbandoned: ifAbandoned === "discard" });
    const { sandboxId, sandbox, access } = await this.#parts.server.call(
      (to, call) => to.sandboxes.createSandbox(request, call),
      timeOf(options, "change"),
    );
    return createSandbox(this.#parts, {
      sandboxId,
      name: options.name ?? "",
      known: sandbox,
      origin: "made",
      access,
    });
  }

  /** The sandbox of a full id, a unique prefix of its session part, or a name. Disposing of its handle leaves it alone. */
  async get(idOrName: string, options: CallOptions = {}): Promise<Sandbox> {
    return this.#found(await this.#look(idOrName, options));
  }

  /** The same without asking whether it is there, which the first call finds out. For a full id nothing is sent. */
  async handle(idOrName: string, options: CallOptions = {}): Promise<Sandbox> {
    const sandboxId = await this.#resolve(idOrName, options);
    return createSandbox(this.#parts, { sandboxId, name: "", origin: "found" });
  }

  /** All sandboxes, or those with these labels. */
  async list(options: ListOptions = {}): Promise<SandboxList> {
    const { labels = {} } = options;
    const found = await this.#parts.server.call(
      (to, { signal }) => listSandboxes(to, { labels, signal }),
      timeOf(options, "read"),
    );
    return { ...found, sandboxes: found.sandboxes.map(toSandboxInfo) };
  }

  /**
   * The sandbox of this name, made if there is none. Calls at the same time get the same one. It is there to be
   * found again, so that disposing of its handle leaves it alone.
   */
  async getOrCreate(name: string, options: Omit<CreateOptions, "name"> = {}): Promise<Sandbox> {
    for (let tries = 1; ; tries += 1) {
      try {
        // Others may have found it by its name already.
        return (await this.#create({ ...options, name }, "keep")).keep();
      } catch (thrown) {
        if (!hasReason(thrown, "SANDBOX_EXISTS")) throw thrown;
        const found = await this.#find(thrown.metadata["sandboxId"] ?? name, options);
        if (found !== undefined) return found;
        // It was destroyed in between, and its name is free, or will be in a moment.
        if (tries === TRIES_TO_CREATE) throw thrown;
        await this.#parts.clock.sleep(NEXT_TRY_MS, options.signal === undefined ? {} : { signal: options.signal });
      }
    }
  }

  /**
   * The list, at once and whenever something may have changed, but at least once a second. What happened between two lists is
   * left to the reader.
   */
  watch({ labels, signal }: Pick<ListOptions, "labels" | "signal"> = {}): AsyncIterable<SandboxList> {
    const list = (own: AbortSignal) => this.list({ ...(labels && { labels }), signal: own });
    return watchSandboxes({ operator: this.#operator, clock: this.#parts.clock, list, signal });
  }

  /**
   * Destroys a sandbox by its full id and waits until its host has removed what is left of it. The removal goes on if the time
   * passes first.
   */
  async destroyAndWait(sandboxId: string, options: DestroyAndWaitOptions = {}): Promise<Residue> {
    const { server, clock } = this.#parts;
    return await destroyAndWait({ server, clock, operator: this.#operator, host: this.#host }, sandboxId, options);
  }

  /**
   * The tools of a new sandbox, without making one: asked from a host on this machine. Undefined if there is none, or none
   * that may be asked.
   */
  async catalog(options: CallOptions = {}): Promise<ToolDefinitions | undefined> {
    const time = timeOf(options, "read");
    try {
      const local = (await this.#operator.list(time)).find(this.#operator.isTrusted);
      if (local === undefined) return undefined;
      using host = this.#operator.open(local);
      const { tools } = await host.tools.listTools({ sessionId: "" }, time);
      return createToolDefinitions(tools);
    } catch (thrown) {
      if (hasReason(thrown, "PERMISSION_DENIED", "UNAUTHENTICATED", "HOST_UNREACHABLE", "UNIMPLEMENTED"))
        return undefined;
      throw thrown;
    }
  }

  /** What every host of the fleet can do. */
  async capabilities(options: CallOptions = {}): Promise<SandboxCapabilities> {
    const { capabilities } = await this.#parts.server.call(
      (to, call) => to.sandboxes.getCapabilities({}, call),
      timeOf(options, "read"),
    );
    if (capabilities === undefined) throw new SandboxError("INTERNAL", "the server's answer has no capabilities");
    return toCapabilities(capabilities);
  }

  /** By name, then newest first. */
  async templates(options: CallOptions = {}): Promise<readonly Template[]> {
    const { templates } = await this.#parts.server.call(
      (to, call) => to.sandboxes.listTemplates({}, call),
      timeOf(options, "read"),
    );
    return templates.map(toTemplate);
  }

  /** Makes a template from a tar archive (plain or gzip) of a root filesystem, on every host. The archive is read once. */
  async importTemplate(
    name: string,
    archive: AsyncIterable<Uint8Array>,
    options: KeyedOptions = {},
  ): Promise<ImportedTemplate> {
    return await importTemplate(this.#parts.server, { name, archive }, options);
  }

  /**
   * Removes a version of a template from every host; returns how many had it. The hosts are asked with the server's token, and
   * so it is `UNIMPLEMENTED` unless all of them are on this machine together with the server.
   */
  async removeTemplate(template: Pick<Template, "name" | "digest">, options: KeyedOptions = {}): Promise<number> {
    return await removeTemplate(this.#operator, template, options);
  }

  /** Closes all connections, those of handles too; what runs in sandboxes goes on. */
  close(): void {
    this.#parts.links[Symbol.dispose]();
    this.#parts.server[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #look(idOrName: string, options: CallOptions): Promise<WireSandbox> {
    const sandboxId = await this.#resolve(idOrName, options);
    const { sandbox } = await this.#parts.server.call(
      (to, call) => to.sandboxes.getSandbox({ sandboxId }, call),
      timeOf(options, "read"),
    );
    if (sandbox === undefined) throw new SandboxError("INTERNAL", "the server's answer has no sandbox");
    return sandbox;
  }

  #resolve(idOrName: string, options: CallOptions): Promise<string> {
    return this.#parts.server.call((to, call) => resolveSandbox(to, idOrName, call), timeOf(options, "read"));
  }

  #found(known: WireSandbox): Sandbox {
    const { sandboxId, name } = known;
    return createSandbox(this.#parts, { sandboxId, name, known, origin: "found" });
  }

  /** Undefined if it is gone, or going. */
  async #find(idOrName: string, options: CallOptions): Promise<Sandbox | undefined> {
    try {
      const known = await this.#look(idOrName, options);
      return known.session?.state === SessionState.DESTROYING ? undefined : this.#found(known);
    } catch (thrown) {
      if (hasReason(thrown, "SANDBOX_NOT_FOUND")) return undefined;
      throw thrown;
    }
  }
}

const TRIES_TO_CREATE = 5;
const NEXT_TRY_MS = 200;

const timeOf = ({ signal, timeoutMs }: CallOptions, kind: "read" | "change") => ({
  timeoutMs: timeoutMs ?? DEFAULT_TIMEOUT_MS[kind],
  ...(signal && { signal }),
});
