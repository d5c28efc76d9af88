import { type Clock, type Sandbox, SandboxError } from "@turnbox/client";
import { invalidArgument, raceSignal } from "@turnbox/client/internal";

/** Whether the workspace ends the sandbox with itself. */
export type Ownership = "own" | "borrowed";

export interface OpenedSandbox {
  readonly sandbox: Sandbox;
  readonly ownership: Ownership;
}

export interface WorkspaceOptions {
  /** Finds or makes the sandbox. Called at the first use, and again only if it failed. */
  readonly open: () => Promise<OpenedSandbox>;
  /** What becomes of the workspace's own sandboxes at the end. */
  readonly atEnd: "destroy" | "keep";
  /**
   * How long own sandboxes outlive a workspace that did not come to its end; it is renewed for as long as the workspace
   * lives. Without it their time is left alone.
   */
  readonly leaseMs?: number;
  readonly clock: Clock;
  /** Gets what could not be cleaned up. */
  readonly onProblem: (message: string) => void;
}

export interface Member {
  readonly sandbox: Sandbox;
  readonly kind: "main" | "fork";
  readonly isCurrent: boolean;
}

/** The sandboxes that one session of the protocol works in: the main one, made when it is needed, and its forks. */
export interface Workspace extends AsyncDisposable {
  /** Whether there is a sandbox yet. */
  readonly state: "empty" | "open";
  /** The sandbox that calls go to. */
  current(options: { readonly signal: AbortSignal }): Promise<Sandbox>;
  members(): readonly Member[];
  /** How many more forks there may be. */
  readonly room: number;
  adopt(forks: readonly Sandbox[]): Promise<void>;
  /** Lets the calls that follow go to this one of the workspace's sandboxes. */
  use(sandboxId: string): Sandbox;
  /** Destroys a fork. */
  discard(sandboxId: string, options: { readonly signal: AbortSignal }): Promise<void>;
}

const MAX_FORKS = 20;
const RENEWALS_PER_LEASE = 24;
/** The end of the program waits no longer than a few seconds. */
const DESTROY_MS = 10_000;

interface Held extends OpenedSandbox {
  readonly kind: Member["kind"];
}

export const createWorkspace = (options: WorkspaceOptions): Workspace => new SandboxWorkspace(options);

class SandboxWorkspace implements Workspace {
  readonly #options: WorkspaceOptions;
  readonly #held = new Map<string, Held>();
  readonly #ended = new AbortController();
  #opening: Promise<Sandbox> | undefined;
  #currentId: string | undefined;

  constructor(options: WorkspaceOptions) {
    this.#options = options;
  }

  get state(): "empty" | "open" {
    return this.#held.size === 0 ? "empty" : "open";
  }

  async current({ signal }: { readonly signal: AbortSignal }): Promise<Sandbox> {
    if (this.#ended.signal.aborted) throw new SandboxError("SHUTTING_DOWN", "the session of the protocol has ended");
    if (this.#currentId !== undefined) return this.#find(this.#currentId).sandbox;
    // Shared by all calls that wait for it: one that is cancelled does not take it from the others.
    this.#opening ??= this.#openMain().catch((thrown: unknown) => {
      this.#opening = undefined;
      throw thrown;
    });
    return await raceSignal(this.#opening, signal);
  }

  members(): readonly Member[] {
    return [...this.#held.values()].map(({ sandbox, kind }) => ({
      sandbox,
      kind,
      isCurrent: sandbox.id === this.#currentId,
    }));
  }

  get room(): number {
    return MAX_FORKS - [...this.#held.values()].filter(({ kind }) => kind === "fork").length;
  }

  async adopt(forks: readonly Sandbox[]): Promise<void> {
    const { leaseMs } = this.#options;
    for (const sandbox of forks) this.#held.set(sandbox.id, { sandbox, ownership: "own", kind: "fork" });
    if (leaseMs !== undefined) await Promise.all(forks.map((sandbox) => this.#renew(sandbox, leaseMs)));
  }

  use(sandboxId: string): Sandbox {
    const { sandbox } = this.#find(sandboxId);
    this.#currentId = sandboxId;
    return sandbox;
  }

  async discard(sandboxId: string, { signal }: { readonly signal: AbortSignal }): Promise<void> {
    const { sandbox, kind } = this.#find(sandboxId);
    if (kind === "main") throw invalidArgument("sandbox", "is the main sandbox; only forks can be discarded");
    await sandbox.destroy({ signal });
    this.#held.delete(sandboxId);
    if (this.#currentId === sandboxId)
      this.#currentId = [...this.#held.values()].find((one) => one.kind === "main")?.sandbox.id;
    await sandbox.keep()[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ended.signal.aborted) return;
    this.#ended.abort();
    await this.#opening?.catch(() => undefined);
    await Promise.all([...this.#held.values()].map((one) => this.#release(one)));
  }

  async #openMain(): Promise<Sandbox> {
    const { open, leaseMs } = this.#options;
    const main = await open();
    this.#held.set(main.sandbox.id, { ...main, kind: "main" });
    this.#currentId = main.sandbox.id;
    if (leaseMs !== undefined) this.#renewLeases(leaseMs).catch(() => undefined);
    return main.sandbox;
  }

  /** Ends with the workspace, by the signal. */
  async #renewLeases(ms: number): Promise<void> {
    for (;;) {
      await this.#options.clock.sleep(ms / RENEWALS_PER_LEASE, { signal: this.#ended.signal });
      const own = [...this.#held.values()].filter(({ ownership }) => ownership === "own");
      await Promise.all(own.map(({ sandbox }) => this.#renew(sandbox, ms)));
    }
  }

  async #renew(sandbox: Sandbox, ms: number): Promise<void> {
    await sandbox.extend(ms, { signal: this.#ended.signal }).catch((thrown: unknown) => {
      if (this.#ended.signal.aborted) return;
      this.#options.onProblem(`the time of ${sandbox.id} could not be extended: ${wordsOf(thrown)}`);
    });
  }

  #find(sandboxId: string): Held {
    const found = this.#held.get(sandboxId);
    if (found !== undefined) return found;
    const known = [...this.#held.keys()].join(", ") || "none yet";
    throw invalidArgument("sandbox", `${JSON.stringify(sandboxId)} is not one of yours, which are: ${known}`);
  }

  async #release({ sandbox, ownership }: Held): Promise<void> {
    const { atEnd, onProblem } = this.#options;
    try {
      if (ownership === "own" && atEnd === "destroy") await sandbox.destroy({ timeoutMs: DESTROY_MS });
    } catch (thrown) {
      onProblem(`${sandbox.id} could not be destroyed: ${wordsOf(thrown)}`);
    } finally {
      await sandbox.keep()[Symbol.asyncDispose]();
    }
  }
}

const wordsOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));
