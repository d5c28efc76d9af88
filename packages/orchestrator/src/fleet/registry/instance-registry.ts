import { isDeepStrictEqual } from "node:util";
import { type Clock, createDeadline, type Log, SandboxError } from "@turnbox/core";
import type { FleetChange, FleetInstance, FleetView } from "../fleet-view.ts";
import type { Machine, MachineState, Provisioner } from "../../provisioner/provisioner.ts";
import type { InstanceRow, Store } from "../../store/store.ts";
import type { HostConnection, HostReport } from "../../control/host-connection.ts";
import { ChangeFeed } from "./change-feed.ts";
import { fleetTags, isOwn } from "./fleet-tags.ts";
import { type Entry, toFleetInstance, toPlacement, toView, NO_ANSWERS, unwrittenRow } from "./instance-entry.ts";
import type { InstanceView } from "./instance-view.ts";
import type { PlacementInstance } from "../placement/placement.ts";
import type { Slots } from "../placement/slots.ts";

export interface InstanceRegistryOptions {
  readonly fleetId: string;
  readonly provisioner: Provisioner;
  readonly store: Store;
  readonly slots: Slots;
  /** Makes a line to the host at a url; nothing is sent before the first call on it. */
  readonly connectHost: (url: string) => HostConnection;
  readonly reportTimeoutMs: number;
  readonly clock: Clock;
  readonly logger: Log;
}

interface Call {
  readonly signal: AbortSignal;
}

const NO_TEMPLATES: ReadonlySet<string> = new Set();

/**
 * The instances of the fleet: what is on record about them, what their maker says, a line to each host, and what each
 * host said last. It is level-triggered: `sync` and `refresh` look at what is there, whatever was missed before.
 *
 * Only machines with the fleet's own tag are taken in. An instance that is on record stays known, with its line, when a
 * list of its maker lacks it. A booting machine is not ready before its host has answered, and before that answer is on
 * record: every replica that reads the record knows that the instance may hold sandboxes.
 */
export class InstanceRegistry implements FleetView, AsyncDisposable {
  readonly fleetId: string;
  readonly #options: InstanceRegistryOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #placements = new Map<string, PlacementInstance>();
  readonly #shown = new Map<string, FleetInstance>();
  readonly #feed = new ChangeFeed();
  /** When the question was asked whose answer is the last one taken in. */
  readonly #askedMs = new WeakMap<HostConnection, number>();
  #syncing: Promise<void> = Promise.resolve();

  constructor(options: InstanceRegistryOptions) {
    this.#options = options;
    this.fleetId = options.fleetId;
    options.slots.listen((instanceId) => {
      const entry = this.#entries.get(instanceId);
      const templates = this.#placements.get(instanceId)?.templates;
      if (entry !== undefined) this.#rank(entry, templates ?? NO_TEMPLATES);
    });
  }

  /** Takes in the records and what the maker of machines says. Runs one after another. */
  async sync(call: Call): Promise<void> {
    const turn = this.#syncing.then(() => this.#sync(call));
    this.#syncing = turn.catch(() => undefined);
    await turn;
  }

