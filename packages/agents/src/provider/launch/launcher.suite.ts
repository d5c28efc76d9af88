import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Clock, Secret } from "@turnbox/client";
import { systemClock } from "@turnbox/client/internal";
import { createManualClock } from "@turnbox/client/fake";
import { type Handle, type Launcher, STDERR_TAIL_BYTES, STOP_GRACE_MS } from "./launcher.ts";

/** What every launcher does. */
export function describeLauncher(name: string, create: (root: string, clock: Clock) => Launcher): void {
  describe(name, () => {
    let root: string;
    beforeAll(async () => {
      root = await realpath(await mkdtemp(join(tmpdir(), "turnbox-launcher-")));
    });
    afterAll(async () => {
      await rm(root, { recursive: true });
    });
    const sh = (script: string, ...args: readonly string[]) => ({ command: "sh", args: ["-c", script, "sh", ...args] });
    const launch = (...[spec, clock = systemClock]: [Parameters<Launcher["launch"]>[0], Clock?]): Promise<Handle> =>
      create(root, clock).launch(spec);

    it("talks to the program over its own input and output, and keeps standard error apart", async () => {
      await using handle = await launch(
        sh('read line; echo "got $line"; echo aside >&2; read line; echo "then $line"'),
      );
      const reader = handle.stdout.pipeThrough(new TextDecoderStream()).getReader();
      const writer = handle.stdin.getWriter();
      await writer.write(Buffer.from("one\n"));
      expect((await reader.read()).value).toBe("got one\n");
      await writer.write(Buffer.from("two\n"));
      expect((await reader.read()).value).toBe("then two\n");
      expect((await reader.read()).done).toBe(true);
      expect(await handle.wait()).toEqual({ exitCode: 0, signal: undefined, reason: undefined });
      await handle.done;
      expect(await handle.stderr()).toBe("aside\n");
      expect(handle.cwd).toBe(root);
      expect(handle.id).not.toBe("");
    });

    it("ends the program's input when it is closed", async () => {
      await using handle = await launch({ command: "cat" });
      const writer = handle.stdin.getWriter();
      await writer.write(Buffer.from("all"));
      await writer.close();
      expect(await text(handle)).toBe("all");
    });

    it("gives the program the variables of the spec and none of this process (D19), and words as they are (D40)", async () => {
      const env = { GIVEN: "yes", BOTH: "open" };
      const secretEnv = { BOTH: new Secret("hidden") };
      const spec = { ...sh('env; pwd; printf "%s|" "$@"', "a b", "$(id)", ";"), env, secretEnv };
      await using handle = await launch(spec);
      const output = await text(handle);
      expect(output).toContain("GIVEN=yes\n");
      expect(output).toContain("BOTH=hidden\n");
      expect(output).not.toContain("NODE_OPTIONS");
      expect(output).toContain(`${root}\na b|$(id)|;|`);
    });

    it("tells how it ended", async () => {
      await using failed = await launch(sh("exit 7"));
      expect(await failed.wait()).toMatchObject({ exitCode: 7, signal: undefined });
      await using killed = await launch(sh("kill -9 $$"));
      expect(await killed.wait()).toMatchObject({ exitCode: undefined, signal: "SIGKILL" });
    });

    it("keeps the last of standard error", async () => {
      await using handle = await launch(sh('i=0; while [ $i -lt 9000 ]; do echo "line $i"; i=$((i+1)); done >&2'));
      await handle.done;
      const kept = await handle.stderr();
      expect(kept).toMatch(/line 8999\n$/);
      expect(Buffer.byteLength(kept)).toBeLessThanOrEqual(STDERR_TAIL_BYTES);
      expect(kept).not.toContain("line 0\n");
    });

    it("stops with SIGTERM, and again without effect", async () => {
      const handle = await launch(sh('trap "exit 3" TERM; echo up; while :; do sleep 0.05; done'));
      await firstOutput(handle);
      await handle.stop();
      expect(await handle.wait()).toMatchObject({ exitCode: 3 });
      await handle.stop();
    });

    it("kills what ignores SIGTERM after its grace, with all that it started", async () => {
      const clock = createManualClock();
      const handle = await launch(
        sh('trap "" TERM; sleep 1000 & echo $!; wait; wait; while :; do sleep 1; done'),
        clock,
      );
      const child = Number(await firstOutput(handle));
      const stopping = handle.stop();
      while (clock.sleeping === 0) await new Promise((resolve) => setImmediate(resolve));
      await clock.advance(STOP_GRACE_MS);
      await stopping;
      expect(await handle.wait()).toMatchObject({ signal: "SIGKILL" });
      await expect(gone(child)).resolves.toBeUndefined();
    });

    it("gives up waiting when the caller does, and leaves the program alone", async () => {
      await using handle = await launch({ command: "sleep", args: ["1000"] });
      await expect(handle.wait({ signal: AbortSignal.abort() })).rejects.toMatchObject({ reason: "CANCELLED" });
    });
  });
}

async function text(handle: Handle): Promise<string> {
  let all = "";
  for await (const piece of handle.stdout.pipeThrough(new TextDecoderStream())) all += piece;
  return all;
}

async function firstOutput(handle: Handle): Promise<string> {
  const reader = handle.stdout.getReader();
  const { value } = await reader.read();
  reader.releaseLock();
  return Buffer.from(value!).toString();
}

async function gone(pid: number): Promise<void> {
  for (const untilMs = Date.now() + 5000; Date.now() < untilMs; ) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  throw new Error(`${pid} still runs`);
}
