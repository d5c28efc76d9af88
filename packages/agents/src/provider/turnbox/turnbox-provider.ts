import { type Clock, type Sandbox, SandboxError } from "@turnbox/client";
import { randomToken, systemClock } from "@turnbox/client/internal";
import { remoteEnvironment } from "../agent-environment.ts";
import type {
  Finder,
  PersistenceMode,
  Provider,
  ProviderCall,
  RuntimeState,
  SessionState,
  SyncOptions,
} from "../provider.ts";
import { splitCommand } from "../split-command.ts";
import type { SyncLimits } from "../sync/sync-counter.ts";
import { type Acquired, acquireSandbox, isGone, labelledSandbox, sandboxOf } from "./acquire-sandbox.ts";
import { holdSandboxes } from "./held-sandboxes.ts";
import { prepareSandbox, stateOf } from "./prepare-sandbox.ts";
import type { SandboxDefaults, SandboxSource } from "./sandbox-source.ts";
import { syncIn, syncOut } from "./sync-sandbox.ts";
import { parseTurnboxState } from "./turnbox-state.ts";

/** What the provider is made with. */
export interface TurnboxProviderOptions {
  /** A `Turnbox`. Who made it closes it. */
  readonly turnbox: SandboxSource;
  /** For sandboxes that are made. */
  readonly defaults?: SandboxDefaults;
  readonly limits?: SyncLimits;
  readonly clock?: Clock;
}

/**
 * Runs agents in sandboxes of a Turnbox server. Sandboxes carry labels with the session's identity, by which one whose
 * making was cut short is found again. Disposing lets go of the handles; the sandboxes stay.
 */
export interface TurnboxProvider extends Provider, Finder, AsyncDisposable {}

/** A provider whose runtimes are sandboxes. */
export function createTurnboxProvider(options: TurnboxProviderOptions): TurnboxProvider {
  const { turnbox, defaults = {}, limits = {}, clock = systemClock } = options;
  const sandboxes = holdSandboxes(turnbox);

  const running = async ({ instanceId }: SessionState, call: ProviderCall): Promise<Sandbox> => {
    const found = await sandboxOf(sandboxes, instanceId, call);
    if (found === undefined) throw notFound(instanceId);
    if (found.info.state === "paused") await found.sandbox.resume(call);
    return found.sandbox;
  };

  return {
    backend: () => "turnbox",
    prepare: async (request, call = {}) => {
      // What is wrong with the request is reported before anything is made for it.
      splitCommand(request.agentCommand);
      const env = remoteEnvironment({ agentEnv: {}, sandbox: request.sandbox }).env;
      const acquired = await acquireSandbox(sandboxes, request, { ...call, defaults, env });
      return await prepareSandbox(request, acquired, { ...call, clock });
    },
    syncToRuntime: async (state, sync) =>
      await syncIn({ sandbox: await running(state, callOf(sync)), state, options: sync, limits }),
    syncFromRuntime: async (state, sync) =>
      await syncOut({ sandbox: await running(state, callOf(sync)), state, options: sync, limits }),
    destroy: async (state, { persistence: asked, ...call } = {}) => {
      if (state.instanceId === "") return { ...state, state: "destroyed" };
      const persistence = asked ?? parseTurnboxState(state).persistence;
      const found = await sandboxOf(sandboxes, state.instanceId, call);
      const next = found === undefined ? "destroyed" : await retireSandbox(found, { persistence, state, ...call });
      await sandboxes.forget(state.instanceId);
      return { ...state, state: next };
    },
    findSandbox: async (request, call = {}) => {
      const found = await labelledSandbox(sandboxes, request.labels, call);
      if (found === undefined) throw notFound(request.sandboxId);
      return stateOf(request, found.sandbox.id, { state: "creating", preparedAt: undefined });
    },
    [Symbol.asyncDispose]: () => sandboxes[Symbol.asyncDispose](),
  };
}

const callOf = ({ signal }: SyncOptions): ProviderCall => (signal === undefined ? {} : { signal });

const notFound = (what: string): SandboxError =>
  new SandboxError("REMOTE_SANDBOX_NOT_FOUND", `there is no sandbox of ${what}`, { metadata: { sandbox: what } });

const NAME_CHARS = 8;

/** Ends a sandbox's use as the persistence says, and returns what it is then. */
async function retireSandbox(
  { sandbox, info }: Acquired,
  {
    persistence,
    state,
    ...call
  }: ProviderCall & { readonly persistence: PersistenceMode; readonly state: SessionState },
): Promise<RuntimeState> {
  if (persistence === "reuse") return "stopped";
  if (persistence === "archive") return await archive({ sandbox, info }, state, call);
  try {
    await sandbox.destroy(call);
  } catch (thrown) {
    if (!isGone(thrown)) throw thrown;
  }
  return "destroyed";
}

/**
 * Turnbox has no cold storage: an archived sandbox is paused, so that it takes no memory, and has a snapshot with a name,
 * from which its files can be restored also when its head is lost. On a host that can do neither it is left as it is.
 */
async function archive({ sandbox, info }: Acquired, state: SessionState, call: ProviderCall): Promise<RuntimeState> {
  const { pause, snapshots } = info.capabilities;
  if (state.state === "archived" && info.state === "paused") return "archived";
  if (pause) await sandbox.pause(call);
  if (snapshots) await sandbox.snapshot(`archive-${randomToken(NAME_CHARS)}`, call);
  return pause || snapshots ? "archived" : "stopped";
}