  /**
   * `sync`, and a question to every host, all at once. A host that does not answer stays what it was, but gets nothing
   * new. The hosts are asked also if the look at records and machines fails.
   */
  async refresh(call: Call): Promise<void> {
    const [synced] = await Promise.allSettled([this.sync(call)]);
    await Promise.all([...this.#entries.keys()].map((instanceId) => this.ask(instanceId, call)));
    if (synced.status === "rejected") throw synced.reason;
  }

  /** The line to a host. An instance without a running host cannot be reached, and nothing was sent to it. */
  connection(instanceId: string): HostConnection {
    const entry = this.#entries.get(instanceId);
    if (entry === undefined) throw new SandboxError("INSTANCE_NOT_FOUND", `the fleet has no instance ${instanceId}`);
    if (entry.connection !== undefined) return entry.connection;
    const state = entry.machine?.state ?? "not running";
    const problem = entry.machine?.problem === undefined ? "" : `: ${entry.machine.problem}`;
    throw new SandboxError("HOST_UNREACHABLE", `the instance ${instanceId} is ${state}${problem}`, {
      admitted: "no",
      metadata: { instanceId },
    });
  }

  allIds(): readonly string[] {
    return this.#ids(() => true);
  }

  /** All that may hold sandboxes. */
  instanceIds(): readonly string[] {
    return this.#ids((entry) => entry.row.goal !== "terminated");
  }

  /** Those with a line to their host. */
  connectedIds(): readonly string[] {
    return this.#ids((entry) => entry.connection !== undefined && entry.row.goal !== "terminated");
  }

  instances(): readonly FleetInstance[] {
    return [...this.#shown.values()].sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1));
  }

  instance(instanceId: string): FleetInstance {
    const shown = this.#shown.get(instanceId);
    if (shown === undefined) throw new SandboxError("INSTANCE_NOT_FOUND", `the fleet has no instance ${instanceId}`);
    return shown;
  }

  row(instanceId: string): InstanceRow | undefined {
    return this.#entries.get(instanceId)?.row;
  }

  /** As its maker said last; undefined if no list has had it. */
  machineState(instanceId: string): MachineState | undefined {
    return this.#entries.get(instanceId)?.machine?.state;
  }

  /** Its host has answered in an earlier life, and in this one it has not been asked yet, or not answered. */
  isComing(instanceId: string): boolean {
    const entry = this.#entries.get(instanceId);
    if (entry?.row.goal !== "running" || !entry.row.hasAnswered || entry.row.version === 0) return false;
    const { machine, report, silence } = entry;
    if (report !== undefined || silence !== undefined || machine?.problem !== undefined) return false;
    return machine?.state === "pending" || machine?.state === "running";
  }

  /** The last answer, if the host has given one to the last question. */
  report(instanceId: string): HostReport | undefined {
    const entry = this.#entries.get(instanceId);
    return entry?.silence === undefined ? entry?.report : undefined;
  }

  changes(call: Call): AsyncIterable<FleetChange> {
    return this.#feed.changes(call);
  }

  /** Calls the listener after each change, until it is disposed of. */
  listen(listener: (change: FleetChange) => void): Disposable {
    return this.#feed.listen(listener);
  }

  /** What placement decides on: reports, and what was promised since. */
  placementView(): Iterable<PlacementInstance> {
    return this.#placements.values();
  }

  views(terminateTries: (instanceId: string) => number): readonly InstanceView[] {
    return [...this.#entries.values()].map((entry) => {
      const { instanceId } = entry.row;
      return toView(entry, this.#options.slots.promised(instanceId), terminateTries(instanceId));
    });
  }

  /** Takes in a row that was just put, so that what comes next decides on it. */
  adoptRow(row: InstanceRow): void {
    const known = this.#entries.get(row.instanceId);
    if (known !== undefined && known.row.version > row.version) return;
    this.#set({ ...(known ?? this.#unseen(row)), row });
  }

  /** What people should know about an instance; empty takes it back. Returns whether it is something new. */
  notice(instanceId: string, notice: string): "new" | "known" {
    const entry = this.#entries.get(instanceId);
    if (entry === undefined || entry.notice === notice) return "known";
    this.#set({ ...entry, notice });
    return notice === "" ? "known" : "new";
  }

  async drop(instanceId: string): Promise<void> {
    const entry = this.#entries.get(instanceId);
    if (entry === undefined) return;
    this.#entries.delete(instanceId);
    this.#placements.delete(instanceId);
    this.#shown.delete(instanceId);
    this.#options.slots.forget(instanceId);
    this.#feed.publish({ kind: "removed", instance: toFleetInstance(entry) });
    await entry.connection?.[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#syncing;
    const connections = [...this.#entries.values()].flatMap((entry) => entry.connection ?? []);
    this.#entries.clear();
    this.#placements.clear();
    await Promise.all(connections.map((connection) => connection[Symbol.asyncDispose]()));
  }

  /** Asks one host how it is. */
  async ask(instanceId: string, call: Call): Promise<void> {
    const { clock, reportTimeoutMs, slots } = this.#options;
    const connection = this.#entries.get(instanceId)?.connection;
    if (connection === undefined) return;
    const askedAtMs = clock.monotonicMs();
    using deadline = createDeadline({ clock, ms: reportTimeoutMs, signal: call.signal });
    const answer = await connection.report({ signal: deadline.signal }).then(
      (report) => ({ report }),
      (error: unknown) => ({ silence: SandboxError.from(error).message }),
    );
    call.signal.throwIfAborted();
    const answering = this.#entries.get(instanceId);
    if (answering?.connection !== connection) return;
    if ("silence" in answer) {
      this.#silent(answering, answer.silence);
      return;
    }
    if (!(await this.#isOnRecord(answering, call))) return;
    const entry = this.#entries.get(instanceId);
    if (entry?.connection !== connection) return;
    // An answer to an earlier question that comes late is older than what is known.
    if (askedAtMs < (this.#askedMs.get(connection) ?? askedAtMs)) return;
    this.#askedMs.set(connection, askedAtMs);
    slots.reported(instanceId, askedAtMs);
    this.#answered(entry, answer.report);
  }

  #ids(isWanted: (entry: Entry) => boolean): readonly string[] {
    return [...this.#entries.values()]
      .filter(isWanted)
      .map(({ row }) => row.instanceId)
      .sort();
  }

  #answered(entry: Entry, report: HostReport): void {
    const { clock, logger, slots } = this.#options;
    const { instanceId } = entry.row;
    if (entry.silence !== undefined) logger.info({ instanceId }, "a host answers again");
    const isBusy = report.sessionCount + slots.promised(instanceId).sessions > 0;
    const isIll = report.health === "unhealthy";
    this.#set({
      ...entry,
      report,
      silence: undefined,
      goodInRow: isIll ? 0 : entry.goodInRow + 1,
      badInRow: isIll ? entry.badInRow + 1 : 0,
      idleSinceMs: isBusy || entry.report === undefined ? clock.nowMs() : entry.idleSinceMs,
    });
  }

  #silent(entry: Entry, silence: string): void {
    const { instanceId } = entry.row;
    if (entry.silence === undefined)
      this.#options.logger.warn({ instanceId, problem: silence }, "a host does not answer");
    this.#set({ ...entry, silence, goodInRow: 0, badInRow: entry.badInRow + 1 });
  }

  /** Whether it is on record that the host has answered; puts it there if it is not. */
  async #isOnRecord({ row }: Entry, call: Call): Promise<boolean> {
    if (row.version > 0 && row.hasAnswered) return true;
    if (row.goal === "terminated") return false;
    const put = await this.#options.store.putInstance({ ...row, hasAnswered: true }, call);
    if (put === "changed") return false;
    this.adoptRow({ ...row, hasAnswered: true, version: row.version + 1 });
    return true;
  }

  async #sync(call: Call): Promise<void> {
    const before = [...this.#entries.keys()];
    const machines = await this.#ownMachines(call);
    const rows = new Map((await this.#options.store.listInstances(call)).map((row) => [row.instanceId, row]));
    for (const [instanceId, machine] of machines) {
      const row = rows.get(instanceId) ?? (machine.state === "terminated" ? undefined : unwrittenRow(machine));
      if (row !== undefined) await this.#take(row, machine);
    }
    for (const [instanceId, row] of rows) {
      if (!machines.has(instanceId)) await this.#take(row, undefined);
    }
    // What came in meanwhile may be too new for what was read.
    for (const instanceId of before) {
      const isGone = (machines.get(instanceId)?.state ?? "terminated") === "terminated";
      if (isGone && !rows.has(instanceId)) await this.drop(instanceId);
    }
  }

  async #ownMachines(call: Call): Promise<ReadonlyMap<string, Machine>> {
    const { provisioner } = this.#options;
    const tags = fleetTags(this.fleetId);
    const [listed, ended] = await Promise.all([
      provisioner.list({ tags, states: [] }, call),
      provisioner.list({ tags, states: ["terminated"] }, call),
    ]);
    const own = [...ended, ...listed].filter((machine) => isOwn(machine, this.fleetId));
    return new Map(own.map((machine) => [machine.instanceId, machine]));
  }

  #unseen(row: InstanceRow): Entry {
    const seen = { machine: undefined, missedLists: 0, connection: undefined, notice: "" };
    return { ...NO_ANSWERS, ...seen, row, idleSinceMs: this.#options.clock.nowMs() };
  }

  /** Another url is another host process: its line is new, and so is everything it says. */
  async #take(stored: InstanceRow, listed: Machine | undefined): Promise<void> {
    const known = this.#entries.get(stored.instanceId);
    const entry = known ?? this.#unseen(stored);
    const row = entry.row.version > stored.version ? entry.row : stored;
    if (listed === undefined) {
      this.#set({ ...entry, row, missedLists: entry.missedLists + 1 });
      return;
    }
    if (known !== undefined && entry.machine?.url === listed.url) {
      this.#set({ ...entry, row, machine: listed, missedLists: 0 });
      return;
    }
    const connection = listed.url === undefined ? undefined : this.#options.connectHost(listed.url);
    this.#set({ ...entry, ...NO_ANSWERS, row, machine: listed, missedLists: 0, connection });
    await entry.connection?.[Symbol.asyncDispose]();
  }

  #set(entry: Entry): void {
    const { instanceId } = entry.row;
    const before = this.#entries.get(instanceId);
    this.#entries.set(instanceId, entry);
    const known = this.#placements.get(instanceId)?.templates;
    this.#rank(entry, before?.report === entry.report && known !== undefined ? known : templateNames(entry.report));
    const shown = toFleetInstance(entry);
    if (isDeepStrictEqual(shown, this.#shown.get(instanceId))) return;
    this.#shown.set(instanceId, shown);
    this.#feed.publish({ kind: "changed", instance: shown });
  }

  #rank(entry: Entry, templates: ReadonlySet<string>): void {
    const promised = this.#options.slots.promised(entry.row.instanceId);
    this.#placements.set(entry.row.instanceId, toPlacement(entry, promised, templates));
  }
}

function templateNames(report: HostReport | undefined): ReadonlySet<string> {
  if (report === undefined) return NO_TEMPLATES;
  return new Set(report.templates.flatMap(({ name, digest }) => [name, `${name}@${digest}`]));
}
