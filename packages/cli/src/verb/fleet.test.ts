import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createHarness, type Harness } from "../cli-harness.suite.ts";
import {
  createServices,
  DrainReason,
  DrainSessions,
  type FleetAnswer,
  FleetEventKind,
  fleetInstance,
  InstanceState,
  newWorld,
  type World,
} from "@turnbox/client/fake";

let world: World;
let harness: Harness;
beforeEach(async () => {
  world = newWorld();
  const reason = DrainReason.SCALE_DOWN;
  world.instances = [
    fleetInstance("i-aa"),
    fleetInstance("i-ab", { state: InstanceState.DRAINING, drainReason: reason, cordoned: true, maxSessions: 0 }),
    fleetInstance("i-b", { state: InstanceState.READY, cordoned: true, health: "unknown", message: "silent\u001b[2J" }),
  ];
  harness = await createHarness(createServices(world));
});
afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

describe("turnbox fleet status", () => {
  it("shows the fleet in numbers", async () => {
    const { stdout, exitCode } = await harness.run(["fleet", "status"]);
    expect(exitCode).toBe(0);
    expect(stdout.split("\n")).toEqual([
      "fleet            f1 (version 1.2.3)",
      "instances        3 (2 active, 1 draining)",
      "sandboxes        9",
      "waiting creates  4",
      "",
    ]);
    expect((await harness.run(["fleet", "status", "--json"])).json()).toEqual({
      fleetId: "f1",
      version: "1.2.3",
      instances: { active: 2, draining: 1 },
      sessionCount: 9,
      waitingCreates: 4,
    });
  });
});

describe("turnbox fleet ls", () => {
  it("lists every page, with what keeps sandboxes off, and lets no message move the cursor", async () => {
    expect((await harness.run(["fleet", "ls"])).stdout.split("\n")).toEqual([
      "INSTANCE  STATE                  HEALTH   SANDBOXES  FREE     AGE  IMAGE  NOTE",
      "i-aa      active                 healthy  3/50       2.0 GiB  2m   img-1",
      "i-ab      draining (scale_down)  healthy  3          2.0 GiB  2m   img-1",
      "i-b       ready cordoned         unknown  3/50       2.0 GiB  2m   img-1  silent\\u{001b}[2J",
      "",
    ]);
  });

  it("has the documented shape under --json", async () => {
    const { instances } = (await harness.run(["fleet", "ls", "--json"])).json() as { instances: unknown[] };
    expect(instances[1]).toEqual({
      instanceId: "i-ab",
      state: "draining",
      drainReason: "scale_down",
      cordoned: true,
      health: "healthy",
      url: "http://i-ab:9000",
      sessionCount: 3,
      maxSessions: null,
      poolAvailableBytes: 2 ** 31,
      image: "img-1",
      labels: {},
      launchedAt: "2026-01-01T11:58:00.000Z",
      message: "",
    });
  });
});

describe("turnbox fleet cordon and uncordon", () => {
  it("take an id or a unique prefix", async () => {
    expect(await harness.run(["fleet", "cordon", "i-b"])).toMatchObject({ exitCode: 0, stdout: "cordoned i-b\n" });
    expect((await harness.run(["fleet", "uncordon", "i-aa", "--json"])).json()).toMatchObject({ instanceId: "i-aa" });
    expect(world.cordons).toEqual(["+i-b", "-i-aa"]);
  });

  it("refuse what means several or none, and ask for nothing", async () => {
    const several = await harness.run(["fleet", "cordon", "i-a"]);
    expect(several).toMatchObject({ exitCode: 2, stdout: "" });
    expect(several.stderr).toContain("i-aa, i-ab");
    const none = await harness.run(["fleet", "uncordon", "zz"]);
    expect([none.exitCode, none.stderr.split(":")[0]]).toEqual([4, "INSTANCE_NOT_FOUND"]);
    expect(world.cordons).toEqual([]);
  });
});

describe("turnbox fleet drain", () => {
  it("keeps sandboxes and takes the fleet's time, unless told otherwise", async () => {
    const ran = await harness.run(["fleet", "drain", "i-aa"]);
    expect(ran).toMatchObject({ exitCode: 0, stdout: "draining i-aa\n" });
    expect((await harness.run(["fleet", "drain", "i-b", "--timeout", "10m", "--json"])).json()).toMatchObject({
      state: "draining",
      drainReason: "operator",
    });
    const [first, second] = world.drains;
    expect(first).toMatchObject({ instanceId: "i-aa", sessions: DrainSessions.KEEP });
    expect(first?.timeout).toBeUndefined();
    expect(second?.timeout?.seconds).toBe(600n);
    expect((await harness.run(["fleet", "drain", "i-b", "--timeout", "soon"])).exitCode).toBe(2);
  });

  it("asks before anything is lost, and says how much", async () => {
    const questions: string[] = [];
    const answering = (answer: string) => async (question: string) => {
      questions.push(question);
      return answer;
    };
    const refused = await harness.run(["fleet", "drain", "i-b", "--discard"], { ask: answering("no") });
    expect(refused.exitCode).toBe(130);
    expect(refused.stderr).toContain("i-b has 3 sandboxes when it last answered");
    expect(world.drains).toEqual([]);
    await harness.run(["fleet", "drain", "i-b", "--discard"], { ask: answering("yes") });
    await harness.run(["fleet", "drain", "i-aa", "--discard", "--yes"]);
    expect(questions).toHaveLength(2);
    expect(world.drains.map(({ sessions }) => sessions)).toEqual([DrainSessions.DISCARD, DrainSessions.DISCARD]);
  });

  it("needs --yes if there is no terminal to ask at", async () => {
    const ran = await harness.run(["fleet", "drain", "i-b", "--discard"]);
    expect(ran.exitCode).toBe(2);
    expect(ran.stderr).toContain("--yes");
    expect(world.drains).toEqual([]);
  });
});

