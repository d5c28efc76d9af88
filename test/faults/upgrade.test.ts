import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { SCHEMA_VERSION } from "../../packages/sandbox-host/src/record/schema.ts";
import { earlierReleases, type EarlierRelease, unpackRelease } from "../support/earlier-release.ts";
import { type Json, startHost, type TestHost } from "../support/host.ts";
import { createSession, script } from "../support/host-calls.ts";
import { expectConsistent, expectNothingLeft } from "../support/invariants.ts";
import { expectKept, expectUsable, liveIn } from "../support/lived-in-home.ts";
import { poll, processesWith, run } from "../support/process.ts";
import { findPool } from "../support/residue.ts";
import { makeHome, startServer, type TestServer } from "../support/server.ts";

const recordsOf = ({ dataDirectory }: TestHost): string => join(dataDirectory, "host.db");

function versionOf(host: TestHost): number {
  using db = new DatabaseSync(recordsOf(host), { readOnly: true });
  return Number(db.prepare("PRAGMA user_version").get()?.["user_version"]);
}

function setVersion(host: TestHost, version: number): void {
  using db = new DatabaseSync(recordsOf(host));
  db.exec(`PRAGMA user_version = ${version}`);
}

const SUCCESS = { exitCode: 0 };

/** What the host printed that did not come to serve. */
const refusal = (start: Promise<unknown>): Promise<string> =>
  start.then(
    () => "it serves",
    (thrown: unknown) => (thrown instanceof Error ? thrown.message : String(thrown)),
  );

/** The records, the pool and the sandboxes of a host that does not run. */
async function lookBeside(host: TestHost): Promise<unknown> {
  const list = ["list", "-H", "-r", "-t", "all", "-o", "name,mounted", (await findPool(host.home)) ?? ""];
  return {
    records: createHash("sha256")
      .update(readFileSync(recordsOf(host)))
      .digest("hex"),
    pool: (await run("zfs", list)).stdout,
    sandboxes: processesWith(host.home).map((line) => line.split(" ")[0]),
  };
}

describe.each(await earlierReleases())("a home of %s", (commit) => {
  let release: EarlierRelease;
  beforeAll(async () => {
    release = await unpackRelease(commit);
  });
  afterAll(async () => {
    await release[Symbol.asyncDispose]();
  });

  it("whose host was stopped starts under this code with all of it, and not under an earlier one again", async () => {
    await using host = await startHost({ entry: release.hostEntry });
    const lived = await liveIn(host);
    const earlier = versionOf(host);
    await host.stop();

    await host.start({}, {});
    expect(versionOf(host)).toBe(SCHEMA_VERSION);
    await expectKept(host, lived);
    await host.stop();

    const before = await lookBeside(host);
    const downgrade = await refusal(host.start());
    if (earlier === SCHEMA_VERSION) {
      expect(downgrade).toBe("it serves");
      await expectKept(host, lived);
      await host.stop();
    } else {
      expect(downgrade).toContain(`schema version ${SCHEMA_VERSION}`);
      expect(await lookBeside(host)).toEqual(before);
    }

    setVersion(host, SCHEMA_VERSION + 1);
    const later = await lookBeside(host);
    const refused = await refusal(host.start({}, {}));
    expect(refused).toContain("HOME_VERSION_UNSUPPORTED");
    expect(refused).toContain(`schema version ${SCHEMA_VERSION + 1}`);
    expect(refused).toContain("Run the version that wrote it");
    expect(await lookBeside(host)).toEqual(later);
    setVersion(host, SCHEMA_VERSION);

    await host.start({}, {});
    await expectKept(host, lived);
    await expectUsable(host, lived);
    await expectConsistent(host);
    await expectNothingLeft(host);
  }, 600_000);

  it("whose host was killed is as it was after a change of its records failed, then starts with all of it", async () => {
    await using host = await startHost({ entry: release.hostEntry });
    const lived = await liveIn(host);
    await createSession(host, "cut");
    const call = { sessionId: "cut", toolCallId: "c", toolName: "bash", params: { cmd: "echo x >> n; sleep 300" } };
    const running = host.attempt("ToolService/ExecuteTool", call);
    await poll("the call to run", async () =>
      (await script(host, "cut", "cat n || true")) === "x\n" ? true : undefined,
    );
    const earlier = versionOf(host);
    await host.kill();
    expect(await running).toBeUndefined();

    // No file may grow over what the log of the records has: the disk is full for the first page that is written.
    const { size } = statSync(`${recordsOf(host)}-wal`);
    const failed = await refusal(host.start({}, { launcher: ["prlimit", `--fsize=${size}`] }));
    expect(failed).toContain("STORAGE_UNAVAILABLE");
    if (earlier !== SCHEMA_VERSION) {
      expect(failed).toContain(`could not be brought from schema version ${earlier} to ${SCHEMA_VERSION}`);
    }
    expect(versionOf(host)).toBe(earlier);
    await host.start();
    await expectKept(host, lived);
    await host.kill();

    await host.start({}, {});
    const { pid } = host;
    expect(versionOf(host)).toBe(SCHEMA_VERSION);
    await expectKept(host, lived);
    await expectUsable(host, lived);
    await expect(host.call("ToolService/ExecuteTool", call)).rejects.toMatchObject({ reason: "OUTCOME_UNKNOWN" });
    expect(await script(host, "cut", "cat n")).toBe("x\n");
    await expectConsistent(host);
    await expectNothingLeft(host);
    expect(host.pid).toBe(pid);
  }, 600_000);

  it("of a whole server starts under this code with its fleet and its sandboxes", async () => {
    await using home = await makeHome();
    const serve = ["serve", "--home", home.path, "--port", "0", "--host-entry", release.hostEntry];
    const list = async (server: TestServer): Promise<readonly Json[]> =>
      // The host is served at another address after each start.
      ((await server.json("ls"))["sandboxes"] as readonly Json[]).map(({ address: _, ...sandbox }) => sandbox);
    let before: readonly Json[];
    {
      await using server = await startServer({ home: home.path, program: [release.orchestratorEntry, ...serve] });
      await server.json("create", "--name", "web", "--label", "team=a");
      await server.json("create", "--name", "resting");
      expect(await server.cli("exec", "web", "--no-stdin", "--", "sh", "-c", "echo kept > a")).toMatchObject(SUCCESS);
      await server.json("turn", "web");
      await server.json("pause", "resting");
      before = await list(server);
    }
    await using server = await startServer({ home: home.path });
    const seen = await poll("all of them to be listed", async () => {
      const sandboxes = await list(server);
      return sandboxes.length === before.length ? sandboxes : undefined;
    });
    expect(seen).toMatchObject(before);
    expect(await server.cli("exec", "web", "--no-stdin", "--", "cat", "a")).toMatchObject({ stdout: "kept\n" });
    expect(await server.json("turn", "web")).toMatchObject({ unchanged: true, turnNumber: 1 });
    await server.json("resume", "resting");
    expect(await server.cli("rm", "web", "resting")).toMatchObject(SUCCESS);
  }, 600_000);
});
