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
  /** What it was made from; empty where its maker knows no images. */
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
 * Every operation may be repeated: done twice is done once. Calls for the same instance never run at the same time; a
 * launch joins the one in flight, and goes on when its caller leaves. A machine that is not there is
 * `INSTANCE_NOT_FOUND`.
 */
export interface Provisioner extends AsyncDisposable {
  readonly kind: string;
  readonly capabilities: ProvisionerCapabilities;
  /** What new machines are made from; empty where there are no images. */
  readonly image: string;
  /**
   * Answers when the machine is there; it may still be `pending`. One that could not be made leaves nothing behind.
   * `UNIMPLEMENTED` where launch is unsupported, as is terminate.
   */
  launch(spec: LaunchSpec, call: ProvisionerCall): Promise<Machine>;
  /** Ordered by instance id. */
  list(query: MachineQuery, call: ProvisionerCall): Promise<readonly Machine[]>;
  describe(instanceId: string, call: ProvisionerCall): Promise<Machine>;
  /** Answers when the end is accepted. A machine that is gone, or never was, is terminated. */
  terminate(instanceId: string, call: ProvisionerCall): Promise<void>;
  /** Keeps what the machine holds. `UNIMPLEMENTED` where stop and start are unsupported. */
  stop(instanceId: string, call: ProvisionerCall): Promise<Machine>;
  start(instanceId: string, call: ProvisionerCall): Promise<Machine>;
}

/** Whether `machine` is one that `query` asks for. */
export function matchesQuery(machine: Machine, query: MachineQuery): boolean {
  const wanted = query.states.length === 0 ? machine.state !== "terminated" : query.states.includes(machine.state);
  return wanted && Object.entries(query.tags).every(([key, value]) => machine.tags[key] === value);
}
