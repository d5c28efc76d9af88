import { join } from "node:path";
import { type Clock, type Log, raceSignal, SandboxError } from "@turnbox/core";
import { checkLaunchSpec, checkMachineQuery } from "../launch-spec.ts";
import { type LaunchSpec, type Machine, type MachineQuery, matchesQuery, type Provisioner } from "../provisioner.ts";
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

interface Call {
  readonly signal: AbortSignal;
}

/**
 * Runs sandbox-hosts as child processes of this one. They live no longer than it does; what they hold is in
 * `<home>/hosts/<instance>` and stays there, also after `terminate`.
 */
export function createLocalProcessProvisioner(options: LocalProcessOptions): Provisioner {
  return new LocalProcessProvisioner(options);
}

class LocalProcessProvisioner implements Provisioner {
  readonly kind = "local-process";
  readonly capabilities = { launch: "supported", stopStart: "supported" } as const;
  readonly image = "";
  readonly #options: LocalProcessOptions;
  readonly #hosts = new Map<string, LocalHost>();

  constructor(options: LocalProcessOptions) {
    this.#options = options;
  }

  async launch(spec: LaunchSpec, { signal }: Call): Promise<Machine> {
    signal.throwIfAborted();
    checkLaunchSpec(spec);
    const known = this.#hosts.get(spec.instanceId);
    const host = known === undefined || known.describe().state === "terminated" ? this.#create(spec) : known;
    this.#hosts.set(spec.instanceId, host);
    try {
      return await startOn(host, signal);
    } catch (error) {
      if (!signal.aborted && this.#hosts.get(spec.instanceId) === host) this.#hosts.delete(spec.instanceId);
      throw error;
    }
  }

  async list(query: MachineQuery, { signal }: Call): Promise<readonly Machine[]> {
    signal.throwIfAborted();
    checkMachineQuery(query);
    await Promise.resolve();
    return [...this.#hosts.values()]
      .map((host) => host.describe())
      .filter((machine) => matchesQuery(machine, query))
      .sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1));
  }

  async describe(instanceId: string, { signal }: Call): Promise<Machine> {
    signal.throwIfAborted();
    await Promise.resolve();
    return this.#get(instanceId).describe();
  }

  async terminate(instanceId: string, { signal }: Call): Promise<void> {
    signal.throwIfAborted();
    const host = this.#hosts.get(instanceId);
    if (host !== undefined) await raceSignal(host.stop("terminated"), signal);
  }

  async stop(instanceId: string, { signal }: Call): Promise<Machine> {
    signal.throwIfAborted();
    const host = this.#get(instanceId);
    await raceSignal(host.stop("stopped"), signal);
    return host.describe();
  }

  async start(instanceId: string, { signal }: Call): Promise<Machine> {
    signal.throwIfAborted();
    return await startOn(this.#get(instanceId), signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#hosts.values()].map((host) => host.stop("stopped")));
  }

  #get(instanceId: string): LocalHost {
    const host = this.#hosts.get(instanceId);
    if (host === undefined) throw new SandboxError("INSTANCE_NOT_FOUND", `there is no instance ${instanceId}`);
    return host;
  }

  #create({ instanceId, tags }: LaunchSpec): LocalHost {
    const { nodePath, hostEntry, home, env, readyTimeoutMs, stopTimeoutMs, clock, logger, onChange } = this.#options;
    const dataDir = join(home, "hosts", instanceId);
    return new LocalHost({
      instanceId,
      tags,
      clock,
      logger: logger.child({ instanceId }),
      onChange: onChange ?? (() => undefined),
      spec: {
        command: nodePath,
        args: [
          hostEntry,
          "serve",
          ...["--home", home],
          ...["--instance", instanceId],
          ...["--data-dir", dataDir],
          ...["--port", "0"],
          "--heartbeat",
        ],
        env,
        logPath: join(home, "logs", `host-${instanceId}.log`),
        readyTimeoutMs,
        stopTimeoutMs,
      },
    });
  }
}

async function startOn(host: LocalHost, signal: AbortSignal): Promise<Machine> {
  await raceSignal(host.start(), signal);
  return host.describe();
}
