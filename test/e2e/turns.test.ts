import { spawn } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ended, poll, REPO } from "../support/process.ts";
import { findResidue } from "../support/residue.ts";
import { environment, startServer, type TestServer } from "../support/server.ts";

const CLI = join(REPO, "packages/cli/bin/turnbox.mjs");
let server: TestServer;
beforeAll(async () => {
  server = await startServer();
}, 120_000);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
}, 120_000);

interface SnapshotView {
  readonly snapshotId: string;
  readonly kind: string;
  readonly turnNumber: number | null;
  readonly name: string;
  readonly parentSnapshotId: string | null;
  readonly head: boolean;
}

const create = async (...args: readonly string[]): Promise<string> =>
  String((await server.json("create", "--template", "mini", ...args))["sandboxId"]);
const sh = async (id: string, script: string): Promise<string> => {
  const result = await server.cli("exec", id, "--no-stdin", "--", "sh", "-c", script);
  if (result.exitCode !== 0) throw new Error(`exit ${result.exitCode}: ${result.stderr}`);
  return result.stdout;
};
/** Requires success and answers with what was printed. */
const say = async (...args: readonly string[]): Promise<string> => {
  const result = await server.cli(...args);
  if (result.exitCode !== 0) throw new Error(`turnbox ${args.join(" ")}: exit ${result.exitCode}: ${result.stderr}`);
  return result.stdout;
};
const snapshotsOf = async (id: string): Promise<readonly SnapshotView[]> =>
  (await server.json("log", id))["snapshots"] as readonly SnapshotView[];
const refusalOf = async (...args: readonly string[]): Promise<Record<string, unknown>> => {
  const result = await server.cli(...args, "--json");
  expect(result.exitCode).not.toBe(0);
  return (JSON.parse(result.stdout) as { error: Record<string, unknown> }).error;
};

/** Names, kinds, modes, times, link targets and bytes of everything in /workspace. */
const digestOf = (id: string): Promise<string> =>
  sh(
    id,
    `find . | sort | while read -r f; do
       stat -c '%n %F %a %u %g %Y' "$f"
       if [ -L "$f" ]; then readlink "$f"; elif [ -f "$f" ]; then sha256sum < "$f"; fi
     done | sha256sum`,
  );

