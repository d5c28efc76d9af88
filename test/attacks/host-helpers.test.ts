import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Refusal, startHost, type TestHost } from "../support/host.ts";
import { createSession, destroy, listSessions, script } from "../support/host-calls.ts";
import { expectNothingLeft } from "../support/invariants.ts";
import { containerOf } from "../support/networked-session.ts";
import { poll, processesWith } from "../support/process.ts";
import { IS_FULL, SLACK } from "../support/random.ts";

const MAX_PROCESSES = IS_FULL ? 64 : 8;
const LISTS = 768;
/** One for all lists, and what the service asks for itself. */
const MOST_COMMANDS = 8;
const CGROUPS = "/sys/fs/cgroup";

let host: TestHost;
let pid: number;
beforeAll(async () => {
  host = await startHost({ env: { TURNBOX_MAX_PROCESSES_PER_SESSION: String(MAX_PROCESSES) } });
  ({ pid } = host);
  await createSession(host, "a");
  await script(host, "a", "true");
}, 120_000);
afterAll(async () => {
  await destroy(host, "a");
  await expectNothingLeft(host);
  expect(host.pid).toBe(pid);
  await host[Symbol.asyncDispose]();
}, 120_000);

/** Pids of all processes of the machine that stand for the session's launched processes: waiters, watchers and `runsc exec`. */
function helpers(): readonly number[] {
  const container = containerOf(host, "a");
  return processesWith(host.home)
    .filter((line) => line.includes("turnbox-waiter") || (line.includes("spawn.json") && line.includes(container)))
    .map((line) => Number.parseInt(line, 10));
}

/** Members of a group, in all hierarchies that have it, by hierarchy. */
function members(group: string): ReadonlyMap<string, readonly number[]> {
  return new Map(
    readdirSync(CGROUPS).flatMap((name) => {
      try {
        const procs = readFileSync(join(CGROUPS, name, "turnbox", group, "cgroup.procs"), "utf8");
        return [[name, procs.trim().split("\n").map(Number)] as const];
      } catch {
        return [];
      }
    }),
  );
}

const launch = async (): Promise<string> => {
  try {
    await host.call("ProcessService/LaunchProcess", { sessionId: "a", binary: "sleep", args: ["1000"] });
    return "launched";
  } catch (thrown) {
    if (thrown instanceof Refusal) return thrown.reason;
    throw thrown;
  }
};

const listed = async (): Promise<string> => {
  try {
    return (await listSessions(host)).some(({ sessionId }) => sessionId === "b") ? "listed" : "not listed";
  } catch (thrown) {
    return thrown instanceof Refusal ? thrown.reason : "cut";
  }
};

describe("what a sandbox makes run on its host", () => {
  it("is bounded by a number for each session, and by a group of its own beside that of the sandbox", async () => {
    const outcomes: string[] = [];
    for (let count = 0; count < MAX_PROCESSES + 4; count += 1) outcomes.push(await launch());
    expect(outcomes.filter((outcome) => outcome === "launched")).toHaveLength(MAX_PROCESSES);
    expect(new Set(outcomes.slice(MAX_PROCESSES))).toEqual(new Set(["OVERLOADED"]));

    const all = helpers();
    expect(all.length).toBeGreaterThanOrEqual(2 * MAX_PROCESSES);
    const groups = members(`${containerOf(host, "a")}-clients`);
    expect(groups.size).toBeGreaterThan(0);
    for (const [hierarchy, inside] of groups)
      expect([hierarchy, all.filter((each) => !inside.includes(each))]).toEqual([hierarchy, []]);
  }, 120_000);

  it("ends when its processes end, and its group when the container does", async () => {
    const group = `${containerOf(host, "a")}-clients`;
    const { processes } = (await host.call("ProcessService/ListProcesses", { sessionId: "a" })) as {
      readonly processes: readonly { readonly processId: string }[];
    };
    for (const { processId } of processes)
      await host.call("ProcessService/KillProcess", { sessionId: "a", processId, signal: 9 });
    await poll("all helpers to end", () => (helpers().length === 0 ? true : undefined), 5000 * SLACK);
    // Places are free again, and the group goes with the container.
    expect(await launch()).toBe("launched");
    expect(members(group).size).toBeGreaterThan(0);
    await destroy(host, "a");
    await poll("the group to go", () => (members(group).size === 0 ? true : undefined), 5000 * SLACK);
  }, 120_000);

  it(`is a few commands for ${LISTS} lists of all sessions at once`, async () => {
    await createSession(host, "b");
    const seen = new Set<number>();
    let most = 0;
    const look = setInterval(() => {
      const now = commandsOf(pid, "zfs");
      most = Math.max(most, now.length);
      for (const each of now) seen.add(each);
    }, 2);
    const outcomes = await Promise.all(Array.from({ length: LISTS }, listed));
    clearInterval(look);
    // What is more than the host admits at once, in calls or connections, is refused.
    expect(outcomes.filter((outcome) => outcome === "listed").length).toBeGreaterThan(LISTS / 3);
    expect(outcomes.filter((outcome) => !["listed", "OVERLOADED", "cut"].includes(outcome))).toEqual([]);
    expect(seen.size).toBeLessThan(LISTS / 10);
    expect(most).toBeLessThan(MOST_COMMANDS);
    await destroy(host, "b");
  }, 120_000);
});

/** The processes of a name that descend from a process. */
function commandsOf(ancestor: number, name: string): readonly number[] {
  const parents = new Map<number, { readonly parent: number; readonly comm: string }>();
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const [, comm = "", rest = ""] = /\((.*)\) \S (.*)$/s.exec(readFileSync(`/proc/${entry}/stat`, "utf8")) ?? [];
      parents.set(Number(entry), { parent: Number.parseInt(rest, 10), comm });
    } catch {
      // It has ended.
    }
  }
  const isBelow = (each: number): boolean => {
    for (let at = each; at > 1; at = parents.get(at)?.parent ?? 0) if (at === ancestor) return true;
    return false;
  };
  return [...parents.keys()].filter((each) => parents.get(each)?.comm === name && isBelow(each));
}
