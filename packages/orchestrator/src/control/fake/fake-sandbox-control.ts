import { createHash } from "node:crypto";
import { type Clock, newSessionId, parseSessionId, SandboxError } from "@turnbox/core";
import type {
  ControlCall,
  CreateSandboxRequest,
  ForkResult,
  ForkSandboxRequest,
  ProcessRef,
  Sandbox,
  SandboxCapabilities,
  SandboxControl,
  SandboxProcess,
  SandboxSession,
  SandboxState,
  Template,
} from "../sandbox-control.ts";

type Operation = keyof SandboxControl;

export interface FakeControlOptions {
  readonly clock: Pick<Clock, "nowMs">;
  readonly address?: string;
  readonly capabilities?: Partial<SandboxCapabilities>;
  /** Awaited before each operation, with its name; what it throws is the answer. */
  readonly before?: (operation: Operation, call: ControlCall) => Promise<void>;
  /** Awaited after the effect of each operation; what it throws is the answer, as when a connection breaks. */
  readonly after?: (operation: Operation, call: ControlCall) => Promise<void>;
}

/** A provider in memory: stateful, so that what was done can be asked for. */
export interface FakeSandboxControl extends SandboxControl {
  /** Ids of all sandboxes there are, of every tenant. */
  sandboxIds(): readonly string[];
  /** All sandboxes with their tenants, as their host sees them. */
  sandboxes(): readonly { readonly sandbox: Sandbox; readonly tenant: string }[];
  /** Ids given to `createSandbox`, in order, whatever came of it. */
  readonly createdSessionIds: readonly string[];
  readonly templates: readonly Template[];
  setCapabilities(changes: Partial<SandboxCapabilities>): void;
}

const CAPABILITIES: SandboxCapabilities = {
  snapshots: true,
  rollback: true,
  fork: true,
  pause: true,
  launchProcess: true,
  deepPause: false,
  concurrentSandboxes: 0,
  maxSandboxDurationMs: 0,
  pausePreservesProcesses: true,
  tierRouting: true,
  streamingProgress: true,
  storage: "fake",
  runtime: "fake",
};

interface Held {
  readonly sandbox: Sandbox;
  readonly tenant: string;
}

const payloadOf = ({ idempotencyKey: _key, ...payload }: CreateSandboxRequest | ForkSandboxRequest): string =>
  JSON.stringify(payload);

