import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createLog, parseConfig, SandboxError } from "@turnbox/core";
import { HostCommandRunner } from "./system/command/host-command-runner.ts";
import type { PartHook } from "./assembly.ts";
import { type ComposedHost, composeHost } from "./compose.ts";
import type { Backends } from "./compose-backends.ts";
import { HOST_SETTINGS } from "./config.ts";
import { createNetworkedRuntime } from "./container/networked-runtime.ts";
import { createFileWorkers } from "./file/workers.ts";
import { FakeNetwork } from "./network/fake/fake-network.ts";
import { createFakeMachine, createFakeRuntime } from "./runtime/fake/fake-runtime.ts";
import { createFakeStorage } from "./storage/fake/fake-storage.ts";

const SIGNAL = new AbortController().signal;

/** The parts of a host that starts, in the order in which they are made. */
const PARTS = [
  "command runner",
  "records",
  "running sandboxes",
  "runtime",
  "network",
  "file workers",
  "outputs of tool calls",
  "removals",
  "operations",
  "recovery",
  "warm sessions",
  "watch of the network",
  "ports",
  "processes",
  "background",
  "calls under way",
];

interface Watched {
  readonly made: string[];
  readonly released: string[];
  readonly hook: PartHook;
}

/** Notes what is made and released; the step after `last` throws. */
function watchParts(last?: string): Watched {
  const made: string[] = [];
  const released: string[] = [];
  const hook: PartHook = (event, part) => {
    (event === "made" ? made : released).push(part);
    if (event === "made" && part === last) throw new SandboxError("INTERNAL", `after ${part}`);
  };
  return { made, released, hook };
}

describe("composeHost", () => {
  let directory: string;
  let backends: Backends;
  let runner: HostCommandRunner;
  /** What the backends were asked to close. */
  let closed: string[];

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "turnbox-compose-"));
    await writeFile(join(directory, "busybox"), "#!/bin/sh\necho sh\necho busybox\n", { mode: 0o755 });
    await writeFile(join(directory, "bash"), "#!/bin/sh\n", { mode: 0o755 });
    closed = [];
    const network = new FakeNetwork();
    const runtime = createNetworkedRuntime(
      createFakeRuntime({ machine: createFakeMachine(), programOf: () => undefined }),
      network,
    );
    runner = new HostCommandRunner();
    const workers = createFileWorkers({ runner, nodePath: process.execPath });
    const noted = <Part extends AsyncDisposable>(name: string, part: Part): Part => ({
      ...part,
      [Symbol.asyncDispose]: async () => {
        closed.push(name);
        await part[Symbol.asyncDispose]();
      },
    });
    backends = {
      storage: createFakeStorage({ directory: await mkdtemp(join(directory, "storage-")) }),
      runtime: {
        ...runtime,
        close: async (call) => {
          closed.push("runtime");
          await runtime.close(call);
        },
      },
      network: noted("network", network),
      workers: noted("file workers", workers),
    };
  });
  afterEach(async () => {
    await runner[Symbol.asyncDispose]();
    await rm(directory, { recursive: true, force: true });
  });

  const start = (hook: PartHook, more: Partial<Backends> = {}): Promise<ComposedHost> =>
    composeHost(
      {
        config: parseConfig(HOST_SETTINGS, { env: {} }),
        dataDirectory: directory,
        log: createLog({ name: "test", level: "silent", to: "stderr" }),
        path: process.env["PATH"] ?? "",
        backends: () => ({ ...backends, ...more }),
        miniSources: { busybox: join(directory, "busybox"), bash: join(directory, "bash") },
        onPart: hook,
      },
      { signal: SIGNAL },
    );
  const backendsOf = (parts: readonly string[]): readonly string[] =>
    parts.filter((part) => ["runtime", "network", "file workers"].includes(part)).toReversed();

  it.each(PARTS)("releases all that it made, in reverse, if the step after the %s throws", async (last) => {
    const watched = watchParts(last);
    const upToLast = PARTS.slice(0, PARTS.indexOf(last) + 1);
    await expect(start(watched.hook)).rejects.toThrow(`after ${last}`);
    expect(watched.made).toEqual(upToLast);
    expect(watched.released).toEqual(upToLast.toReversed());
    expect(closed).toEqual(backendsOf(upToLast));
  });

  it("leaves a home that starts, with free records, when a start has failed", async () => {
    await expect(start(watchParts("calls under way").hook)).rejects.toThrow("after calls under way");
    await using again = await start(() => undefined);
    await again.recovered;
    expect(again.host.registry.all()).toEqual([]);
  });

  it.each([
    { name: "runtime", more: (): Partial<Backends> => ({ runtime: { ...backends.runtime, open: refuse } }) },
    { name: "storage", more: (): Partial<Backends> => ({ storage: { ...backends.storage, open: refuse } }) },
    { name: "template", more: (): Partial<Backends> => ({ storage: { ...backends.storage, createBase: refuse } }) },
  ])("releases all that it made, in reverse, if the $name cannot be had", async ({ more }) => {
    const watched = watchParts();
    await expect(start(watched.hook, more())).rejects.toThrow("not today");
    expect(watched.made.length).toBeGreaterThan(5);
    expect(watched.released).toEqual(watched.made.toReversed());
  });

  it("throws what went wrong, also if a release fails", async () => {
    const watched = watchParts("removals");
    const workers = { ...backends.workers, [Symbol.asyncDispose]: refuse };
    await expect(start(watched.hook, { workers })).rejects.toThrow("after removals");
    expect(watched.released.at(-1)).toBe(PARTS[0]);
  });

  it.each([
    ["stops", ["file workers", "network", "runtime"], (host: ComposedHost) => host[Symbol.asyncDispose]()],
    // What runs in containers stays as it is, as if the service was killed.
    ["is abandoned", ["file workers", "network"], (host: ComposedHost) => host.abandon()],
  ] as const)("releases each part once, in reverse, when it %s", async (_how, expected, end) => {
    const watched = watchParts();
    const composed = await start(watched.hook);
    await composed.recovered;
    await end(composed);
    await composed[Symbol.asyncDispose]();
    expect(watched.made).toEqual(PARTS);
    expect(watched.released).toEqual(PARTS.toReversed());
    expect(closed).toEqual(expected);
  });
});

const refuse = (): Promise<never> => Promise.reject(new SandboxError("STORAGE_UNAVAILABLE", "not today"));
