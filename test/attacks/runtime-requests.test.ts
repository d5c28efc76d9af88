import { availableParallelism, totalmem } from "node:os";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { archiveOf, type CraftedEntry } from "../support/archive-of.ts";
import { type Canary, createCanary } from "../support/canary.ts";
import { type Json, Refusal, startHost, type TestHost } from "../support/host.ts";
import { bash, createSession, destroy, listSessions, script } from "../support/host-calls.ts";
import { readRecords } from "../support/records.ts";
import { createRecorder, type Recorder, type Started } from "../support/recorder.ts";
import { importTemplate } from "../support/template-client.ts";

let host: TestHost;
let recorder: Recorder;
let canary: Canary;
beforeAll(async () => {
  canary = createCanary();
  recorder = await createRecorder(["runsc", "zfs", "zpool"]);
  host = await startHost({ env: { PATH: recorder.path } });
}, 120_000);
afterAll(async () => {
  await host[Symbol.asyncDispose]();
  recorder[Symbol.dispose]();
  canary.expectUntouched();
  canary[Symbol.dispose]();
}, 120_000);

/** The reason of a refusal, or "done". */
async function reasonOf(method: string, body: Json): Promise<string> {
  try {
    await host.call(method, body);
    return "done";
  } catch (thrown) {
    if (thrown instanceof Refusal) return thrown.reason;
    throw thrown;
  }
}

/** A part of every hostile word, so that it is found wherever it gets to. No name of the host's own has a capital letter. */
const MARK = "H23";
const HOSTILE = [
  `-rf${MARK}`,
  `--root=/${MARK}`,
  `${MARK};reboot`,
  `$(${MARK})`,
  `\`${MARK}\``,
  `${MARK}@b`,
  `../${MARK}`,
  `/${MARK}/b`,
  `${MARK}%b`,
  `${MARK}\n-rf`,
  `${MARK} b`,
  `${MARK}${"x".repeat(300)}`,
];

/** Everywhere that a word of the caller's goes to; a refusal of none of them may be a failure of the host. */
const REQUESTS: Readonly<Record<string, (word: string) => readonly [string, Json]>> = {
  "session id": (word) => ["SessionService/CreateSession", { sessionId: word }],
  base: (word) => ["SessionService/CreateSession", { base: word }],
  "base's version": (word) => ["SessionService/CreateSession", { base: `mini@${word}` }],
  "label's name": (word) => ["SessionService/CreateSession", { labels: { [`${word}!`]: "x" } }],
  "variable's name": (word) => ["SessionService/CreateSession", { env: { [`${word}=`]: "x" } }],
  "session to read": (word) => ["SessionService/GetSession", { sessionId: word }],
  "session to destroy": (word) => ["SessionService/DestroySession", { sessionId: word }],
  "session to fork": (word) => ["SessionService/ForkSession", { sessionId: word }],
  "snapshot to go back to": (word) => ["SnapshotService/RollbackSession", { sessionId: "legal", snapshotId: word }],
  "snapshot to delete": (word) => ["SnapshotService/DeleteSnapshot", { sessionId: "legal", snapshotId: word }],
  "snapshot to restore": (word) => ["SnapshotService/RestoreSnapshot", { snapshotId: word }],
  process: (word) => ["ProcessService/KillProcess", { sessionId: "legal", processId: word }],
  program: (word) => ["ProcessService/LaunchProcess", { sessionId: "legal", binary: word }],
  tool: (word) => ["ToolService/ExecuteTool", { sessionId: "legal", toolCallId: word, toolName: word }],
  template: (word) => ["HostService/DeleteTemplate", { name: word, digest: word }],
};
const REFUSALS = /^(INVALID_ARGUMENT|[A-Z]+_NOT_FOUND|TOOL_UNKNOWN|UNKNOWN_TOOL)$/;

/** Arguments that carry something of a caller's, each with the one before it. */
function carrying(started: readonly Started[], word: string): readonly (readonly [string, string])[] {
  return started.flatMap(({ args }) =>
    args.flatMap((arg, index) => (arg.includes(word) ? [[args[index - 1] ?? "", arg] as const] : [])),
  );
}

