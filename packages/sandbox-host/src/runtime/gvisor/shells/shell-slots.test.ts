import { PassThrough } from "node:stream";
import { describe, expect, it } from "@jest/globals";
import type { CommandExit } from "@turnbox/core";
import { createManualClock } from "@turnbox/core/testing";
import type { ExecSpec } from "../../runtime.ts";
import type { StartedProcess } from "../exec/start-process.ts";
import { ShellSlots } from "./shell-slots.ts";

const SPEC: ExecSpec = { argv: ["bash", "-c", "echo hi"], env: { PATH: "/bin" }, cwd: "/", deadlineMs: 1000 };
const never = new AbortController().signal;

/** A waiting shell, as far as slots see it: what it is sent, and what it writes. */
function newShell(pid = 7) {
  const ended = Promise.withResolvers<CommandExit>();
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const relay = (output: PassThrough) => ({
    output,
    consumed: Promise.resolve(),
    hold: () => undefined,
    drain: () => Promise.resolve(),
  });
  const end = (): void => {
    stdout.end();
    stdout.resume();
    ended.resolve({ kind: "exited", exitCode: 1 });
  };
  stdin.once("close", end);
  const process: StartedProcess = {
    command: { stdin, ended: ended.promise, kill: end },
    stdout: relay(stdout),
    stderr: relay(stderr),
    pid,
    marker: "m",
    release: () => undefined,
  };
  return { process, stdin, stdout, end };
}

async function newSlots() {
  const shell = newShell();
  const clock = createManualClock();
  const abandoned: string[] = [];
  const slots = new ShellSlots({
    awake: (_id, work) => work(),
    calm: () => Promise.resolve(),
    start: () => Promise.resolve(shell.process),
    record: () => undefined,
    abandon: async (_id, { marker }) => {
      abandoned.push(marker);
      await Promise.resolve();
    },
    isRunning: () => Promise.resolve(true),
    limits: { mark: () => 0, isIntact: () => true },
    clock,
    perContainer: 1,
  });
  await slots.refill("c", SPEC);
  return { ...shell, clock, abandoned, slots };
}

describe("a call that is given to a shell which waits", () => {
  it("begins when the shell says so, and has nothing of that in its output", async () => {
    const { slots, stdin, stdout, process } = await newSlots();
    const taking = slots.take("c", SPEC, never);
    stdin.once("data", (script: Buffer) => {
      stdout.write(`${/printf %s (\w+);/.exec(script.toString())?.[1] ?? ""}hi`);
    });
    expect(await taking).toBe(process);
    expect((stdout.read() as Buffer).toString()).toBe("hi");
  });

  it("goes to a new one where the shell has ended before it began", async () => {
    const { slots, end, abandoned } = await newSlots();
    const taking = slots.take("c", SPEC, never);
    end();
    expect(await taking).toBeUndefined();
    expect(abandoned).toEqual([]);
  });

  it("has an unknown outcome where the shell stays silent, and is not made a second time", async () => {
    const { slots, clock, abandoned } = await newSlots();
    const taking = slots.take("c", SPEC, never);
    taking.catch(() => undefined);
    await clock.advance(10_000);
    await expect(taking).rejects.toMatchObject({ reason: "RUNTIME_UNAVAILABLE", admitted: "unknown" });
    expect(abandoned).toEqual(["m"]);
  });

  it("has an unknown outcome where something else speaks first", async () => {
    const { slots, stdout, abandoned } = await newSlots();
    const taking = slots.take("c", SPEC, never);
    stdout.write("x".repeat(100));
    await expect(taking).rejects.toMatchObject({ admitted: "unknown" });
    expect(abandoned).toEqual(["m"]);
  });

  it("ends with its caller's signal, and so does what it may have started", async () => {
    const { slots, stdin, abandoned } = await newSlots();
    const leaving = new AbortController();
    const taking = slots.take("c", SPEC, leaving.signal);
    stdin.once("data", () => {
      leaving.abort(new Error("gone"));
    });
    await expect(taking).rejects.toThrow("gone");
    expect(abandoned).toEqual(["m"]);
  });
});

/** Shells of which each is made when the test says so, and does at once what it is sent. */
function newSupply({ calm = () => Promise.resolve() } = {}) {
  const clock = createManualClock();
  const begun: { readonly shell: ReturnType<typeof newShell>; readonly finish: () => void }[] = [];
  const slots = new ShellSlots({
    awake: (_id, work) => work(),
    calm,
    start: async () => {
      const shell = newShell(begun.length + 2);
      shell.stdin.on("data", (script: Buffer) => {
        shell.stdout.write(/printf %s (\w+);/.exec(script.toString())?.[1] ?? "");
      });
      await new Promise<void>((resolve) => {
        begun.push({ shell, finish: resolve });
      });
      return shell.process;
    },
    record: () => undefined,
    abandon: () => Promise.resolve(),
    isRunning: () => Promise.resolve(true),
    limits: { mark: () => 0, isIntact: () => true },
    clock,
    perContainer: 1,
  });
  return { slots, begun, clock };
}

