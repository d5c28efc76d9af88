import { hasReason, SandboxError } from "@turnbox/core";
import type { HostConnection } from "../host-connection.ts";
import { reachableAddress } from "../reachable-address.ts";
import { type ControlCall, type Sandbox, type SandboxControl, type SandboxProcess } from "../sandbox-control.ts";
import { askAll } from "./ask-all.ts";
import { commonCapabilities } from "./common-capabilities.ts";
import { idByName } from "./id-by-name.ts";
import { type CreateSandboxOptions, createCreateSandbox } from "./create-sandbox.ts";
import { createDestroySandbox } from "./destroy-sandbox.ts";
import { parseFleetId } from "./fleet-id.ts";
import { forkOn } from "./fork-sandbox.ts";
import { createListSandboxes, onInstance, withName } from "./list-sandboxes.ts";
import { importOnAll, listOfAll } from "./templates.ts";

/** A sandbox's place: the line to its host, and the same request under the host's own id. */
interface Route {
  readonly host: HostConnection;
  readonly instanceId: string;
  readonly sessionId: string;
}

/**
 * Many hosts behind one `SandboxControl`. Ids are `fleet:<instance>:<session>`: each call goes where its id says, with
 * no map in between that could be lost.
 */
export function createFleetSandboxControl(options: CreateSandboxOptions): SandboxControl {
  const { registry, slots, store, reach, arrivals } = options;

  /** What is asked of all hosts is asked of those that are on their way too. */
  const allHere = (call: ControlCall): Promise<void> => arrivals(registry.instanceIds(), call);

  const route = async (sandboxId: string, call: ControlCall): Promise<Route> => {
    const { instanceId, sessionId } = parseFleetId(sandboxId);
    try {
      return { host: await reach(instanceId, call), instanceId, sessionId };
    } catch (error) {
      if (!hasReason(error, "INSTANCE_NOT_FOUND")) throw error;
      throw new SandboxError("SANDBOX_NOT_FOUND", `there is no sandbox ${sandboxId}`, { cause: error });
    }
  };
  /** The request as its host understands it. */
  const local = <R extends { readonly sandboxId: string }>(request: R, { sessionId }: Route): R => ({
    ...request,
    sandboxId: sessionId,
  });
  const named = async (sandbox: Sandbox, { instanceId, sessionId }: Route, call: ControlCall): Promise<Sandbox> => {
    const row = await store.getSandbox(sessionId, call);
    return withName(onInstance(sandbox, instanceId), row?.tenant === call.tenant ? row.name : undefined);
  };
  const reachable = (process: SandboxProcess, { instanceId }: Route): SandboxProcess => {
    const { url } = registry.instance(instanceId);
    return url === undefined ? process : { ...process, address: reachableAddress(process.address, url) };
  };
  /** What the host says to be gone leaves the index, and with it its name. */
  const forgetIfGone = async <T>(work: Promise<T>, { sessionId }: Route, call: ControlCall): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      if (!hasReason(error, "SANDBOX_NOT_FOUND")) throw error;
      const row = await store.getSandbox(sessionId, call);
      if (row?.tenant === call.tenant && row.phase === "created") await store.deleteSandbox(sessionId, call);
      throw error;
    }
  };

  return {
    createSandbox: createCreateSandbox(options),
    listSandboxes: createListSandboxes(options),
    getSandbox: async (request, call) => {
      const { name = "" } = request;
      const sandboxId = name === "" ? request.sandboxId : await idByName(store, name, call);
      const to = await route(sandboxId, call);
      const sandbox = await forgetIfGone(to.host.getSandbox({ sandboxId: to.sessionId }, call), to, call);
      return await named(sandbox, to, call);
    },
    destroySandbox: createDestroySandbox({
      ...options,
      destroy: async (request, call) => {
        const to = await route(request.sandboxId, call);
        await forgetIfGone(to.host.destroySandbox(local(request, to), call), to, call);
        await store.deleteSandbox(to.sessionId, call);
      },
    }),
    connectSandbox: async (request, call) => {
      const to = await route(request.sandboxId, call);
      const connection = await forgetIfGone(to.host.connectSandbox(local(request, to), call), to, call);
      return { ...connection, sandboxId: request.sandboxId };
    },
    forkSandbox: async (request, call) => {
      const to = await route(request.sandboxId, call);
      return await forgetIfGone(forkOn({ ...to, slots }, local(request, to), call), to, call);
    },
    pauseSandbox: async (request, call) => {
      const to = await route(request.sandboxId, call);
      return await named(await to.host.pauseSandbox(local(request, to), call), to, call);
    },
    resumeSandbox: async (request, call) => {
      const to = await route(request.sandboxId, call);
      return await named(await to.host.resumeSandbox(local(request, to), call), to, call);
    },
    launchProcess: async (request, call) => {
      const to = await route(request.sandboxId, call);
      return reachable(await to.host.launchProcess(local(request, to), call), to);
    },
    killProcess: async (request, call) => {
      const to = await route(request.sandboxId, call);
      await to.host.killProcess(local(request, to), call);
    },
    getProcessStatus: async (request, call) => {
      const to = await route(request.sandboxId, call);
      return reachable(await to.host.getProcessStatus(local(request, to), call), to);
    },
    importTemplate: async (request, call) => {
      await allHere(call);
      return await importOnAll(registry, request, call);
    },
    listTemplates: async (call) => {
      await allHere(call);
      return await listOfAll(registry, call);
    },
    capabilities: async (call) => {
      await allHere(call);
      return commonCapabilities(await askAll(registry, (host) => host.capabilities(call)));
    },
  };
}
