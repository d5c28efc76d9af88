import { SandboxError } from "@turnbox/client";
import { systemClock } from "@turnbox/client/internal";
import type { Provider, ProviderCall, SessionState } from "../provider.ts";
import { isRecoverable, type SessionRecord } from "../state/session-record.ts";
import { findRuntime } from "./find-runtime.ts";
import { createProviderSession, type ProviderSession } from "./provider-session.ts";
import { endRuntime, type SessionOptions, type SessionSecrets, toPrepareRequest } from "./session-options.ts";

/** Which sessions are looked after at a start, and how. */
export interface ReconcileOptions extends SessionOptions {
  /** What a session needs that is not kept; nothing unless given. */
  readonly secretsOf?: (record: SessionRecord, options: ProviderCall) => Promise<SessionSecrets>;
}

/** What became of a session. `gone` had no runtime; `unsettled` is looked at again by the next reconcile. */
export type Reconciled =
  | { readonly sessionId: string; readonly outcome: "reattached"; readonly session: ProviderSession }
  | { readonly sessionId: string; readonly outcome: "ended" | "gone" }
  | { readonly sessionId: string; readonly outcome: "unsettled"; readonly error: SandboxError };

const SETTLED: ReadonlySet<SessionState["state"]> = new Set(["stopped", "archived", "destroyed"]);

/**
 * For the start of a program, before it starts sessions: takes up what an earlier run left. Runtimes whose making was cut
 * short are found by their labels. Sessions that were at work get their runtime back, and lose it if that fails; those
 * that had ended have what can be had of their files brought out, and their runtime ended. One that fails does not keep
 * the others.
 */
export async function reconcileSessions(
  options: ReconcileOptions,
  call: ProviderCall = {},
): Promise<readonly Reconciled[]> {
  const onUnreadable = ({ message }: SandboxError): void => options.onWarning?.({ sessionId: "", message });
  const records = await options.store.list({ ...call, onUnreadable });
  const outcomes: Reconciled[] = [];
  for (const record of records) {
    if (SETTLED.has(record.state.state)) continue;
    call.signal?.throwIfAborted();
    const { sessionId } = record;
    const failed = (thrown: unknown): Reconciled => ({
      sessionId,
      outcome: "unsettled",
      error: SandboxError.from(thrown),
    });
    outcomes.push(await reconcile(options, record, call).catch(failed));
  }
  return outcomes;
}

async function reconcile(options: ReconcileOptions, left: SessionRecord, call: ProviderCall): Promise<Reconciled> {
  const { sessionId } = left;
  const provider = options.registry.provider(left.state.backend);
  const secrets = (await options.secretsOf?.(left, call)) ?? {};
  const state = await locate(provider, left, call);
  if (state === undefined) {
    await save(options, { ...left, status: "stopped", state: { ...left.state, state: "destroyed" } }, call);
    return { sessionId, outcome: "gone" };
  }
  const record = { ...left, state };
  if (isRecoverable(record.status)) {
    const session = await reattach({ options, provider, record, secrets }, call);
    if (session !== undefined) return { sessionId, outcome: "reattached", session };
  }
  await rescue({ options, provider, record, secrets }, call);
  await save(options, { ...record, status: "stopped", state: await endRuntime(provider, record, call) }, call);
  return { sessionId, outcome: "ended" };
}

/** The state with the runtime's id; undefined if no runtime was made. */
async function locate(
  provider: Provider,
  record: SessionRecord,
  call: ProviderCall,
): Promise<SessionState | undefined> {
  if (record.state.instanceId !== "") return record.state;
  return await findRuntime(provider, toPrepareRequest(record, {}), call);
}

interface Left {
  readonly options: ReconcileOptions;
  readonly provider: Provider;
  readonly record: SessionRecord;
  readonly secrets: SessionSecrets;
}

async function reattach(
  { options, provider, record, secrets }: Left,
  call: ProviderCall,
): Promise<ProviderSession | undefined> {
  try {
    const prepared = await provider.prepare(toPrepareRequest(record, secrets), call);
    const taken = { ...record, status: "active" as const, state: prepared.state };
    const session = createProviderSession({ options, provider, prepared, record: taken });
    // One that died while it started may have an empty workspace; in one that was at work, the runtime's files count.
    if (record.status === "starting") await session.fill(call);
    else await save(options, taken, call);
    return session;
  } catch (thrown) {
    // Giving up is no reason to end what works.
    call.signal?.throwIfAborted();
    warn(options, record, `its runtime is ended: ${SandboxError.from(thrown).message}`);
    return undefined;
  }
}

async function rescue({ options, provider, record }: Left, call: ProviderCall): Promise<void> {
  if (record.sandbox.syncMode === "none" || record.state.state === "creating") return;
  try {
    const { errors } = await provider.syncFromRuntime(record.state, { ...call, reason: "crash" });
    for (const error of errors) warn(options, record, error);
  } catch (thrown) {
    call.signal?.throwIfAborted();
    warn(options, record, `its files did not come out whole: ${SandboxError.from(thrown).message}`);
  }
}

async function save(options: ReconcileOptions, record: SessionRecord, call: ProviderCall): Promise<void> {
  const { clock = systemClock } = options;
  await options.store.save({ ...record, updatedAt: new Date(clock.nowMs()) }, call);
}

function warn(options: ReconcileOptions, { sessionId }: SessionRecord, message: string): void {
  options.onWarning?.({ sessionId, message });
}
