import { type Clock, SandboxError } from "@turnbox/core";
import { parseInstanceId } from "../instance-id.ts";
import { checkLaunchSpec, checkMachineQuery } from "../launch-spec.ts";
import { type Machine, matchesQuery, type Provisioner, type Tags } from "../provisioner.ts";

export interface StaticHost {
  readonly instanceId: string;
  readonly url: string;
}

export interface StaticProvisionerOptions {
  /** Machines that are run elsewhere. Ids and urls are unique. */
  readonly hosts: readonly StaticHost[];
  /** The tags of all of them; those of the fleet that they are listed for. */
  readonly tags: Tags;
  readonly clock: Pick<Clock, "nowMs">;
}

/** A fixed list of machines: all of them run for as long as the list says so, and none is made, ended or stopped. */
export function createStaticProvisioner(options: StaticProvisionerOptions): Provisioner {
  const launchedAtMs = options.clock.nowMs();
  const machines = options.hosts
    .map(({ instanceId, url }): Machine => {
      checkHost({ instanceId, url });
      return {
        instanceId,
        state: "running",
        url,
        tags: options.tags,
        launchedAtMs,
        problem: undefined,
        image: "",
        interruption: undefined,
      };
    })
    .sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1));
  checkUnique(options.hosts.map(({ instanceId }) => instanceId));
  checkUnique(options.hosts.map(({ url }) => new URL(url).href));

  const unsupported = async (_instanceId: string, { signal }: { readonly signal: AbortSignal }): Promise<never> => {
    signal.throwIfAborted();
    throw new SandboxError(
      "UNIMPLEMENTED",
      "the machines of a fixed list are made, ended, stopped and started by hand",
    );
  };

  return {
    kind: "static",
    capabilities: { launch: "unsupported", stopStart: "unsupported" },
    image: "",
    launch: async (spec, call) => {
      call.signal.throwIfAborted();
      checkLaunchSpec(spec);
      return await unsupported(spec.instanceId, call);
    },
    list: async (query, { signal }) => {
      signal.throwIfAborted();
      checkMachineQuery(query);
      return machines.filter((machine) => matchesQuery(machine, query));
    },
    describe: async (instanceId, { signal }) => {
      signal.throwIfAborted();
      const found = machines.find((machine) => machine.instanceId === instanceId);
      if (found === undefined) throw new SandboxError("INSTANCE_NOT_FOUND", `there is no instance ${instanceId}`);
      return found;
    },
    terminate: unsupported,
    stop: unsupported,
    start: unsupported,
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

function checkHost({ instanceId, url }: StaticHost): void {
  parseInstanceId(instanceId, "hosts");
  if (!URL.canParse(url) || !["http:", "https:"].includes(new URL(url).protocol)) {
    throw new SandboxError("CONFIG_INVALID", `the url of ${instanceId} must begin with https:// or http://`);
  }
}

function checkUnique(values: readonly string[]): void {
  const twice = values.find((value, index) => values.indexOf(value) !== index);
  if (twice !== undefined) throw new SandboxError("CONFIG_INVALID", `the list of machines has ${twice} twice`);
}
