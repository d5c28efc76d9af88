import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog, parseConfig, type Principal } from "@turnbox/core";
import { composeHost, type Host } from "./compose.ts";
import { HOST_SETTINGS, type HostConfig } from "./config.ts";
import { createNetworkedRuntime } from "./container/networked-runtime.ts";
import { createFileWorkers } from "./file/workers.ts";
import type { HostOptions } from "./compose-options.ts";
import type { CreateRequest } from "./lifecycle/create.ts";
import { FakeNetwork } from "./network/fake/fake-network.ts";
import { FAKE_PROGRAMS } from "./runtime/fake/fake-program.ts";
import { createFakeMachine, createFakeRuntime, type FakeRuntime } from "./runtime/fake/fake-runtime.ts";
import type { Session } from "./session/session.ts";
import { createFakeStorage, type FakeStorage } from "./storage/fake/fake-storage.ts";
import type { ToolResult } from "./tool/result.ts";

/** A whole host on fake backends, for tests of the nouns. A command is the name of a fake program with its arguments. */
export interface TestHost extends AsyncDisposable {
  readonly host: Host;
  readonly storage: FakeStorage;
  readonly runtime: FakeRuntime;
  readonly network: FakeNetwork;
  create(more?: Partial<CreateRequest>): Promise<Session>;
  bash(session: Session, cmd: string, callId?: string): Promise<ToolResult>;
  /** Ends the service as `kill -9` does and starts it again on what is left. */
  restart(more?: RestartOptions): Promise<TestHost>;
  /** The same after a stop that was asked for. */
  stopAndStart(more?: RestartOptions): Promise<TestHost>;
}

export interface RestartOptions {
  readonly whileDown?: (directory: string) => Promise<void>;
  /** Which boot of the machine it finds; the same one unless given. */
  readonly bootId?: string;
  /** Changes of the configuration. */
  readonly config?: Partial<HostConfig>;
}

export const HOME: Principal = { kind: "home", tenant: "default", verbs: [] };
export const SIGNAL: AbortSignal = new AbortController().signal;

let calls = 0;

/** What a test may put in the place of the real thing; a restart takes neither over. */
export type TestParts = Pick<HostOptions, "clock" | "crashPoint" | "bootId">;

export async function startTestHost(config: Partial<HostConfig> = {}, parts: TestParts = {}): Promise<TestHost> {
  const directory = await mkdtemp(join(tmpdir(), "turnbox-host-"));
  const storage = createFakeStorage({ directory: await mkdtemp(join(directory, "storage-")) });
  await writeFile(join(directory, "busybox"), "#!/bin/sh\necho sh\necho busybox\n", { mode: 0o755 });
  await writeFile(join(directory, "bash"), "#!/bin/sh\n", { mode: 0o755 });
  return await start({ directory, storage, machine: createFakeMachine(), network: new FakeNetwork(), config }, parts);
}

interface World {
  readonly directory: string;
  readonly storage: FakeStorage;
  readonly machine: ReturnType<typeof createFakeMachine>;
  readonly network: FakeNetwork;
  readonly config: Partial<HostConfig>;
}

async function start(world: World, parts: TestParts = {}): Promise<TestHost> {
  const { directory, storage, network } = world;
  const runtime = createFakeRuntime({ machine: world.machine, programOf });
  const composed = await composeHost(
    {
      ...parts,
      config: { ...parseConfig(HOST_SETTINGS, { env: {} }), ...world.config },
      dataDirectory: directory,
      log: createLog({ name: "test", level: "silent", to: "stderr" }),
      path: process.env["PATH"] ?? "",
      backends: (runner) => {
        const workers = createFileWorkers({
          runner,
          nodePath: process.execPath,
          ...(parts.clock && { clock: parts.clock }),
        });
        return { storage, runtime: createNetworkedRuntime(runtime, network), network, workers };
      },
      miniSources: { busybox: join(directory, "busybox"), bash: join(directory, "bash") },
    },
    { signal: SIGNAL },
  );
  await composed.recovered;
  const { host } = composed;
  const startAgain = async ({ whileDown, bootId, config }: RestartOptions = {}): Promise<TestHost> => {
    await whileDown?.(directory);
    const next = { ...world, storage: storage.restarted(), config: { ...world.config, ...config } };
    return await start(next, bootId === undefined ? {} : { bootId });
  };
  return {
    host,
    storage,
    runtime,
    network,
    create: (more = {}) => host.createSession({ ...CREATE, ...more }, { signal: SIGNAL }),
    bash: async (session, cmd, callId) => {
      calls += 1;
      const { result } = await host.executeTool(session, {
        callId: callId ?? `call-${calls}`,
        toolName: "bash",
        parameters: { cmd },
        stdin: new Uint8Array(),
        expectedGeneration: undefined,
        kill: SIGNAL,
      });
      return result;
    },
    restart: async (more) => {
      await composed.abandon();
      return await startAgain(more);
    },
    stopAndStart: async (more) => {
      await composed[Symbol.asyncDispose]();
      return await startAgain(more);
    },
    [Symbol.asyncDispose]: async () => {
      await composed[Symbol.asyncDispose]();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

export const CREATE: CreateRequest = {
  tenant: "default",
  idempotencyKey: "",
  payload: "",
  sessionId: "",
  base: "mini",
  quotaBytes: null,
  labels: {},
  env: {},
  limits: {},
  time: { ttlMs: null, idleTimeoutMs: null, onTimeout: "destroy" },
  ports: [],
  networkPolicy: null,
};

/** `bash -c "write a.txt hello"` runs the fake program `write`. */
function programOf(argv: readonly string[]) {
  const [name = "", ...args] = (argv[2] ?? "").split(" ");
  const program = FAKE_PROGRAMS[name];
  return program === undefined
    ? undefined
    : (process: Parameters<typeof program>[0]) => program({ ...process, argv: [name, ...args] });
}
