import { type Clock, type Sandbox, SandboxError } from "@turnbox/client";
import { invalidArgument, untilAborted } from "@turnbox/client/internal";

/** Whether the workspace ends the sandbox with itself. */
export type Ownership = "own" | "borrowed";

export interface OpenedSandbox {
  readonly sandbox: Sandbox;
  readonly ownership: Ownership;
}

export interface WorkspaceOptions {
  /** Finds or makes the sandbox. Called at the first use, and again only where it failed. */
  readonly open: () => Promise<OpenedSandbox>;
  /** What becomes of the workspace's own sandboxes at the end. */
  readonly atEnd: "destroy" | "keep";
  /**
   * How long own sandboxes outlive a workspace that did not come to its end; it is renewed for as long as the workspace
   * lives. Without it their time is left alone.
   */
  readonly leaseMs?: number;
  readonly clock: Clock;
  /** Told of what could not be cleaned up. */
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
/** Whoever ended the program does not wait longer than a few seconds. */
const DESTROY_MS = 10_000;

interface Held extends OpenedSandbox {
  readonly kind: Member["kind"];
}

export function createWorkspace(options: WorkspaceOptions): Workspace {
  const { open, atEnd, leaseMs, clock, onProblem } = options;
  const held = new Map<string, Held>();
  const ended = new AbortController();
  let opening: Promise<Sandbox> | undefined;
  let currentId: string | undefined;

  const openMain = async (): Promise<Sandbox> => {
    const main = await open();
    held.set(main.sandbox.id, { ...main, kind: "main" });
    currentId = main.sandbox.id;
    if (leaseMs !== undefined) renewLeases(leaseMs).catch(() => undefined);
    return main.sandbox;
  };

  /** Ends with the workspace, by the signal. */
  const renewLeases = async (ms: number): Promise<void> => {
    for (;;) {
      await clock.sleep(ms / RENEWALS_PER_LEASE, { signal: ended.signal });
      const own = [...held.values()].filter(({ ownership }) => ownership === "own");
      await Promise.all(own.map(({ sandbox }) => renew(sandbox, ms)));
    }
  };
  const renew = async (sandbox: Sandbox, ms: number): Promise<void> => {
    await sandbox.extend(ms, { signal: ended.signal }).catch((thrown: unknown) => {
      if (!ended.signal.aborted) onProblem(`the time of ${sandbox.id} could not be extended: ${wordsOf(thrown)}`);
    });
  };

  const find = (sandboxId: string): Held => {
    const found = held.get(sandboxId);
    if (found !== undefined) return found;
    const known = [...held.keys()].join(", ") || "none yet";
    throw invalidArgument("sandbox", `${JSON.stringify(sandboxId)} is not one of yours, which are: ${known}`);
  };

  const release = async ({ sandbox, ownership }: Held): Promise<void> => {
    try {
      if (ownership === "own" && atEnd === "destroy") await sandbox.destroy({ timeoutMs: DESTROY_MS });
    } catch (thrown) {
      onProblem(`${sandbox.id} could not be destroyed: ${wordsOf(thrown)}`);
    } finally {
      await sandbox.keep()[Symbol.asyncDispose]();
    }
  };

  return {
    get state() {
      return held.size === 0 ? "empty" : "open";
    },
    current: async ({ signal }) => {
      if (ended.signal.aborted) throw new SandboxError("SHUTTING_DOWN", "the session of the protocol has ended");
      if (currentId !== undefined) return find(currentId).sandbox;
      // Shared by all calls that wait for it: one that is cancelled does not take it from the others.
      opening ??= openMain().catch((thrown: unknown) => {
        opening = undefined;
        throw thrown;
      });
      return await untilAborted(opening, signal);
    },
    members: () =>
      [...held.values()].map(({ sandbox, kind }) => ({ sandbox, kind, isCurrent: sandbox.id === currentId })),
    get room() {
      return MAX_FORKS - [...held.values()].filter(({ kind }) => kind === "fork").length;
    },
    adopt: async (forks) => {
      for (const sandbox of forks) held.set(sandbox.id, { sandbox, ownership: "own", kind: "fork" });
      if (leaseMs !== undefined) await Promise.all(forks.map((sandbox) => renew(sandbox, leaseMs)));
    },
    use: (sandboxId) => {
      const { sandbox } = find(sandboxId);
      currentId = sandboxId;
      return sandbox;
    },
    discard: async (sandboxId, { signal }) => {
      const { sandbox, kind } = find(sandboxId);
      if (kind === "main") throw invalidArgument("sandbox", "is the main sandbox; only forks can be discarded");
      await sandbox.destroy({ signal });
      held.delete(sandboxId);
      if (currentId === sandboxId) currentId = [...held.values()].find((one) => one.kind === "main")?.sandbox.id;
      await sandbox.keep()[Symbol.asyncDispose]();
    },
    [Symbol.asyncDispose]: async () => {
      if (ended.signal.aborted) return;
      ended.abort();
      await opening?.catch(() => undefined);
      await Promise.all([...held.values()].map(release));
    },
  };
}

const wordsOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));