export function createFakeSandboxControl(options: FakeControlOptions): FakeSandboxControl {
  const { clock, address = "127.0.0.1:9100", before, after } = options;
  let capabilities: SandboxCapabilities = { ...CAPABILITIES, ...options.capabilities };
  const held = new Map<string, Held>();
  const gone = new Set<string>();
  const keys = new Map<string, { readonly payload: string; readonly sandboxId: string }>();
  const forks = new Map<string, { readonly payload: string; readonly results: readonly ForkResult[] }>();
  const templates: Template[] = [];
  const createdSessionIds: string[] = [];

  const perform = async <T>(operation: Operation, call: ControlCall, work: () => T | Promise<T>): Promise<T> => {
    call.signal.throwIfAborted();
    await before?.(operation, call);
    const result = await work();
    await after?.(operation, call);
    return result;
  };
  const get = (sandboxId: string, call: ControlCall): Sandbox => {
    const found = held.get(parseSessionId(sandboxId, "sandbox_id"));
    if (found?.tenant !== call.tenant) {
      throw new SandboxError("SANDBOX_NOT_FOUND", `there is no sandbox ${sandboxId}`);
    }
    return found.sandbox;
  };
  const own = (call: ControlCall): Sandbox[] =>
    [...held.values()].filter((one) => one.tenant === call.tenant).map((one) => one.sandbox);
  const setState = (sandboxId: string, state: SandboxState, call: ControlCall): Sandbox => {
    const before = get(sandboxId, call);
    const sandbox = { ...before, session: { ...before.session, state } };
    held.set(sandboxId, { sandbox, tenant: call.tenant });
    return sandbox;
  };

  const processes = new Map<string, SandboxProcess>();
  const findProcess = ({ sandboxId, processId }: ProcessRef, call: ControlCall): SandboxProcess => {
    get(sandboxId, call);
    const process = processes.get(`${sandboxId} ${processId}`);
    if (process === undefined) throw new SandboxError("PROCESS_NOT_FOUND", `there is no process ${processId}`);
    return process;
  };

  const assertRoom = (): void => {
    const limit = capabilities.concurrentSandboxes;
    if (limit > 0 && held.size >= limit) throw new SandboxError("MAX_SESSIONS_REACHED", "the fake is full");
  };

  const create = (request: CreateSandboxRequest, call: ControlCall): Sandbox => {
    const sandboxId = parseSessionId(request.sessionId ?? newSessionId());
    createdSessionIds.push(sandboxId);
    const key = `${call.tenant} ${request.idempotencyKey}`;
    const known = request.idempotencyKey === "" ? undefined : keys.get(key);
    if (known !== undefined) {
      if (known.payload === payloadOf(request)) return get(known.sandboxId, call);
      throw new SandboxError("IDEMPOTENCY_CONFLICT", "the key was used with another request");
    }
    if (held.has(sandboxId)) throw new SandboxError("SESSION_EXISTS", `there is a session ${sandboxId}`);
    const namesake = request.name === undefined ? undefined : own(call).find((one) => one.name === request.name);
    if (namesake !== undefined) {
      throw new SandboxError("SANDBOX_EXISTS", "there is a sandbox of this name", {
        metadata: { sandboxId: namesake.sandboxId },
      });
    }
    assertRoom();
    const sandbox = {
      sandboxId,
      ...(request.name === undefined ? {} : { name: request.name }),
      address,
      capabilities,
      session: createFakeSession({ sessionId: sandboxId, request, nowMs: clock.nowMs() }),
    };
    held.set(sandboxId, { sandbox, tenant: call.tenant });
    if (request.idempotencyKey !== "") keys.set(key, { payload: payloadOf(request), sandboxId });
    return sandbox;
  };

  const forkOne = (parent: Sandbox, { labels }: ForkSandboxRequest, call: ControlCall): ForkResult => {
    try {
      assertRoom();
    } catch (thrown) {
      return { kind: "failed", error: SandboxError.from(thrown) };
    }
    const sandboxId = newSessionId();
    const session = {
      ...parent.session,
      sessionId: sandboxId,
      state: "active" as const,
      generation: 1,
      labels: Object.keys(labels).length === 0 ? parent.session.labels : labels,
      createdAtMs: clock.nowMs(),
    };
    const sandbox = { sandboxId, address, capabilities, session };
    held.set(sandboxId, { sandbox, tenant: call.tenant });
    return { kind: "forked", sandbox };
  };
  const fork = (request: ForkSandboxRequest, call: ControlCall): readonly ForkResult[] => {
    const parent = get(request.sandboxId, call);
    if (!capabilities.fork) throw new SandboxError("SNAPSHOTS_NOT_AVAILABLE", "this fake has no snapshots");
    const key = `${call.tenant} ${request.idempotencyKey}`;
    const known = request.idempotencyKey === "" ? undefined : forks.get(key);
    if (known !== undefined) {
      if (known.payload === payloadOf(request)) return known.results;
      throw new SandboxError("IDEMPOTENCY_CONFLICT", "the key was used with another request");
    }
    // The fake has files at no time but now.
    if (request.snapshotId !== "") throw new SandboxError("SNAPSHOT_NOT_FOUND", `no snapshot ${request.snapshotId}`);
    const results = Array.from({ length: request.count }, () => forkOne(parent, request, call));
    if (request.idempotencyKey !== "") forks.set(key, { payload: payloadOf(request), results });
    return results;
  };

  return {
    sandboxIds: () => [...held.keys()],
    sandboxes: () => [...held.values()],
    createdSessionIds,
    templates,
    setCapabilities: (changes) => {
      capabilities = { ...capabilities, ...changes };
    },
    createSandbox: (request, call) =>
      perform("createSandbox", call, () => {
        const made = create(request, call);
        return {
          ...made,
          connection: { sandboxId: made.sandboxId, sessionId: made.sandboxId, url: `http://${address}` },
        };
      }),
    getSandbox: ({ sandboxId, name = "" }, call) =>
      perform("getSandbox", call, () => {
        const known = name === "" ? undefined : own(call).find((one) => one.name === name);
        return get(known?.sandboxId ?? (name === "" ? sandboxId : name), call);
      }),
    listSandboxes: (request, call) =>
      perform("listSandboxes", call, () => {
        const matching = own(call).filter(({ session }) =>
          Object.entries(request.labels).every(([key, value]) => session.labels[key] === value),
        );
        const start = request.pageToken === "" ? 0 : Number(request.pageToken);
        const end = start + request.pageSize;
        const nextPageToken = end < matching.length ? String(end) : "";
        return { sandboxes: matching.slice(start, end), nextPageToken, unreachableInstances: [] };
      }),
    destroySandbox: ({ sandboxId }, call) =>
      perform("destroySandbox", call, () => {
        if (gone.has(`${call.tenant} ${sandboxId}`)) return;
        get(sandboxId, call);
        held.delete(sandboxId);
        gone.add(`${call.tenant} ${sandboxId}`);
      }),
    connectSandbox: ({ sandboxId }, call) =>
      perform("connectSandbox", call, () => {
        get(sandboxId, call);
        return { sandboxId, sessionId: sandboxId, url: `http://${address}` };
      }),
    pauseSandbox: ({ sandboxId }, call) => perform("pauseSandbox", call, () => setState(sandboxId, "paused", call)),
    resumeSandbox: ({ sandboxId }, call) => perform("resumeSandbox", call, () => setState(sandboxId, "active", call)),
    forkSandbox: (request, call) => perform("forkSandbox", call, () => fork(request, call)),
    launchProcess: (request, call) =>
      perform("launchProcess", call, () => {
        get(request.sandboxId, call);
        const processId = `p${processes.size + 1}`;
        const port = request.exposePort === 0 ? "" : `127.0.0.1:${request.exposePort}`;
        const process: SandboxProcess = { processId, address: port, status: "running" };
        processes.set(`${request.sandboxId} ${processId}`, process);
        return process;
      }),
    killProcess: (request, call) =>
      perform("killProcess", call, () => {
        const { processId, address } = findProcess(request, call);
        processes.set(`${request.sandboxId} ${processId}`, { processId, address, status: "exited" });
      }),
    getProcessStatus: (request, call) => perform("getProcessStatus", call, () => findProcess(request, call)),
    importTemplate: (request, call) =>
      perform("importTemplate", call, async () => {
        const digest = createHash("sha256");
        let sizeBytes = 0;
        for await (const chunk of request.archive) {
          digest.update(chunk);
          sizeBytes += chunk.length;
        }
        const version = { name: request.name, digest: digest.digest("hex"), sizeBytes, latest: true };
        const known = templates.find((one) => one.name === version.name && one.digest === version.digest);
        const template = known ?? { ...version, createdAtMs: clock.nowMs() };
        if (known === undefined) templates.push(template);
        return { template, hosts: 1 };
      }),
    listTemplates: (call) => perform("listTemplates", call, () => [...templates]),
    capabilities: (call) => perform("capabilities", call, () => capabilities),
  };
}

function createFakeSession(made: {
  readonly sessionId: string;
  readonly request: CreateSandboxRequest;
  readonly nowMs: number;
}): SandboxSession {
  const { labels, template, resources, quotaBytes, lifetime } = made.request;
  return {
    sessionId: made.sessionId,
    state: "active",
    generation: 1,
    base: template === "" ? "mini@1" : template,
    labels,
    createdAtMs: made.nowMs,
    ...(lifetime.ttlMs === undefined ? {} : { expiresAtMs: made.nowMs + lifetime.ttlMs }),
    turnCount: 0,
    snapshotCount: 0,
    spaceUsedBytes: 0,
    resources,
    quotaBytes: quotaBytes ?? 0,
    parentSnapshotId: "",
    failure: "",
    onTimeout: lifetime.onTimeout ?? "destroy",
    ...(lifetime.idleTimeoutMs === undefined ? {} : { idleTimeoutMs: lifetime.idleTimeoutMs }),
    activeTools: 0,
  };
}
