/** Options every operation of the port takes. Cleanup inside an adapter never uses the caller's signal. */
export interface ProvisionerCall {
  readonly signal: AbortSignal;
}

export type Tags = Readonly<Record<string, string>>;

/** What the maker of machines says about one. Whether the host on it is healthy is another question. */
export type MachineState = "pending" | "running" | "stopping" | "stopped" | "terminating" | "terminated";

export interface LaunchSpec {
  /** Chosen by the fleet beforehand, so that a launch whose answer was lost is asked for again and makes nothing new. */
  readonly instanceId: string;
  /** Never empty: what carries no mark of the fleet is never adopted by it. */
  readonly tags: Tags;
  /** What the machine is made from; absent means the configured one. */
  readonly image?: string;
}

/** The maker of a machine takes it back by itself: from when on, and what becomes of it. */
export interface Interruption {
  readonly atMs: number;
  readonly action: "stop" | "terminate";
}

export interface Machine {
  readonly instanceId: string;
  readonly state: MachineState;
  /** Where its sandbox-host is reached; known while it runs, and another one after each start. */
  readonly url: string | undefined;
  readonly tags: Tags;
  readonly launchedAtMs: number;
  /** What went wrong last, for people. */
  readonly problem: string | undefined;
  /** What it was made from; empty if its maker knows no images. */
  readonly image: string;
  readonly interruption: Interruption | undefined;
}

export interface MachineQuery {
  /** Machines that carry all of these; never empty. */
  readonly tags: Tags;
  /** Empty means all but `terminated`. */
  readonly states: readonly MachineState[];
}

export interface ProvisionerCapabilities {
  /** Whether machines can be made and ended; a fixed list of them is only looked at. */
  readonly launch: "supported" | "unsupported";
  /** Whether a machine can be stopped and started again with what it holds. */
  readonly stopStart: "supported" | "unsupported";
}

/**
 * Makes and ends the machines that sandbox-hosts run on.
 *
 * # Words
 *
 * - A _machine_ is what a provisioner makes: a virtual machine, or a process of this machine. The fleet's own record of it
 *   is an _instance_; both have the same id, which the fleet chooses.
 * - _Tags_ are facts that a machine carries. A provisioner lists machines by them, and the fleet takes in only machines with
 *   its own tag.
 * - An _image_ is what a machine is made from.
 * - An _interruption_ is the announcement that the owner of the hardware takes a machine back.
 *
 * # Life cycle
 *
 *     launch -> pending -> running -> terminating -> terminated
 *                            |  ^
 *                       stop v  | start
 *                           stopped
 *
 * A machine is in the list from `launch` on. Once it is `running` it has a url, and its host may still be starting: whether
 * the host serves is found out by asking it. `stop` keeps what the machine holds, and after `start` its url is another one.
 * A machine that has ended stays `terminated` in the list for a while and then disappears from it.
 *
 * # Promises
 *
 * Every operation may be repeated: done twice it returns as if done once, so a caller that does not know the outcome asks
 * again under the same id. Operations on the same instance run one after the other. A `launch` joins one that is under way,
 * and goes on if its caller's signal aborts.
 *
 * # Example: an instance, from its launch to its end
 *
 *     const tags = { "turnbox-fleet": "f1" };
 *     await provisioner.launch({ instanceId: "i-1", tags }, call); // { state: "pending", url: undefined, ... }
 *     // The answer was lost: the same call again makes nothing new.
 *     await provisioner.launch({ instanceId: "i-1", tags }, call);
 *     await provisioner.list({ tags, states: [] }, call); // [{ instanceId: "i-1", state: "running", url: "http://...", ... }]
 *
 *     // It holds only paused sandboxes, and is wanted again on first use.
 *     await provisioner.stop("i-1", call);
 *     await provisioner.start("i-1", call);
 *
 *     // Empty, and not needed any more. A second call is accepted too, also after it has gone.
 *     await provisioner.terminate("i-1", call);
 *
 * # Failures
 *
 * They are `SandboxError`s: `INSTANCE_NOT_FOUND` for a machine that is not there, `UNIMPLEMENTED` for what `capabilities`
 * excludes, and the adapter's own (`CONFIG_INVALID`, `HOST_UNREACHABLE`, ...) if a machine cannot be made.
 */
export interface Provisioner extends AsyncDisposable {
  readonly kind: string;
  readonly capabilities: ProvisionerCapabilities;
  /** What new machines are made from; empty if there are no images. */
  readonly image: string;
  /**
   * Returns when the machine is there; it may still be `pending`. One that could not be made leaves nothing behind.
   * `UNIMPLEMENTED` if launch is unsupported, as is terminate.
   */
  launch(spec: LaunchSpec, call: ProvisionerCall): Promise<Machine>;
  /** Ordered by instance id. */
  list(query: MachineQuery, call: ProvisionerCall): Promise<readonly Machine[]>;
  describe(instanceId: string, call: ProvisionerCall): Promise<Machine>;
  /** Returns when the end is accepted. A machine that is gone, or never was, is terminated. */
  terminate(instanceId: string, call: ProvisionerCall): Promise<void>;
  /** Keeps what the machine holds. `UNIMPLEMENTED` if stop and start are unsupported. */
  stop(instanceId: string, call: ProvisionerCall): Promise<Machine>;
  start(instanceId: string, call: ProvisionerCall): Promise<Machine>;
}

/** Whether `machine` is one that `query` asks for. */
export function matchesQuery(machine: Machine, query: MachineQuery): boolean {
  const wanted = query.states.length === 0 ? machine.state !== "terminated" : query.states.includes(machine.state);
  return wanted && Object.entries(query.tags).every(([key, value]) => machine.tags[key] === value);
}
