import { hasReason, invalidArgument, SandboxError } from "@turnbox/core";
import type { HostConnection } from "../control/host-connection.ts";
import { reachableAddress } from "../control/reachable-address.ts";
import type {
  ControlCall,
  ForkResult,
  ForkSandboxRequest,
  GetSandboxRequest,
  ImportedTemplate,
  ImportTemplateRequest,
  KillProcessRequest,
  LaunchProcessRequest,
  MutateSandboxRequest,
  PauseSandboxRequest,
  ProcessRef,
  Sandbox,
  SandboxCapabilities,
  SandboxConnection,
  SandboxControl,
  SandboxProcess,
  SandboxRef,
  Template,
} from "../control/sandbox-control.ts";
import type { Store } from "../store/store.ts";
import { askAll, commonCapabilities } from "./ask-all.ts";
import { type CreateSandboxOptions, SandboxCreator } from "./create/create-sandbox.ts";
import { createDestroySandbox } from "./destroy-sandbox.ts";
import { formatFleetId, parseFleetId } from "./fleet-id.ts";
import { forkOn } from "./fork-sandbox.ts";
import { createListSandboxes, onInstance, withName } from "./list-sandboxes.ts";
import { importOnAll, type ImportOnAllOptions, listOfAll } from "./template/on-all-hosts.ts";

export type FleetSandboxControlOptions = CreateSandboxOptions & ImportOnAllOptions;

/** Where a sandbox is: the connection to its host, and its id there. */
interface Route {
  readonly host: HostConnection;
  readonly instanceId: string;
  readonly sessionId: string;
}

/**
 * Many hosts behind one `SandboxControl`. Ids are `fleet:<instance>:<session>`: each call goes where its id says, with
 * no map in between that could be lost.
 */
export function createFleetSandboxControl(options: FleetSandboxControlOptions): SandboxControl {
  return new FleetSandboxControl(options);
}

class FleetSandboxControl implements SandboxControl {
  readonly createSandbox: SandboxControl["createSandbox"];
  readonly listSandboxes: SandboxControl["listSandboxes"];
  readonly destroySandbox: SandboxControl["destroySandbox"];
  readonly #options: FleetSandboxControlOptions;

  constructor(options: FleetSandboxControlOptions) {
    const creator = new SandboxCreator(options);
    this.#options = options;
    this.createSandbox = (request, call) => creator.create(request, call);
    this.listSandboxes = createListSandboxes(options);
    this.destroySandbox = createDestroySandbox({
      ...options,
      destroy: (request, call) => this.#destroy(request, call),
    });
  }

  async getSandbox({ sandboxId, name = "" }: GetSandboxRequest, call: ControlCall): Promise<Sandbox> {
    const to = await this.#route(name === "" ? sandboxId : await idByName(this.#options.store, name, call), call);
    const sandbox = await this.#forgetIfGone(to.host.getSandbox({ sandboxId: to.sessionId }, call), to, call);
    return await this.#named(sandbox, to, call);
  }

  async connectSandbox(request: SandboxRef, call: ControlCall): Promise<SandboxConnection> {
    const to = await this.#route(request.sandboxId, call);
    const connection = await this.#forgetIfGone(to.host.connectSandbox(local(request, to), call), to, call);
    return { ...connection, sandboxId: request.sandboxId };
  }

  async forkSandbox(request: ForkSandboxRequest, call: ControlCall): Promise<readonly ForkResult[]> {
    const { slots } = this.#options;
    const to = await this.#route(request.sandboxId, call);
    return await this.#forgetIfGone(forkOn({ ...to, slots }, local(request, to), call), to, call);
  }

  async pauseSandbox(request: PauseSandboxRequest, call: ControlCall): Promise<Sandbox> {
    const to = await this.#route(request.sandboxId, call);
    return await this.#named(await to.host.pauseSandbox(local(request, to), call), to, call);
  }

  async resumeSandbox(request: MutateSandboxRequest, call: ControlCall): Promise<Sandbox> {
    const to = await this.#route(request.sandboxId, call);
    return await this.#named(await to.host.resumeSandbox(local(request, to), call), to, call);
  }

