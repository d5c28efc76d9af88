import { randomUUID } from "node:crypto";
import { hasReason, SandboxError, systemClock } from "@turnbox/core";
import type { Sandbox as WireSandbox } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { SessionState } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { connectHost, connectTurnbox, type HostClients } from "../client.ts";
import { resolveTurnbox } from "../config.ts";
import type { Endpoint } from "../connection.ts";
import type { CallOptions } from "../sandbox/call.ts";
import { createSandbox, type SandboxParts } from "../sandbox/create-sandbox.ts";
import { DEFAULT_TIMEOUT_MS } from "../sandbox/link/default-timeouts.ts";
import { createLinkPool } from "../sandbox/link/link-pool.ts";
import type { SandboxCapabilities } from "../sandbox/sandbox-info.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { toCapabilities, toSandboxInfo } from "../sandbox/to-sandbox-info.ts";
import { listSandboxes, resolveSandbox } from "./find-sandbox.ts";
import { createServerLink } from "./server-link.ts";
import { toCreateRequest } from "./to-create-request.ts";
import { toTemplate } from "./to-template.ts";
import type { CreateOptions, ListOptions, SandboxList, Template, TurnboxOptions } from "./turnbox-types.ts";

/**
 * A Turnbox server: sandboxes are made, found and listed here. Every failure is a `SandboxError`. Its owner closes or
 * disposes of it, and of the sandboxes' handles before.
 */
export class Turnbox implements Disposable {
  readonly url: string;
  readonly #parts: SandboxParts;

  private constructor(url: string, parts: SandboxParts) {
    this.url = url;
    this.#parts = parts;
  }

  /** Nothing is sent before the first call. What the environment says wrongly is refused here. */
  static connect(options: TurnboxOptions = {}): Turnbox {
    const { connect, clock = systemClock } = options;
    const endpoint = resolveTurnbox(options);
    const how = connect === undefined ? {} : { connect };
    const clients = connectTurnbox({ ...endpoint, ...how });
    const host = (to: Endpoint): HostClients => connectHost({ ...to, ...how });
    return new Turnbox(endpoint.url, {
      server: createServerLink(clients, clock),
      clock,
      links: createLinkPool({ server: clients, clock, host }),
    });
  }

  /** Makes a sandbox. Disposing of its handle destroys it, unless `keep()` was called. */
  async create(options: CreateOptions = {}): Promise<Sandbox> {
    const request = toCreateRequest(options, options.idempotencyKey ?? randomUUID());
    const { sandboxId, access } = await this.#parts.server.call(
      (to, call) => to.sandboxes.createSandbox(request, call),
      timeOf(options, "change"),
    );
    return createSandbox(this.#parts, { sandboxId, name: options.name ?? "", origin: "made", access });
  }

  /** The sandbox of a full id, a unique prefix of its session part, or a name. Disposing of its handle leaves it alone. */
  async get(idOrName: string, options: CallOptions = {}): Promise<Sandbox> {
    const { sandboxId, name } = await this.#look(idOrName, options);
    return createSandbox(this.#parts, { sandboxId, name, origin: "found" });
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
   * The sandbox of this name, made where there is none. Whoever asks at the same time gets the same one. It is there to be
   * found again, so that disposing of its handle leaves it alone.
   */
  async getOrCreate(name: string, options: Omit<CreateOptions, "name"> = {}): Promise<Sandbox> {
    for (let tries = 1; ; tries += 1) {
      try {
        return (await this.create({ ...options, name })).keep();
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

  /** Closes all connections, those of handles too; what runs in sandboxes goes on. */
  close(): void {
    this.#parts.links[Symbol.dispose]();
    this.#parts.server[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async #look(idOrName: string, options: CallOptions): Promise<WireSandbox> {
    const { sandbox } = await this.#parts.server.call(
      async (to, call) => to.sandboxes.getSandbox({ sandboxId: await resolveSandbox(to, idOrName, call) }, call),
      timeOf(options, "read"),
    );
    if (sandbox === undefined) throw new SandboxError("INTERNAL", "the server's answer has no sandbox");
    return sandbox;
  }

  /** Undefined where it is gone, or going. */
  async #find(idOrName: string, options: CallOptions): Promise<Sandbox | undefined> {
    try {
      const { sandboxId, name, session } = await this.#look(idOrName, options);
      if (session?.state === SessionState.DESTROYING) return undefined;
      return createSandbox(this.#parts, { sandboxId, name, origin: "found" });
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
