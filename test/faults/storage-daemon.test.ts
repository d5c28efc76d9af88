import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { createPrivateCorner } from "../../packages/sandbox-host/src/storage/zfs/private-daemon.suite.ts";
import { type Json, startHost, type TestHost } from "../support/host.ts";
import {
  bash,
  completeTurn,
  createSession,
  destroy,
  getSession,
  health,
  listSnapshots,
  script,
} from "../support/host-calls.ts";
import { poll } from "../support/process.ts";

/** A host in a corner of the machine with a storage daemon of its own, which may be stopped and killed. */
async function startInCorner() {
  const corner = await createPrivateCorner();
  const holder = corner.mountTablePath.split("/")[2] ?? "";
  const launcher = ["nsenter", "--target", holder, "--mount", "--"];
  const host = await startHost({
    home: join(corner.home, "home"),
    launcher,
    env: { TURNBOX_POOL_SIZE: "1GiB", TURNBOX_HEALTH_CHECK_INTERVAL: "1s" },
  });
  return {
    corner,
    host,
    [Symbol.asyncDispose]: async () => {
      await host[Symbol.asyncDispose]();
      await corner[Symbol.asyncDispose]();
    },
  };
}

const untilStatus = async (host: TestHost, wanted: string, timeoutMs = 60_000): Promise<void> => {
  await poll(wanted, async () => ((await health(host)).status === wanted ? true : undefined), timeoutMs);
};
const allGone = async (host: TestHost, ...ids: readonly string[]): Promise<void> => {
  for (const id of ids) await destroy(host, id);
  await poll(
    "the sessions to be gone",
    async () => ((await health(host)).sessionCount ?? 0) === 0 || undefined,
    60_000,
  );
};

async function launch(host: TestHost, sessionId: string, cmd: string): Promise<string> {
  const request = { sessionId, binary: "bash", args: ["-c", cmd] };
  const { process } = await host.call("ProcessService/LaunchProcess", request);
  return String((process as Json)["processId"]);
}
async function outputBytes(host: TestHost, sessionId: string, processId: string): Promise<unknown> {
  const { process } = await host.call("ProcessService/GetProcessStatus", { sessionId, processId });
  return (process as Json)["outputBytes"];
}

describe("the storage daemon", () => {
  it("that is killed is started again, and the sessions go on with all that was sealed under a new generation", async () => {
    await using place = await startInCorner();
    const { host, corner } = place;
    await createSession(host, "busy");
    await createSession(host, "idle");
    await script(
      host,
      "busy",
      "echo sealed > /workspace/a; (while :; do date > /workspace/now; sleep 0.1; done) >/dev/null 2>&1 &",
    );
    const talker = await launch(host, "busy", "echo kept; sleep 1000");
    await poll("its output", async () => ((await outputBytes(host, "busy", talker)) === "5" ? true : undefined));
    const { snapshotId } = await completeTurn(host, "busy");
    await corner.killDaemon();
    const killedMs = performance.now();
    // Healing may be over before anybody sees the host unhealthy; the new generation tells that it took place.
    const generationOf = async (id: string): Promise<number | undefined> => (await getSession(host, id)).generation;
    await poll("a new generation", async () => ((await generationOf("busy")) === 2 ? true : undefined), 60_000);
    await untilStatus(host, "HEALTH_STATUS_HEALTHY");
    const works = async (): Promise<string | undefined> => {
      const ran = await bash(host, "busy", "cat /workspace/a").catch(() => undefined);
      return ran?.exitCode === 0 ? ran.content : undefined;
    };
    expect(await poll("the session to work again", works)).toBe("sealed\n");
    // What processes have written is there again, and more can be written.
    expect(await outputBytes(host, "busy", talker)).toBe("5");
    const next = await launch(host, "busy", "echo more");
    await poll("new output", async () => ((await outputBytes(host, "busy", next)) === "5" ? true : undefined));
    process.stdout.write(
      `storage daemon: killed, and tools work again after ${Math.round(performance.now() - killedMs)} ms\n`,
    );
    expect(await getSession(host, "busy")).toMatchObject({ state: "SESSION_STATE_ACTIVE", generation: 2 });
    expect((await listSnapshots(host, "busy")).map((one) => one.snapshotId)).toEqual([snapshotId]);
    await script(host, "busy", "echo next > /workspace/a");
    expect(await completeTurn(host, "busy")).toMatchObject({ turnNumber: 2 });
    // Its files were mounted too, so what it wrote last is in doubt as well.
    expect(await generationOf("idle")).toBe(2);
    await script(host, "idle", "echo works > /workspace/a");
    expect(await corner.countDaemons()).toBe(1);
    await allGone(host, "busy", "idle");
  }, 180_000);

  it("that hangs makes the host unhealthy and holds up nothing but what needs it, and nothing is done twice", async () => {
    await using place = await startInCorner();
    const { host, corner } = place;
    await createSession(host, "s");
    await script(host, "s", "echo one > /workspace/a");
    await completeTurn(host, "s", "one");
    // Their output lies in the storage; were it the host that looks at it, all its threads would hang.
    for (let count = 0; count < 8; count += 1) await launch(host, "s", "while :; do echo x; sleep 0.1; done");
    await corner.signalDaemon("SIGSTOP");
    let pending: Promise<unknown>;
    try {
      pending = completeTurn(host, "s", "two").catch((thrown: unknown) => thrown);
      await untilStatus(host, "HEALTH_STATUS_UNHEALTHY", 20_000);
      const begunMs = performance.now();
      await Promise.all([
        host.call("HostService/GetCapabilities"),
        host.call("ToolService/ListTools", { sessionId: "s" }),
      ]);
      expect(performance.now() - begunMs).toBeLessThan(1_000);
      await expect(createSession(host, "late")).rejects.toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
    } finally {
      await corner.signalDaemon("SIGCONT");
    }
    await untilStatus(host, "HEALTH_STATUS_HEALTHY");
    await pending;
    const turn = await poll(
      "the turn to be answered",
      () => completeTurn(host, "s", "two").catch(() => undefined),
      60_000,
    );
    const snapshots = await listSnapshots(host, "s");
    // Nothing was written since the first one, whichever of the two calls found that out.
    expect([turn.turnNumber, snapshots.length]).toEqual(turn.unchanged === true ? [1, 1] : [2, 2]);
    expect(await script(host, "s", "cat /workspace/a")).toBe("one\n");
    expect(await corner.countDaemons()).toBe(1);
    await allGone(host, "s");
  }, 180_000);
});
