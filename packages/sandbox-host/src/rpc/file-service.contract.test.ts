import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createLog, parseConfig } from "@turnbox/core";
import { FileEventKind } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import { HostCommandRunner } from "../system/command/host-command-runner.ts";
import { type ComposedHost, composeHost } from "../compose.ts";
import { type Backends, composeBackends } from "../compose-backends.ts";
import { HOST_SETTINGS } from "../config.ts";
import type { Session } from "../session/session.ts";
import { FileService } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import { accessTo, reasonOf } from "./client.suite.ts";
import { collect, uploadOf } from "./files.suite.ts";

/** Files of a real session: ZFS below, gVisor beside. */
const SLOW_MS = 120_000;
const SIGNAL = new AbortController().signal;
let home: string;
let backends: Backends;
const runner = new HostCommandRunner();
let composed: ComposedHost;
let session: Session;
let calls = 0;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "turnbox-files-"));
  const options = {
    config: { ...parseConfig(HOST_SETTINGS, { env: {} }), poolSize: 2 * 1024 ** 3 },
    dataDirectory: home,
    log: createLog({ name: "test", level: "silent", to: "stderr" }),
    path: process.env["PATH"] ?? "",
  };
  backends = await composeBackends(options, runner);
  composed = await composeHost({ ...options, backends: () => backends }, { signal: AbortSignal.timeout(SLOW_MS / 2) });
  session = await composed.host.createSession(
    {
      tenant: "default",
      idempotencyKey: "",
      payload: "",
      sessionId: "real",
      base: "mini",
      quotaBytes: 64 * 1024 ** 2,
      labels: {},
      env: {},
      limits: {},
      time: { ttlMs: null, idleTimeoutMs: null, onTimeout: "destroy" },
      ports: [],
      networkPolicy: null,
    },
    { signal: SIGNAL },
  );
}, SLOW_MS);

afterAll(async () => {
  const { host } = composed;
  await host.destroySession(session);
  const endMs = performance.now() + 60_000;
  while ((await host.health.report()).removals.length > 0 && performance.now() < endMs)
    await new Promise((resolve) => setTimeout(resolve, 100));
  await composed[Symbol.asyncDispose]();
  await runner[Symbol.asyncDispose]();
  // A filesystem stays busy for a while after its last user.
  for (let isGone = false; !isGone; ) {
    const signal = AbortSignal.timeout(SLOW_MS / 2);
    isGone = await backends.storage.destroyAll({ signal }).then(
      () => true,
      (thrown: unknown) => {
        if (performance.now() > endMs) throw thrown;
        return false;
      },
    );
  }
  await rm(home, { recursive: true, force: true });
}, SLOW_MS);

const client = () => accessTo(composed.host).client(FileService);
const sessionId = "real";

async function bash(cmd: string): Promise<string> {
  calls += 1;
  const { result } = await composed.host.executeTool(session, {
    callId: `call-${calls}`,
    toolName: "bash",
    parameters: { cmd },
    stdin: new Uint8Array(),
    expectedGeneration: undefined,
    kill: SIGNAL,
  });
  if (result.isError) throw new Error(result.content);
  return result.content;
}

describe("files of a session in gVisor on ZFS", () => {
  it(
    "are the same from inside and outside, at once (D17)",
    async () => {
      const { entry } = await client().writeFile(uploadOf({ sessionId, path: "from-outside" }, Buffer.from("out")));
      expect(entry).toMatchObject({ uid: 0, gid: 0, mode: 0o644 });
      expect(await bash("cat from-outside; echo inner > from-inside; stat -c %u:%g from-outside")).toBe("out0:0\n");
      expect((await collect(client().readFile({ sessionId, path: "from-inside" }))).toString()).toBe("inner\n");
      await client().writeFile(uploadOf({ sessionId, path: "from-outside" }, Buffer.from("changed")));
      await client().remove({ sessionId, path: "from-inside" });
      expect(await bash("cat from-outside; ls")).toBe("changedfrom-outside\n");
    },
    SLOW_MS,
  );

  it(
    "are watched also where the sandbox writes them",
    async () => {
      const leave = new AbortController();
      const stream = client().watchDirectory({ sessionId, path: ".", recursive: true }, { signal: leave.signal });
      const seen: string[] = [];
      const finished = (async () => {
        for await (const { kind, path } of stream) {
          seen.push(`${FileEventKind[kind]} ${path}`);
          if (kind === FileEventKind.STARTED)
            void bash("echo 1 > watched; echo 2 >> watched; mkdir sub; sleep 0.2; echo x > sub/deep; rm watched");
          if (seen.includes("CREATED /workspace/sub/deep") && seen.includes("REMOVED /workspace/watched")) return;
        }
      })();
      await Promise.race([finished, new Promise((resolve) => setTimeout(resolve, 20_000).unref())]);
      leave.abort();
      expect(seen).toEqual(
        expect.arrayContaining([
          "STARTED /workspace",
          "CREATED /workspace/watched",
          "CREATED /workspace/sub",
          "CREATED /workspace/sub/deep",
          "REMOVED /workspace/watched",
        ]),
      );
    },
    SLOW_MS,
  );

  it(
    "that do not fit are refused as more than the session's allowance, and the old content stays",
    async () => {
      await client().writeFile(uploadOf({ sessionId, path: "full" }, Buffer.from("old")));
      const header = { sessionId, path: "full" };
      async function* tooMuch() {
        yield* uploadOf(header, Buffer.alloc(0));
        for (let n = 0; n < 128; n += 1) yield { part: { case: "data", value: noise() } as const };
      }
      expect(await reasonOf(client().writeFile(tooMuch()))).toBe("QUOTA_EXCEEDED");
      expect((await collect(client().readFile({ sessionId, path: "full" }))).toString()).toBe("old");
      expect(await bash("ls -A | grep -c turnbox || true")).toBe("0\n");
    },
    SLOW_MS,
  );

  it(
    "are those of the snapshot after a rollback, and a stream on the old ones ends (attack 17)",
    async () => {
      const { host } = composed;
      await bash("echo before > turned; truncate -s 8G sparse");
      const { snapshot } = await host.completeTurn(
        session,
        { turnKey: "", outcome: "succeeded", expectedGeneration: undefined },
        { signal: SIGNAL },
      );
      await bash("echo after > turned");
      const stream = client().readFile({ sessionId, path: "sparse" })[Symbol.asyncIterator]();
      await stream.next();
      await host.rollbackSession(
        session,
        {
          idempotencyKey: "",
          payload: "",
          snapshotId: snapshot?.id ?? "",
          expectedGeneration: undefined,
          drainTimeoutMs: 0,
          processes: "stop",
        },
        { signal: SIGNAL },
      );
      const drain = (async () => {
        for (let next = await stream.next(); next.done !== true; next = await stream.next());
      })();
      expect(await reasonOf(drain)).toBe("GENERATION_CHANGED");
      expect((await collect(client().readFile({ sessionId, path: "turned" }))).toString()).toBe("before\n");
      const old = { sessionId, path: "turned", expectedGeneration: session.row.generation - 1 };
      expect(await reasonOf(client().remove(old))).toBe("GENERATION_CHANGED");
    },
    SLOW_MS,
  );
});

/** A piece that no compression makes smaller. */
function noise(): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(1024 * 1024);
  for (let at = 0; at < bytes.length; at += 65_536) crypto.getRandomValues(bytes.subarray(at, at + 65_536));
  return bytes;
}