  async launchProcess(request: LaunchProcessRequest, call: ControlCall): Promise<SandboxProcess> {
    const to = await this.#route(request.sandboxId, call);
    return this.#reachable(await to.host.launchProcess(local(request, to), call), to);
  }

  async killProcess(request: KillProcessRequest, call: ControlCall): Promise<void> {
    const to = await this.#route(request.sandboxId, call);
    await to.host.killProcess(local(request, to), call);
  }

  async getProcessStatus(request: ProcessRef, call: ControlCall): Promise<SandboxProcess> {
    const to = await this.#route(request.sandboxId, call);
    return this.#reachable(await to.host.getProcessStatus(local(request, to), call), to);
  }

  async importTemplate(request: ImportTemplateRequest, call: ControlCall): Promise<ImportedTemplate> {
    await this.#allHere(call);
    return await importOnAll(this.#options, request, call);
  }

  async listTemplates(call: ControlCall): Promise<readonly Template[]> {
    await this.#allHere(call);
    return await listOfAll(this.#options.registry, call);
  }

  async capabilities(call: ControlCall): Promise<SandboxCapabilities> {
    await this.#allHere(call);
    return commonCapabilities(await askAll(this.#options.registry, (host) => host.capabilities(call)));
  }

  async #destroy(request: MutateSandboxRequest, call: ControlCall): Promise<void> {
    const to = await this.#route(request.sandboxId, call);
    await this.#forgetIfGone(to.host.destroySandbox(local(request, to), call), to, call);
    await this.#options.store.deleteSandbox(to.sessionId, call);
  }

  async #route(sandboxId: string, call: ControlCall): Promise<Route> {
    const { instanceId, sessionId } = parseFleetId(sandboxId);
    try {
      return { host: await this.#options.wakeHost(instanceId, call), instanceId, sessionId };
    } catch (error) {
      if (!hasReason(error, "INSTANCE_NOT_FOUND")) throw error;
      throw new SandboxError("SANDBOX_NOT_FOUND", `there is no sandbox ${sandboxId}`, { cause: error });
    }
  }

  /** What is asked of all hosts is asked of those that are on their way too. */
  async #allHere(call: ControlCall): Promise<void> {
    await this.#options.awaitHosts(this.#options.registry.instanceIds(), call);
  }

  async #named(sandbox: Sandbox, { instanceId, sessionId }: Route, call: ControlCall): Promise<Sandbox> {
    const row = await this.#options.store.getSandbox(sessionId, call);
    return withName(onInstance(sandbox, instanceId), row?.tenant === call.tenant ? row.name : undefined);
  }

  #reachable(process: SandboxProcess, { instanceId }: Route): SandboxProcess {
    const { url } = this.#options.registry.instance(instanceId);
    return url === undefined ? process : { ...process, address: reachableAddress(process.address, url) };
  }

  /** What the host says to be gone leaves the index, and with it its name. */
  async #forgetIfGone<T>(work: Promise<T>, { sessionId }: Route, call: ControlCall): Promise<T> {
    const { store } = this.#options;
    try {
      return await work;
    } catch (error) {
      if (!hasReason(error, "SANDBOX_NOT_FOUND")) throw error;
      const row = await store.getSandbox(sessionId, call);
      if (row?.tenant === call.tenant && row.phase === "created") await store.deleteSandbox(sessionId, call);
      throw error;
    }
  }
}

/** The request as its host understands it. */
const local = <R extends SandboxRef>(request: R, { sessionId }: Route): R => ({ ...request, sandboxId: sessionId });

/** The id of the tenant's sandbox that has this name, or whose id has this session part. */
async function idByName(store: Store, name: string, call: ControlCall): Promise<string> {
  const [row, other] = await store.findSandboxes({ tenant: call.tenant, name }, call);
  if (other !== undefined) throw invalidArgument("name", "is the name of one sandbox and part of the id of another");
  if (row?.instanceId === undefined) throw new SandboxError("SANDBOX_NOT_FOUND", `there is no sandbox ${name}`);
  return formatFleetId({ instanceId: row.instanceId, sessionId: row.sessionId });
}
