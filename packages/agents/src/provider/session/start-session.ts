import { SandboxError } from "@turnbox/client";
import { randomToken, systemClock } from "@turnbox/client/internal";
import type { PrepareRequest, Prepared, Provider, ProviderCall, SessionState } from "../provider.ts";
import { type SessionRecord, toStoredProfile } from "../state/session-record.ts";
import { findRuntime } from "./find-runtime.ts";
import { createProviderSession, type ProviderSession } from "./provider-session.ts";
import { CLEANUP_MS, type SessionOptions, toPrepareRequest } from "./session-options.ts";

/** A session to start. */
export interface StartRequest extends Omit<PrepareRequest, "sandboxId" | "instanceId" | "providerState"> {
  /** For every sync of the session. */
  readonly excludePatterns?: readonly string[];
}

const SANDBOX_ID_CHARS = 26;
const newSandboxId = (): string => randomToken(SANDBOX_ID_CHARS);

/**
 * Brings a session's runtime up and fills it. Its state is saved as `creating`, with a fresh sandbox id, before the
 * provider is asked, and again with the answer: a program that dies between the two leaves a record from which
 * `reconcileSessions` finds the runtime by its labels. A session that kept its runtime gets it back.
 */
export async function startSession(
  options: SessionOptions,
  request: StartRequest,
  call: ProviderCall = {},
): Promise<ProviderSession> {
  const provider = options.registry.provider(request.sandbox.backend);
  const before = await options.store.load(request.sessionId, call);
  const record = createRecord(options, request, before?.state);
  await options.store.save(record, call);
  const prepared = await prepareOrUndo({ options, provider, record, before, request }, call);
  const session = createProviderSession({ options, provider, prepared, record: { ...record, state: prepared.state } });
  await session.fill(call);
  return session;
}

function createRecord(options: SessionOptions, request: StartRequest, before: SessionState | undefined): SessionRecord {
  const { clock = systemClock } = options;
  // What another backend made is none of this one's business.
  const isKept = before !== undefined && before.state !== "destroyed" && before.backend === request.sandbox.backend;
  return {
    sessionId: request.sessionId,
    workspaceId: request.workspaceId,
    status: "starting",
    localRootDir: request.localRootDir,
    localAdditionalDirs: request.localAdditionalDirs,
    sandbox: toStoredProfile(request.sandbox),
    agentCommand: request.agentCommand,
    permissions: request.permissions,
    resumeAcpState: request.resumeAcpState,
    excludePatterns: request.excludePatterns ?? [],
    state: {
      sandboxId: isKept ? before.sandboxId : (options.newSandboxId ?? newSandboxId)(),
      backend: request.sandbox.backend,
      profile: request.sandbox.profile,
      state: "creating",
      instanceId: isKept ? before.instanceId : "",
      runtimeRootDir: request.sandbox.runtimeRootDir,
      runtimeAdditionalDirs: [],
      providerState: isKept ? before.providerState : undefined,
      sshAccessExpiresAt: undefined,
      preparedAt: undefined,
    },
    updatedAt: new Date(clock.nowMs()),
  };
}

interface Start {
  readonly options: SessionOptions;
  readonly provider: Provider;
  readonly record: SessionRecord;
  readonly before: SessionRecord | undefined;
  readonly request: StartRequest;
}

async function prepareOrUndo(start: Start, call: ProviderCall): Promise<Prepared> {
  const { options, provider, record, request } = start;
  const wanted = toPrepareRequest(record, { agentEnv: request.agentEnv, secretEnv: request.sandbox.secretEnv });
  try {
    return await provider.prepare(wanted, call);
  } catch (thrown) {
    await undo(start, wanted).catch((failure: unknown) => {
      const { message } = SandboxError.from(failure);
      options.onWarning?.({ sessionId: record.sessionId, message: `what was begun is left behind: ${message}` });
    });
    throw SandboxError.from(thrown);
  }
}

/** What was kept from before stays as it was; what was made just now goes. */
async function undo({ options, provider, record, before }: Start, wanted: PrepareRequest): Promise<void> {
  const call = { signal: AbortSignal.timeout(CLEANUP_MS) };
  if (before !== undefined && record.state.instanceId !== "") {
    await options.store.save(before, call);
    return;
  }
  const found = await findRuntime(provider, wanted, call);
  if (found !== undefined) await provider.destroy(found, { ...call, persistence: "transient" });
  await options.store.save({ ...record, status: "stopped", state: { ...record.state, state: "destroyed" } }, call);
}
