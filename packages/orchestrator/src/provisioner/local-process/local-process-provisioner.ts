import { join } from "node:path";
import { type Clock, SandboxError } from "@turnbox/core";
import type { Log } from "@turnbox/core";
import { whileWanted } from "../../async/while-wanted.ts";
import { checkLaunchSpec, checkMachineQuery } from "../launch-spec.ts";
import { type LaunchSpec, type Machine, matchesQuery, type Provisioner } from "../provisioner.ts";
import { LocalHost } from "./local-host.ts";

export interface LocalProcessOptions {
  /** The program that runs the host's entry. */
  readonly nodePath: string;
  /** The script that is the sandbox-host. */
  readonly hostEntry: string;
  readonly home: string;
  /** The whole environment of each host. */
  readonly env: Readonly<Record<string, string>>;
  readonly readyTimeoutMs: number;
  readonly stopTimeoutMs: number;
  readonly clock: Clock;
  readonly logger: Log;
  /** Called after each change of a machine: a restarted host has another url. */
  readonly onChange?: () => void;
}

/**
 * Runs sandbox-hosts as child processes of this one. They live no longer than it does; what they hold is in
 * `<home>/hosts/<instance>` and stays there, also after `terminate`.
 */
export function createLocalProcessProvisioner(options: LocalProcessOptions): Provisioner {
  const hosts = new Map<string, LocalHost>();

  const create = ({ instanceId, tags }: LaunchSpec): LocalHost =>
    new LocalHost({
      instanceId,
      tags,
      clock: options.clock,
      logger: options.logger.child({ instanceId }),
      onChange: options.onChange ?? (() => undefined),
      spec: {
        command: options.nodePath,
        args: [
          options.hostEntry,
          "serve",
          ...["--home", options.home],
          ...["--instance", instanceId],
          ...["--data-dir", join(options.home, "hosts", instanceId)],
          ...["--port", "0"],
          "--heartbeat",
        ],
        env: options.env,
        logPath: join(options.home, "logs", `host-${instanceId}.log`),
        readyTimeoutMs: options.readyTimeoutMs,
        stopTimeoutMs: options.stopTimeoutMs,
      },
    });

  const get = (instanceId: string): LocalHost => {
    const host = hosts.get(instanceId);
    if (host === undefined) throw new SandboxError("INSTANCE_NOT_FOUND", `there is no instance ${instanceId}`);
    return host;
  };

  const startOn = async (host: LocalHost, signal: AbortSignal): Promise<Machine> => {
    await whileWanted(host.start(), signal);
    return host.describe();
  };

  return {
    kind: "local-process",
    capabilities: { launch: "supported", stopStart: "supported" },
    image: "",
    launch: async (spec, { signal }) => {
      signal.throwIfAborted();
      checkLaunchSpec(spec);
      const known = hosts.get(spec.instanceId);
      const host = known === undefined || known.describe().state === "terminated" ? create(spec) : known;
      hosts.set(spec.instanceId, host);
      try {
        return await startOn(host, signal);
      } catch (error) {
        if (!signal.aborted && hosts.get(spec.instanceId) === host) hosts.delete(spec.instanceId);
        throw error;
      }
    },
    list: async (query, { signal }) => {
      signal.throwIfAborted();
      checkMachineQuery(query);
      await Promise.resolve();
      return [...hosts.values()]
        .map((host) => host.describe())
        .filter((machine) => matchesQuery(machine, query))
        .sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1));
    },
    describe: async (instanceId, { signal }) => {
      signal.throwIfAborted();
      await Promise.resolve();
      return get(instanceId).describe();
    },
    terminate: async (instanceId, { signal }) => {
      signal.throwIfAborted();
      const host = hosts.get(instanceId);
      if (host !== undefined) await whileWanted(host.stop("terminated"), signal);
    },
    stop: async (instanceId, { signal }) => {
      signal.throwIfAborted();
      const host = get(instanceId);
      await whileWanted(host.stop("stopped"), signal);
      return host.describe();
    },
    start: async (instanceId, { signal }) => {
      signal.throwIfAborted();
      return await startOn(get(instanceId), signal);
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all([...hosts.values()].map((host) => host.stop("stopped")));
    },
  };
}
