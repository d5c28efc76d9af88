import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { MMAP_WRITE } from "../support/mmap-write.ts";
import { poll } from "../support/process.ts";
import { findResidue } from "../support/residue.ts";
import { startServer, type TestServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
}, 120_000);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
}, 120_000);

const create = async (...args: readonly string[]): Promise<string> =>
  String((await server.json("create", "--template", "mini", ...args))["sandboxId"]);
const exec = (id: string, ...command: readonly string[]) => server.cli("exec", id, "--", ...command);
const sh = async (id: string, script: string): Promise<string> => {
  const result = await exec(id, "bash", "-c", script);
  if (result.exitCode !== 0) throw new Error(`exit ${result.exitCode}: ${result.stderr}`);
  return result.stdout;
};

describe("the journey by the command line", () => {
  it("creates, runs, seals, rolls back and destroys, and leaves nothing", async () => {
    const id = await create();
    expect(id).toMatch(/^fleet:local-1:[a-z0-9]+$/);

    expect(await sh(id, "dmesg")).toContain("gVisor");
    await sh(id, "echo before > kept.txt && mkdir -p deep/er && ln -s ../kept.txt deep/link");
    const turn = await server.json("turn", id);
    expect(turn["turnNumber"]).toBe(1);
    const snapshotId = String(turn["snapshotId"]);
    expect(snapshotId).not.toBe("");

    await sh(id, "echo after > later.txt; echo changed > kept.txt; rm -r deep");
    const rollback = await server.cli("rollback", id, snapshotId);
    expect(rollback).toMatchObject({ exitCode: 0 });
    expect(await sh(id, "cat kept.txt deep/link; ls")).toBe("before\nbefore\ndeep\nkept.txt\n");

    const log = await server.cli("log", id);
    expect(log.stdout).toContain("undo");
    const { snapshots } = await server.json("log", id);
    const undo = (snapshots as readonly Record<string, unknown>[]).find(({ kind }) =>
      String(kind).toLowerCase().includes("undo"),
    );
    await server.cli("rollback", id, String(undo?.["snapshotId"]));
    expect(await sh(id, "cat kept.txt later.txt; ls")).toBe("changed\nafter\nkept.txt\nlater.txt\n");
    // D10: the number goes on after rollbacks, it never goes back.
    expect((await server.json("turn", id))["turnNumber"]).toBe(2);

    expect((await server.cli("rm", id)).exitCode).toBe(0);
    const left = await findResidue(server.home);
    expect(left).toEqual({ datasets: [], mounts: [], containers: [], cgroups: [], netns: [], processes: [] });
    const gone = await server.cli("exec", id, "--json", "--", "true");
    expect(gone.exitCode).not.toBe(0);
  }, 120_000);

  it("keeps sandboxes apart", async () => {
    const [first, second] = [await create(), await create()];
    await sh(first, "echo secret > /workspace/mine; echo secret > /tmp/mine");
    expect(await sh(second, "ls /workspace /tmp")).not.toContain("mine");
    await server.cli("rm", first, second);
  }, 60_000);

  it("passes exit codes, both outputs, arguments and standard input as they are", async () => {
    const id = await create();
    const failed = await exec(id, "sh", "-c", "echo out; echo err >&2; exit 42");
    expect(failed).toEqual({ exitCode: 42, stdout: "out\n", stderr: "err\n" });
    const awkward = ["a b", "'", '"', "$HOME", "\\", "", "*", "\n", "ä"];
    expect((await exec(id, "printf", "%s|", ...awkward)).stdout).toBe(awkward.map((word) => `${word}|`).join(""));
    const fed = await server.pipe("from outside\n", "exec", id, "--", "cat");
    expect(fed.stdout).toBe("from outside\n");
    const slow = await server.cli("exec", id, "--timeout", "1s", "--", "sleep", "100");
    expect(slow.exitCode).toBe(124);
    expect(await sh(id, "ps")).not.toContain("sleep 100");
    await server.cli("rm", id);
  }, 60_000);

  it("seals bytes that were written through mmap and never synced", async () => {
    const id = await create();
    await server.pipe(MMAP_WRITE, "exec", id, "--", "sh", "-c", "cat > /mmap-write; chmod +x /mmap-write");
    for (const round of ["one", "two", "three"]) {
      await sh(id, `head -c 4096 /dev/zero > ${round}; /mmap-write ${round}`);
      const { snapshotId } = await server.json("turn", id);
      await sh(id, `rm ${round}`);
      await server.cli("rollback", id, String(snapshotId));
      expect(await sh(id, `head -c 6 ${round}`)).toBe("mapped");
    }
    await server.cli("rm", id);
  }, 60_000);

  it("does not lose a background process's files, and ends it with the rollback (D11)", async () => {
    const id = await create();
    await sh(id, "echo 0 > n");
    const { snapshotId } = await server.json("turn", id);
    await sh(id, "(while :; do echo x >> ticks; sleep 0.05; done) >/dev/null 2>&1 &");
    await poll("the background process to tick", async () =>
      (await exec(id, "cat", "ticks")).exitCode === 0 ? true : undefined,
    );
    await server.cli("rollback", id, String(snapshotId));
    expect((await exec(id, "ls", "ticks")).exitCode).not.toBe(0);
    expect(await sh(id, "ps")).not.toContain("sleep 0.05");
    await server.cli("rm", id);
  }, 60_000);

  it("freezes processes with pause, refuses tools, and lets them go on with resume", async () => {
    const id = await create();
    await sh(id, "(while :; do echo x >> ticks; sleep 0.05; done) >/dev/null 2>&1 &");
    expect(await server.json("pause", id)).toMatchObject({ state: "paused" });
    const refused = await server.cli("exec", id, "--no-stdin", "--json", "--", "true");
    expect(refused.stdout).toContain("SESSION_PAUSED");
    expect(await server.json("resume", id)).toMatchObject({ state: "active" });
    const count = async (): Promise<number> => Number(await sh(id, "wc -l < ticks"));
    const before = await count();
    await poll("the process to go on", async () => ((await count()) > before ? true : undefined));
    await server.cli("rm", id);
  }, 60_000);

  it("answers the same turn for the same key, and counts a failed one", async () => {
    const id = await create();
    const first = await server.json("turn", id, "--key", "t1");
    const again = await server.json("turn", id, "--key", "t1");
    expect(again).toEqual(first);
    await server.cli("exec", id, "--no-stdin", "--", "touch", "new");
    expect((await server.json("turn", id, "--outcome", "failed"))["turnNumber"]).toBe(2);
    await server.cli("rm", id);
  }, 60_000);
});