describe("turns by the command line", () => {
  it("seals, compares, goes back, undoes, redoes, forks and tells of it, and leaves nothing", async () => {
    const id = await create("--name", "turns", "--label", "app=web", "--ttl", "1h");
    expect((await refusalOf("diff", id))["reason"]).toBe("SNAPSHOT_NOT_FOUND");
    expect((await refusalOf("undo", id))["reason"]).toBe("SNAPSHOT_NOT_FOUND");

    await sh(
      id,
      "printf 'one\\ntwo\\n' > text; mkdir -p deep/er; echo kept > deep/er/moved; echo gone > gone; ln -s text link",
    );
    const first = await server.json("turn", id);
    const sealed = await digestOf(id);
    await sh(
      id,
      "printf 'one\\nTWO\\n' > text; mv deep/er/moved deep/here; rm gone; head -c 4096 /dev/urandom > new; rm link; mkdir link",
    );

    const diff = await server.json("diff", id);
    expect(diff["from"]).toBe(first["snapshotId"]);
    const named = (diff["changes"] as readonly Record<string, unknown>[]).map(({ kind, path }) => [kind, path]);
    expect(named).toEqual(
      expect.arrayContaining([
        ["modified", "/workspace/text"],
        ["renamed", "/workspace/deep/here"],
        ["removed", "/workspace/gone"],
        ["added", "/workspace/new"],
        ["type_changed", "/workspace/link"],
      ]),
    );
    const text = await say("diff", "turns", "#1", "now", "--text");
    expect(text).toMatch(/^M {2}\/workspace\/text {2}\(8 B\)\n--- .*\n\+\+\+ .*\n@@ .*\n one\n-two\n\+TWO\n/m);
    expect(text).toMatch(/^R {2}\/workspace\/deep\/er\/moved -> \/workspace\/deep\/here/m);
    expect(text).toMatch(/^A {2}\/workspace\/new {2}\(\+4\.0 KiB, binary\)$/m);

    const taken = await server.json("snapshot", id, "before going back");
    expect(taken).toMatchObject({ kind: "named", name: "before going back", turnNumber: null, head: true });
    expect(await say("diff", id)).toBe("no differences\n");
    await sh(id, "echo unsealed > unsealed");
    const present = await digestOf(id);

    expect(await say("rollback", id, "turn-0001")).toContain(`undo with: turnbox undo ${id}`);
    expect(await digestOf(id)).toBe(sealed);
    expect(await say("undo", id)).toContain(`redo with: turnbox undo ${id}`);
    expect(await digestOf(id)).toBe(present);
    await say("undo", id);
    expect(await digestOf(id)).toBe(sealed);
    await say("rollback", id, "before going back");
    expect((await sh(id, "ls")).split("\n")).not.toContain("unsealed");

    // The turn that comes after rollbacks is the second, on the branch of the named snapshot.
    await sh(id, "echo more > more");
    expect(await server.json("turn", id)).toMatchObject({ turnNumber: 2 });
    const snapshots = await snapshotsOf(id);
    expect(snapshots.map(({ kind }) => kind).sort()).toEqual(["named", "turn", "turn", "undo", "undo", "undo", "undo"]);
    expect(snapshots.filter(({ head }) => head)).toMatchObject([
      { turnNumber: 2, parentSnapshotId: taken["snapshotId"] },
    ]);
    const log = await say("log", id);
    expect(log).toMatch(/^\* +#1 .*turn-0001 {2}[0-9a-f-]{36}$/m);
    expect(log).toMatch(/^\|-\* +undo /m);
    expect(log).toMatch(/^\* +#2 .*turn-0002 {2}[0-9a-f-]{36} {2}<- head$/m);

    const children = (await say("fork", id, "-n", "3")).trimEnd().split("\n");
    expect(new Set(children).size).toBe(3);
    const parent = await digestOf(id);
    for (const child of children) {
      expect(child).toMatch(/^fleet:local-1:[a-z0-9]+$/);
      expect(await digestOf(child)).toBe(parent);
    }
    const [one = "", two = "", three = ""] = children;
    await sh(one, "echo mine > mine");
    expect(await server.json("turn", one)).toMatchObject({ turnNumber: 3 });
    expect((await sh(two, "ls")).split("\n")).not.toContain("mine");
    const { sandboxes } = await server.json("ls", "--label", "app=web");
    expect((sandboxes as readonly Record<string, unknown>[]).map(({ sandboxId }) => sandboxId).sort()).toEqual(
      [id, ...children].sort(),
    );
    const early = await server.json("fork", id, "--from", "1", "--label", "from=start");
    expect(early["children"]).toMatchObject([{ labels: { from: "start" }, onTimeout: "destroy" }]);
    const fromStart = String((early["children"] as readonly Record<string, unknown>[])[0]?.["sandboxId"]);
    expect(await digestOf(fromStart)).toBe(sealed);

    const stats = await server.json("stats", id);
    expect(stats["memoryBytes"]).toBeGreaterThan(0);
    expect(stats["spaceUsedBytes"]).toBeGreaterThan(0);
    expect(await server.json("stats")).toMatchObject({ hosts: [{ instanceId: "local-1", sessionCount: 5 }] });

    const { expiresAt } = await server.json("extend", id, "--ttl", "2h");
    expect(Date.parse(String(expiresAt)) - Date.now()).toBeGreaterThan(3_600_000);
    expect(await server.json("extend", id, "--none")).toMatchObject({ expiresAt: null });

    expect(await server.json("pause", id)).toMatchObject({ state: "paused" });
    expect(await server.json("resume", id)).toMatchObject({ state: "active" });
    expect(await server.json("repair", id)).toMatchObject({ state: "active" });
    expect(await digestOf(id)).toBe(parent);

    // The parent goes first; what its children need of it stays until they are gone.
    expect((await server.json("rm", id))["sandboxes"]).toMatchObject([{ destroyed: true }]);
    expect(await digestOf(two)).toBe(parent);
    expect(await digestOf(fromStart)).toBe(sealed);
    await say("rm", one, two, three, fromStart);
    await poll("nothing to be left", async () => {
      const left = await findResidue(server.home);
      return Object.values(left).every((found: readonly string[]) => found.length === 0) ? true : undefined;
    });
  }, 240_000);

  it("removes a snapshot by its name, but not one that a fork lives on", async () => {
    const id = await create();
    await say("snapshot", id, "free");
    await sh(id, "echo more > more");
    await say("snapshot", id, "pinned");
    await sh(id, "echo yet more > more");
    const child = (await say("fork", id, "--from", "pinned")).trimEnd();
    expect(await refusalOf("snapshot", "rm", id, "pinned")).toMatchObject({ reason: "SNAPSHOT_IN_USE" });
    await say("snapshot", "rm", id, "free");
    expect((await snapshotsOf(id)).map(({ name }) => name)).not.toContain("free");
    expect(await refusalOf("rollback", id, "free")).toMatchObject({ reason: "SNAPSHOT_NOT_FOUND", code: "not_found" });
    await say("rm", child, id);
  }, 120_000);
});

describe("a sandbox's time", () => {
  const stateOf = async (id: string): Promise<unknown> => {
    const { sandboxes } = await server.json("ls");
    return (sandboxes as readonly Record<string, unknown>[]).find(({ sandboxId }) => sandboxId === id)?.["state"];
  };

  it("ends in a destroy or a pause, as was asked for through the fleet, unless it is extended", async () => {
    const [destroyed, paused, idle, extended] = [
      await create("--ttl", "5s"),
      await create("--ttl", "5s", "--on-timeout", "pause"),
      await create("--idle-timeout", "5s", "--on-timeout", "pause"),
      await create("--ttl", "60s"),
    ];
    await say("extend", extended, "--ttl", "1h");
    await poll(
      "the first to be gone",
      async () => ((await stateOf(destroyed)) === undefined ? true : undefined),
      60_000,
    );
    for (const id of [paused, idle])
      await poll("the others to be paused", async () => ((await stateOf(id)) === "paused" ? true : undefined), 60_000);
    expect(await stateOf(extended)).toBe("active");
    await say("rm", paused, idle, extended);
  }, 180_000);
});

describe("ls --watch", () => {
  it("tells what happens as it happens, and ends on Ctrl-C", async () => {
    const env = { ...environment(server.home), TURNBOX_PORT: new URL(server.url).port };
    const watch = spawn(process.execPath, [CLI, "ls", "--watch", "--json"], {
      env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let output = "";
    watch.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    const exit = ended(watch);
    const id = await create();
    const seen = (event: string) => () =>
      output.split("\n").some((line) => line.includes(`"event":"${event}"`) && line.includes(id)) ? true : undefined;
    await poll("the create", () => seen("created")() ?? seen("existing")());
    await say("turn", id);
    await poll("the turn", seen("sealed"));
    await say("pause", id);
    await poll("the pause", seen("changed"));
    await say("rm", id);
    await poll("the destroy", seen("destroyed"));
    watch.kill("SIGINT");
    expect(await exit).toBe(130);
  }, 120_000);
});
