import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type CreateOptions,
  type Sandbox,
  SandboxError,
  type SandboxInfo,
  type SandboxNetworkPolicy,
} from "@turnbox/client";
import { createDirectorySandbox } from "../launch/directory-sandbox.suite.ts";
import { createExcludes } from "../sync/excludes.ts";
import { packTree } from "../sync/pack-tree.ts";
import { createSyncCounter } from "../sync/sync-counter.ts";
import { unpackTree } from "../sync/unpack-tree.ts";
import type { SandboxSource } from "../turnbox/sandbox-source.ts";

/** What a sandbox of the fake is, for a test to look at and to change. */
export interface FakeSandbox {
  readonly id: string;
  readonly options: CreateOptions;
  state: SandboxInfo["state"];
  network: SandboxNetworkPolicy;
  readonly snapshots: string[];
  /** Handles that were made and not disposed. */
  handles: number;
}

export interface DirectoryTurnbox extends SandboxSource, AsyncDisposable {
  /** Paths of the profile's runtime root have to be below it: sandboxes have this machine's files. */
  readonly root: string;
  readonly sandboxes: Map<string, FakeSandbox>;
  /** What was called, in order. */
  readonly calls: string[];
  unreachableInstances: string[];
  capabilities: Partial<SandboxInfo["capabilities"]>;
  /** Runs before the answer of `create` is given, after the sandbox was made. */
  afterCreate: () => void;
}

/** A Turnbox whose sandboxes have no walls: their files are this machine's. */
export async function createDirectoryTurnbox(): Promise<DirectoryTurnbox> {
  const root = await mkdtemp(join(tmpdir(), "turnbox-fake-"));
  const keys = new Map<string, string>();
  const turnbox: DirectoryTurnbox = {
    root,
    sandboxes: new Map(),
    calls: [],
    unreachableInstances: [],
    capabilities: {},
    afterCreate: () => undefined,
    create: async (options = {}) => {
      options.signal?.throwIfAborted();
      turnbox.calls.push("create");
      const key = options.idempotencyKey ?? "";
      const id = keys.get(key) ?? `fleet:fake:${turnbox.sandboxes.size + 1}`;
      if (!keys.has(key)) {
        turnbox.sandboxes.set(id, {
          id,
          options,
          state: "active",
          network: options.network ?? {},
          snapshots: [],
          handles: 0,
        });
        keys.set(key, id);
      }
      turnbox.afterCreate();
      return handleOf(turnbox, id);
    },
    get: async (id) => {
      turnbox.calls.push("get");
      there(turnbox, id);
      return handleOf(turnbox, id);
    },
    list: async ({ labels = {}, signal } = {}) => {
      signal?.throwIfAborted();
      turnbox.calls.push("list");
      const infos = [...turnbox.sandboxes.values()].map((one) => infoOf(turnbox, one));
      const isMeant = (info: SandboxInfo): boolean =>
        Object.entries(labels).every(([name, value]) => info.labels[name] === value);
      return { sandboxes: infos.filter(isMeant), unreachableInstances: turnbox.unreachableInstances };
    },
    [Symbol.asyncDispose]: async () => {
      await rm(root, { recursive: true });
    },
  };
  return turnbox;
}

function there(turnbox: DirectoryTurnbox, id: string): FakeSandbox {
  const found = turnbox.sandboxes.get(id);
  if (found !== undefined) return found;
  throw new SandboxError("SANDBOX_NOT_FOUND", `there is no ${id}`);
}

function infoOf(turnbox: DirectoryTurnbox, { id, options, state }: FakeSandbox): SandboxInfo {
  const capabilities = { pause: true, snapshots: true, runtime: "gvisor", ...turnbox.capabilities };
  return { id, state, labels: options.labels ?? {}, createdAt: new Date(0), capabilities } as SandboxInfo;
}

/** The parts of a sandbox that the provider uses. */
function handleOf(turnbox: DirectoryTurnbox, id: string): Sandbox {
  const { files, processes } = createDirectorySandbox();
  const own = (): FakeSandbox => there(turnbox, id);
  const become = (name: string, state: FakeSandbox["state"]) => async () => {
    turnbox.calls.push(name);
    own().state = state;
    return infoOf(turnbox, own());
  };
  own().handles += 1;
  const sandbox = {
    id,
    processes,
    files: {
      ...files,
      makeDirectory: (path: string) => mkdir(path, { recursive: true }),
      upload: async (path: string, archive: AsyncIterable<Uint8Array>) => {
        await unpackTree(archive, { root: path, excludes: EVERYTHING, counter: createSyncCounter() });
      },
      download: (path: string) => packTree({ root: path, excludes: EVERYTHING, counter: createSyncCounter() }),
    },
    network: {
      update: async (policy: SandboxNetworkPolicy) => {
        own().network = policy;
      },
    },
    info: async () => infoOf(turnbox, own()),
    pause: become("pause", "paused"),
    resume: become("resume", "active"),
    repair: become("repair", "active"),
    snapshot: async (name: string) => void own().snapshots.push(name),
    destroy: async () => {
      turnbox.calls.push("destroy");
      own();
      turnbox.sandboxes.delete(id);
    },
    keep: () => sandbox,
    [Symbol.asyncDispose]: async () => {
      const one = turnbox.sandboxes.get(id);
      if (one !== undefined) one.handles -= 1;
    },
  } as unknown as Sandbox;
  return sandbox;
}

/** What leaves nothing out, to see what the provider itself leaves out. */
const EVERYTHING = { ...createExcludes("to_runtime"), covers: () => false };
