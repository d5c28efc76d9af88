import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createHarness, type Harness, HOME_TOKEN } from "../cli-harness.suite.ts";
import { createServices, newWorld, SessionEventKind, SessionState, type World } from "@turnbox/client/fake";

describe("turnbox ls --watch", () => {
  let world: World;
  let harness: Harness;
  beforeEach(async () => {
    world = newWorld();
    harness = await createHarness(createServices(world));
  });
  afterEach(async () => {
    await harness[Symbol.asyncDispose]();
  });
  const looks = (): number => harness.calls.filter(({ method }) => method === "ListSandboxes").length;
  const until = async (done: () => boolean): Promise<void> => {
    while (!done()) await new Promise((resolve) => setImmediate(resolve));
  };
  const pause = (index: number): void => {
    const session = world.sandboxes[index]?.session;
    if (session !== undefined) session.state = SessionState.PAUSED;
  };

  it("has a line for each sandbox and each event, and ends with Ctrl-C", async () => {
    const running = harness.run(["ls", "--watch"]);
    await until(() => looks() >= 4);
    pause(0);
    const seen = looks();
    await until(() => looks() >= seen + 4);
    world.sandboxes.pop();
    const gone = looks();
    await until(() => looks() >= gone + 4);
    harness.interrupt("SIGINT");
    const ran = await running;
    expect(ran).toMatchObject({ exitCode: 130, stderr: "" });
    expect(ran.stdout.split("\n").map((line) => line.split(/ {2,}/).slice(1, 5).join(" "))).toEqual([
      "existing fleet:i1:abc123 web active",
      "existing fleet:i1:abd999 - active",
      "changed fleet:i1:abc123 web paused",
      "destroyed fleet:i1:abd999 - active",
      "",
    ]);
  });

  it("has an object for each event under --json", async () => {
    const running = harness.run(["ls", "--watch", "--json"]);
    await until(() => looks() >= 4);
    harness.interrupt("SIGTERM");
    const lines = (await running).stdout.trimEnd().split("\n");
    expect(lines.map((line): unknown => JSON.parse(line))).toMatchObject([
      { event: "existing", at: "2026-01-01T12:00:00.000Z", sandbox: { sandboxId: "fleet:i1:abc123" } },
      { event: "existing", sandbox: { state: "active" } },
    ]);
  });

  it("draws a table on the other screen of a terminal, and leaves it", async () => {
    const running = harness.run(["ls", "--watch"], { stdout: { isTTY: true, rows: 24 } });
    await until(() => looks() >= 4);
    harness.interrupt("SIGINT");
    const { stdout } = await running;
    expect(stdout.startsWith("\u001b[?1049h\u001b[?25l\u001b[HID ")).toBe(true);
    expect(stdout.endsWith("\u001b[?25h\u001b[?1049l")).toBe(true);
  });

  it("looks at once when a host says that something happened, and shows no token to hosts elsewhere", async () => {
    const clock = {
      nowMs: () => 0,
      monotonicMs: () => 0,
      // The second never passes.
      sleep: (ms: number, { signal }: { signal?: AbortSignal } = {}): Promise<void> =>
        ms < 500
          ? Promise.resolve()
          : new Promise((_, reject) => {
              signal?.addEventListener("abort", () => {
                reject(new Error("ended"));
              });
            }),
    };
    const happened = Promise.withResolvers<undefined>();
    world.watched = async function* () {
      yield SessionEventKind.EXISTING;
      await happened.promise;
      yield SessionEventKind.CHANGED;
    };
    world.hostUrls = [...world.hostUrls, "http://10.0.0.1:9000"];
    const running = harness.run(["ls", "--watch"], { clock });
    await until(() => looks() === 2 && harness.calls.some(({ method }) => method === "WatchSessions"));
    pause(1);
    happened.resolve(undefined);
    await until(() => looks() === 4);
    harness.interrupt("SIGINT");
    expect((await running).stdout).toContain("  changed    fleet:i1:abd999  -  paused");
    const atHosts = harness.calls.filter(({ peer }) => peer === "host");
    expect(atHosts.map(({ token, method }) => ({ token, method }))).toEqual([
      { token: HOME_TOKEN, method: "WatchSessions" },
    ]);
  });
});