describe("turnbox fleet refresh", () => {
  it("names what is replaced, and on stderr what is skipped", async () => {
    const ran = await harness.run(["fleet", "refresh", "--image", "img-2"]);
    expect(ran).toMatchObject({ exitCode: 0, stdout: "replacing i-aa, i-ab\n" });
    expect(ran.stderr).toContain("would be lost: i-b");
    expect((await harness.run(["fleet", "refresh", "--json"])).json()).toEqual({
      replacing: ["i-aa", "i-ab"],
      skipped: ["i-b"],
    });
    expect(world.images).toEqual(["img-2", ""]);
  });
});

describe("turnbox fleet watch", () => {
  const until = async (holds: () => boolean): Promise<void> => {
    const deadlineMs = performance.now() + 5000;
    while (!holds()) {
      if (performance.now() > deadlineMs) throw new Error("waited in vain");
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  /** Says all of it, then nothing until the reader goes. */
  const saying = (...answers: FleetAnswer[]) =>
    async function* (signal: AbortSignal): AsyncGenerator<FleetAnswer> {
      yield* answers;
      await new Promise((resolve) => {
        signal.addEventListener("abort", resolve, { once: true });
      });
    };

  it("has a line for each instance and each event, and ends with Ctrl-C", async () => {
    world.fleetEvents = saying(
      { kind: FleetEventKind.KEEPALIVE },
      { kind: FleetEventKind.CHANGED, instance: fleetInstance("i-c", { state: InstanceState.PROVISIONING }) },
      { kind: FleetEventKind.REMOVED, instance: fleetInstance("i-b") },
    );
    let writes = 0;
    const running = harness.run(["fleet", "watch"], { onStdout: () => (writes += 1) });
    await until(() => writes >= 5);
    harness.interrupt("SIGINT");
    const { stdout, stderr, exitCode } = await running;
    expect([exitCode, stderr]).toEqual([130, ""]);
    expect(stdout.split("\n").map((line) => line.split(/ {2,}/).slice(1, 4).join(" "))).toEqual([
      "existing i-aa active",
      "existing i-ab draining (scale_down)",
      "existing i-b ready cordoned",
      "changed i-c provisioning",
      "removed i-b active",
      "",
    ]);
  });

  it("makes up for what it missed by a look at the list", async () => {
    world.fleetEvents = async function* (signal) {
      world.instances = [fleetInstance("i-aa"), fleetInstance("i-new")];
      yield* saying({ kind: FleetEventKind.OVERFLOW })(signal);
    };
    let writes = 0;
    const running = harness.run(["fleet", "watch", "--json"], { onStdout: () => (writes += 1) });
    await until(() => writes >= 6);
    harness.interrupt("SIGTERM");
    const lines = (await running).stdout.trimEnd().split("\n");
    const events = lines.map((line) => JSON.parse(line) as { event: string; instance: { instanceId: string } });
    expect(events.slice(3).map(({ event, instance }) => `${event} ${instance.instanceId}`)).toEqual([
      "changed i-new",
      "removed i-ab",
      "removed i-b",
    ]);
  });

  it("draws a table on the other screen of a terminal, redraws it at another size, and leaves it on Ctrl-C", async () => {
    const resized = new Set<() => void>();
    let writes = 0;
    const stdout = {
      isTTY: true as const,
      rows: 24,
      columns: 40,
      on: (_event: "resize", listener: () => void) => resized.add(listener),
      off: (_event: "resize", listener: () => void) => resized.delete(listener),
    };
    const running = harness.run(["fleet", "watch"], { stdout, onStdout: () => (writes += 1) });
    await until(() => writes >= 4);
    const before = writes;
    for (const tell of resized) tell();
    await until(() => writes > before);
    harness.interrupt("SIGINT");
    const ran = await running;
    expect(ran.exitCode).toBe(130);
    expect(ran.stdout.startsWith("\u001b[?1049h\u001b[?25l\u001b[HINSTANCE")).toBe(true);
    expect(ran.stdout).toContain("3 instances, 9 sandboxes");
    expect(ran.stdout).not.toContain("IMAGE");
    expect(ran.stdout.endsWith("\u001b[?25h\u001b[?1049l")).toBe(true);
    expect(resized.size).toBe(0);
  });

  it("says so when the server ends the watch, and restores the terminal first", async () => {
    world.fleetEvents = async function* () {
      yield* await Promise.resolve([]);
    };
    const ran = await harness.run(["fleet", "watch"], { stdout: { isTTY: true, rows: 24 } });
    expect([ran.exitCode, ran.stderr.split(":")[0]]).toEqual([3, "SERVER_UNREACHABLE"]);
    expect(ran.stdout.endsWith("\u001b[?25h\u001b[?1049l")).toBe(true);
  });
});