describe("shells for calls to come", () => {
  it("are made a moment after a call, and only once for calls that wait for none", async () => {
    const { slots, begun, clock } = newSupply();
    expect(await slots.take("c", SPEC, never)).toBeUndefined();
    await clock.advance(59);
    expect(begun).toHaveLength(0);
    await clock.advance(1);
    expect(begun).toHaveLength(1);
    await clock.advance(1000);
    expect(begun).toHaveLength(1);
  });

  it("give way to boots that a caller waits for", async () => {
    const calm = Promise.withResolvers<void>();
    const { slots, begun, clock } = newSupply({ calm: () => calm.promise });
    await slots.take("c", SPEC, never);
    await clock.advance(1000);
    expect(begun).toHaveLength(0);
    calm.resolve();
    await clock.advance(0);
    expect(begun).toHaveLength(1);
  });

  it("are not made where none are to come, until one comes after all", async () => {
    const { slots, begun, clock } = newSupply();
    await slots.take("c", SPEC, never);
    slots.expectNone("c");
    await clock.advance(1000);
    expect(begun).toHaveLength(0);
    await slots.take("c", SPEC, never);
    await clock.advance(60);
    expect(begun).toHaveLength(1);
  });

  it("are made at once where calls come fast, and taken by the next call before they wait", async () => {
    const { slots, begun, clock } = newSupply();
    await slots.take("c", SPEC, never);
    expect(await slots.take("c", SPEC, never)).toBeUndefined();
    await clock.advance(0);
    expect(begun).toHaveLength(1);
    const third = slots.take("c", SPEC, never);
    await clock.advance(0);
    expect(begun).toHaveLength(2);
    begun[0]?.finish();
    expect(await third).toBe(begun[0]?.shell.process);
    expect(slots.isMaking("c")).toBe(true);
  });

  it("are more for a while where calls came fast, and as few as before after an idle time", async () => {
    const { slots, begun, clock } = newSupply();
    const countAfter = async (calls: number): Promise<number> => {
      const asked = Array.from({ length: calls }, () => slots.take("c", SPEC, never));
      for (let round = 0; round < 5; round += 1) {
        for (const { finish } of begun) finish();
        await clock.advance(60);
      }
      await Promise.all(asked);
      return (await slots.settled("c")).size;
    };
    expect(await countAfter(1)).toBe(1);
    expect(await countAfter(3)).toBe(3);
    await clock.advance(60_000);
    expect((await slots.settled("c")).size).toBe(0);
    expect(await countAfter(1)).toBe(1);
  });

  it("are not given to a call that was cancelled while it waited for one", async () => {
    const { slots, begun, clock } = newSupply();
    const refilling = slots.refill("c", SPEC);
    await clock.advance(0);
    const leaving = new AbortController();
    const taking = slots.take("c", SPEC, leaving.signal);
    leaving.abort(new Error("gone"));
    begun[0]?.finish();
    await expect(taking).rejects.toThrow("gone");
    expect(begun[0]?.shell.stdin.destroyed).toBe(true);
    await refilling;
  });
});

describe("a shell that is not needed", () => {
  it("ends after a while", async () => {
    const { slots, clock, stdin } = await newSlots();
    expect([...(await slots.settled("c"))]).toEqual([7]);
    await clock.advance(60_000);
    expect(stdin.destroyed).toBe(true);
    expect([...(await slots.settled("c"))]).toEqual([]);
    expect(await slots.take("c", SPEC, never)).toBeUndefined();
  });

  it("is let go of with the service, which sets no alarm for it any more and makes none", async () => {
    const { slots, stdin, clock } = await newSlots();
    expect(clock.sleeping).toBe(1);
    slots.release();
    expect([clock.sleeping, stdin.destroyed]).toEqual([0, true]);
    await slots.refill("c", SPEC);
    expect(clock.sleeping).toBe(0);
  });

  it("lets go of its streams when it ends with its container", async () => {
    const { slots, end, stdin, stdout } = await newSlots();
    end();
    await slots.close("c");
    expect([stdin.destroyed, stdout.destroyed]).toEqual([true, true]);
  });
});