describe("refusals", () => {
  it("names reason and code for an unknown sandbox, a bad id, an unknown template and a wrong token", async () => {
    const error = async (...args: readonly string[]) => {
      const result = await server.cli(...args, "--json");
      expect(result.exitCode).not.toBe(0);
      return (JSON.parse(result.stdout) as { error: Record<string, unknown> }).error;
    };
    expect(await error("turn", "fleet:local-1:nothere")).toMatchObject({ reason: expect.stringMatching(/NOT_FOUND$/) });
    expect(await error("create", "--template", "nope")).toMatchObject({ reason: "TEMPLATE_NOT_FOUND" });
    expect(await error("create", "--name", "no/good")).toMatchObject({ reason: "INVALID_ARGUMENT" });
    expect(await error("ls", "--url", server.url, "--token", "wrong")).toMatchObject({ reason: "UNAUTHENTICATED" });
  }, 60_000);

  it("gives the id of the sandbox whose name is taken", async () => {
    const id = await create("--name", "taken");
    const second = await server.cli("create", "--name", "taken", "--json");
    expect(second.exitCode).not.toBe(0);
    expect(second.stdout).toContain("SANDBOX_EXISTS");
    expect(second.stdout).toContain(id);
    expect(await sh("taken", "echo by name")).toBe("by name\n");
    await server.cli("rm", "taken");
  }, 60_000);
});