describe("what callers say, on a real host", () => {
  it("attack 23: no word of a caller's reaches zfs or runsc as an argument of its own", async () => {
    await createSession(host, "legal", { labels: { key: HOSTILE.join("|").slice(0, 200) } });
    await script(host, "legal", "echo a > a");
    await host.call("SnapshotService/CreateSnapshot", { sessionId: "legal", name: `--root=/${MARK};$(${MARK})` });
    for (const word of HOSTILE) {
      const fields = Object.entries(REQUESTS).map(async ([field, request]) => [
        field,
        await reasonOf(...request(word)),
      ]);
      for (const [field, reason] of await Promise.all(fields))
        expect([field, word, reason]).toEqual([field, word, expect.stringMatching(REFUSALS)]);
      expect(await importTemplate(host, word, archiveOf({ path: "x" }))).toBe("INVALID_ARGUMENT");
    }
    const started = recorder.started();
    const carried = carrying(started, MARK);
    // A mark on a dataset is one argument that zfs has been told to expect, and holds nothing but plain characters.
    for (const pair of carried)
      expect(pair).toEqual(["-o", expect.stringMatching(/^turnbox\.mark:\w+=[\w%.~!*'()\\-]*$/)]);
    expect(carried.length).toBeGreaterThan(0);
    expect(carrying(started, "legal")).toContainEqual(["-o", "turnbox.mark:session_id=legal"]);
    expect((await listSessions(host)).map(({ sessionId }) => sessionId)).toEqual(["legal"]);
    expect(await script(host, "legal", "cat a")).toBe("a\n");
  }, 90_000);

  it("attack 24: numbers that no resource has are refused, and what is taken works", async () => {
    const bytes = ["-1", "1", "9223372036854775808", "18446744073709551615", "18446744073709551616", "NaN", 0.5];
    const wrong: Readonly<Record<string, readonly unknown[]>> = {
      cpus: [-1, "NaN", "Infinity", "-Infinity", 0.0001, 2 ** 53, 1e300],
      memoryBytes: [...bytes, "9007199254740993"],
      pids: [-1, 1, 2 ** 32 - 1, 2 ** 32, 2 ** 53, "NaN", 1.5],
    };
    for (const [field, values] of Object.entries(wrong)) {
      for (const value of values) {
        const reason = await reasonOf("SessionService/CreateSession", { resources: { [field]: value } });
        expect([field, value, reason]).toEqual([field, value, expect.stringMatching(/^invalid_argument$/i)]);
      }
    }
    for (const quotaBytes of bytes.filter((value) => value !== "1"))
      expect([quotaBytes, await reasonOf("SessionService/CreateSession", { quotaBytes })]).toEqual([
        quotaBytes,
        expect.stringMatching(/^invalid_argument$/i),
      ]);
    const call = { sessionId: "legal", toolName: "bash", params: { cmd: "true" } };
    for (const limits of [
      { memoryBytes: "1" },
      { memoryBytes: "18446744073709551615" },
      { outputBytes: "9007199254740993" },
      { timeout: "-1s" },
      { timeout: "315576000000s" },
    ]) {
      const reason = await reasonOf("ToolService/ExecuteTool", { ...call, toolCallId: JSON.stringify(limits), limits });
      expect([limits, reason]).toEqual([limits, expect.stringMatching(/^invalid_argument$/i)]);
    }
    const zero = { resources: { cpus: 0, memoryBytes: "0", pids: 0 }, quotaBytes: "0" };
    expect(await createSession(host, "zero", zero)).toMatchObject({
      resources: { memoryBytes: "2147483648", pids: 4096 },
    });
    const most = { cpus: availableParallelism(), memoryBytes: String(totalmem()), pids: 4096 };
    await createSession(host, "most", { resources: most, quotaBytes: String(2 ** 30) });
    for (const sessionId of ["zero", "most"]) {
      expect(await script(host, sessionId, "echo works")).toBe("works\n");
      await destroy(host, sessionId);
    }
  }, 90_000);

  it("attack 25: no label and no variable becomes a flag of the runtime", async () => {
    const flags = { "dev.gvisor.flag.network": "host", "dev.gvisor.flag.host-uds": "all", "dev.gvisor.internal": "x" };
    const variables = Object.fromEntries(Object.keys(flags).map((name) => [name.replaceAll(/\W/g, "_"), "host"]));
    await createSession(host, "flags", { labels: flags, env: { ...variables, GODEBUG: "x", RUNSC_FLAG: "y" } });
    const refused = await reasonOf("SessionService/CreateSession", { sessionId: "dots", env: flags });
    expect(refused).toMatch(/^(INVALID_ARGUMENT|done)$/);
    if (refused === "done") await script(host, "dots", "true");
    expect(await script(host, "flags", "echo $RUNSC_FLAG")).toBe("y\n");
    const containers = join(host.dataDirectory, "containers/containers");
    // Those of the tests before may still be on their way out.
    const live = readRecords(host.dataDirectory).sessions.filter(({ id }) => ["legal", "flags", "dots"].includes(id));
    const ids = live.flatMap(({ container }) => container ?? []);
    expect(ids.length).toBeGreaterThan(1);
    expect(readdirSync(containers).toSorted()).toEqual(expect.arrayContaining([...ids].toSorted()));
    for (const id of ids) {
      const spec = readFileSync(join(containers, id, "config.json"), "utf8");
      // The host's own: one that is booted in a sandbox that stood by says in which.
      const own =
        /"annotations":\{"io\.kubernetes\.cri\.container-type":"container","io\.kubernetes\.cri\.sandbox-id":"\w+"\},/;
      expect(spec.replace(own, "")).not.toMatch(/gvisor|annotations|RUNSC_FLAG|GODEBUG/);
    }
    const runscArgs = recorder.started().flatMap(({ program, args }) => (program === "runsc" ? args : []));
    expect(runscArgs).toContain("--network=none");
    expect(runscArgs.filter((arg) => /gvisor|host-uds|network=host/.test(arg))).toEqual([]);
    for (const sessionId of ["flags", "dots"]) await destroy(host, sessionId);
  }, 60_000);
});

describe("templates that want more than files", () => {
  const shell: CraftedEntry = { path: "bin/bash", text: readFileSync("/bin/bash-static"), mode: 0o755 };
  const link = (path: string, linkpath: string): CraftedEntry => ({ path, type: "SymbolicLink", linkpath });

  it("attack 20: a link in the place of a mount point is refused, however it is reached", async () => {
    for (const place of ["proc", "dev", "sys", "run", "tmp", "workspace"])
      expect([place, await importTemplate(host, "crafted", archiveOf(shell, link(place, canary.directory)))]).toEqual([
        place,
        "TEMPLATE_INVALID",
      ]);
    const deeper = archiveOf(
      shell,
      { path: "run", type: "Directory", mode: 0o755 },
      link("run/turnbox", canary.directory),
    );
    expect(await importTemplate(host, "crafted", deeper)).toBe("TEMPLATE_INVALID");
    const through = archiveOf(shell, link("etc", canary.directory), { path: "etc/secret", text: "overwritten" });
    expect(await importTemplate(host, "crafted", through)).toMatch(/^(TEMPLATE_INVALID|imported)$/);
    canary.expectUntouched();
  }, 60_000);

  it.each([
    ["etc/resolv.conf", "secret"],
    ["etc", ""],
    ["etc/passwd", "secret"],
  ])(
    "attack 20: a link at /%s to a file of the machine leads nowhere",
    async (place, target) => {
      const name = `crafted-${place.replaceAll(/\W/g, "-")}`;
      const crafted = archiveOf(shell, link(place, join(canary.directory, target)));
      expect(await importTemplate(host, name, crafted)).toBe("imported");
      for (const networkPolicy of [undefined, { allowOutbound: true }]) {
        const sessionId = `${name}-${networkPolicy === undefined ? "alone" : "online"}`;
        await createSession(host, sessionId, { base: name, ...(networkPolicy === undefined ? {} : { networkPolicy }) });
        const ran = await bash(
          host,
          sessionId,
          'echo alive; echo x > /etc/resolv.conf; echo "$(</etc/resolv.conf)"',
        ).catch((thrown: unknown) => (thrown as Refusal).reason);
        expect(JSON.stringify(ran)).not.toContain(canary.secret);
        expect(JSON.stringify(ran)).toMatch(/alive|INVALID_ARGUMENT|PATH_REFUSED/);
        await destroy(host, sessionId);
      }
      canary.expectUntouched();
    },
    60_000,
  );

  it("attack 20: the same template without links works", async () => {
    expect(await importTemplate(host, "plain", archiveOf(shell, { path: "etc/resolv.conf", text: "own" }))).toBe(
      "imported",
    );
    await createSession(host, "plain", { base: "plain" });
    expect(await script(host, "plain", 'echo "$(</etc/resolv.conf)"')).toBe("own\n");
  }, 60_000);
});
