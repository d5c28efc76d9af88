import { type Clock, raceSignal, SandboxError } from "@turnbox/core";
import { checkLaunchSpec, checkMachineQuery } from "../launch-spec.ts";
import {
  type LaunchSpec,
  type Machine,
  matchesQuery,
  type Provisioner,
  type ProvisionerCapabilities,
} from "../provisioner.ts";

/** A provisioner whose machines are entries of a map. */
export interface FakeProvisioner extends Provisioner {
  /** Changes what is said about a machine, as an outage or a reboot would. */
  change(instanceId: string, changes: Partial<Machine>): void;
  /** Takes a machine out of every answer, as a cloud does that has not caught up, and puts it back. */
  hide(instanceId: string): void;
  show(instanceId: string): void;
  /** Each launch that made a machine, in order. */
  readonly launches: readonly string[];
  /** Each end that was asked for, in order. */
  readonly terminations: readonly string[];
}

export interface FakeProvisionerOptions {
  readonly clock: Pick<Clock, "nowMs">;
  /** What a launch waits for; an error from it fails the launch. */
  readonly boot?: (instanceId: string) => Promise<void>;
  readonly urlOf?: (instanceId: string) => string;
  readonly capabilities?: Partial<ProvisionerCapabilities>;
  readonly image?: string;
}

export function createFakeProvisioner(options: FakeProvisionerOptions): FakeProvisioner {
  const {
    clock,
    boot = () => Promise.resolve(),
    urlOf = (instanceId: string) => `http://${instanceId}.test:9100`,
  } = options;
  const machines = new Map<string, Machine>();
  const launching = new Map<string, Promise<Machine>>();
  const launches: string[] = [];
  const terminations: string[] = [];
  const hidden = new Set<string>();
  const capabilities = { launch: "supported", stopStart: "supported", ...options.capabilities } as const;
  const { image = "image-1" } = options;

  const get = (instanceId: string): Machine => {
    const machine = machines.get(instanceId);
    if (machine === undefined) throw new SandboxError("INSTANCE_NOT_FOUND", `there is no instance ${instanceId}`);
    return machine;
  };
  const change = (instanceId: string, changes: Partial<Machine>): Machine => {
    const machine = { ...get(instanceId), ...changes };
    machines.set(instanceId, machine);
    return machine;
  };
  const require = (ability: keyof ProvisionerCapabilities): void => {
    if (capabilities[ability] === "unsupported") throw new SandboxError("UNIMPLEMENTED", `${ability} is unsupported`);
  };
  const launch = async (spec: LaunchSpec): Promise<Machine> => {
    launches.push(spec.instanceId);
    const launchedAtMs = clock.nowMs();
    await boot(spec.instanceId);
    const machine = {
      image,
      ...spec,
      state: "running",
      interruption: undefined,
      url: urlOf(spec.instanceId),
      launchedAtMs,
      problem: undefined,
    } as const;
    machines.set(spec.instanceId, machine);
    return machine;
  };

  return {
    kind: "fake",
    capabilities,
    image,
    launches,
    terminations,
    hide: (instanceId) => void hidden.add(instanceId),
    show: (instanceId) => void hidden.delete(instanceId),
    change: (instanceId, changes) => void change(instanceId, changes),
    launch: async (spec, { signal }) => {
      signal.throwIfAborted();
      require("launch");
      checkLaunchSpec(spec);
      const there = machines.get(spec.instanceId);
      if (there !== undefined) return there;
      const joined = launching.get(spec.instanceId) ?? launch(spec);
      launching.set(spec.instanceId, joined);
      try {
        return await raceSignal(joined, signal);
      } finally {
        launching.delete(spec.instanceId);
      }
    },
    list: async (query, { signal }) => {
      signal.throwIfAborted();
      checkMachineQuery(query);
      await Promise.resolve();
      return [...machines.values()]
        .filter((machine) => !hidden.has(machine.instanceId) && matchesQuery(machine, query))
        .sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1));
    },
    describe: async (instanceId, { signal }) => {
      signal.throwIfAborted();
      await Promise.resolve();
      return get(instanceId);
    },
    terminate: async (instanceId, { signal }) => {
      signal.throwIfAborted();
      require("launch");
      await Promise.resolve();
      terminations.push(instanceId);
      if (machines.has(instanceId)) change(instanceId, { state: "terminated", url: undefined });
    },
    stop: async (instanceId, { signal }) => {
      signal.throwIfAborted();
      require("stopStart");
      await Promise.resolve();
      return change(instanceId, { state: "stopped", url: undefined });
    },
    start: async (instanceId, { signal }) => {
      signal.throwIfAborted();
      require("stopStart");
      await Promise.resolve();
      return change(instanceId, { state: "running", url: urlOf(instanceId) });
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
