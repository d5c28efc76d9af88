import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import {
  ask,
  chooseRequest,
  type FuzzTarget,
  Tally,
  verdictOf,
} from "../../packages/sandbox-host/src/port-access/fuzz-listener.suite.ts";
import { type HostileAnswer, hostileAnswer } from "../../packages/sandbox-host/src/port-access/hostile-answer.suite.ts";
import { archiveOf } from "../support/archive-of.ts";
import { fileClient, uploadOf } from "../support/file-client.ts";
import { startHost, type TestHost } from "../support/host.ts";
import { bash, createSession, destroy, health, script } from "../support/host-calls.ts";
import { namesOf } from "../support/networked-session.ts";
import { poll } from "../support/process.ts";
import { createRandom, IS_FULL } from "../support/random.ts";

jest.setTimeout(IS_FULL ? 1_800_000 : 180_000);

/** Whose answers come when the test lets them. */
let names: Socket;
let questions: { readonly message: Buffer; readonly port: number }[] = [];
let host: TestHost;
let pid: number;

beforeAll(async () => {
  names = createSocket("udp4");
  names.on("message", (message: Buffer, { port }) => questions.push({ message, port }));
  names.bind(0, "127.0.0.1");
  await once(names, "listening");
  host = await startHost({ env: { TURNBOX_NAMESERVERS: `127.0.0.1:${String(names.address().port)}` } });
  ({ pid } = host);
  await createSession(host, "other");
  await script(host, "other", "true");
});
afterAll(async () => {
  await host[Symbol.asyncDispose]();
  names.close();
});

/** The same process serves. */
async function expectAlive(): Promise<void> {
  expect((await health(host)).status).toMatch(/SERVING|OK|HEALTHY/);
  expect(host.pid).toBe(pid);
  process.kill(pid, 0);
}

const ANSWERS = 200;
const AT_ONCE = 8;
/** A server that answers each request with the file that its path names, as it is. */
const SERVER = `read -r method path rest
while read -r line && [ "$line" != $'\\r' ]; do :; done
cat "/workspace/answers$path"`;

describe("a server in a sandbox that answers with anything (F3)", () => {
  let target: FuzzTarget;
  beforeAll(async () => {
    await createSession(host, "server");
    await script(host, "server", `cat > /workspace/serve <<'END'\n${SERVER}\nEND\nmkdir /workspace/answers`);
    await script(host, "server", "setsid nc -ll -p 8080 -e bash /workspace/serve >/dev/null 2>&1 &");
    const access = await host.call("SessionService/CreatePortAccess", { sessionId: "server", port: 8080 });
    target = { port: Number(new URL(String(access["url"])).port), token: String(access["token"]) };
  });

  it(`gets ${String(ANSWERS)} hostile answers past no client and ends nothing`, async () => {
    const random = createRandom();
    const answers = Array.from({ length: ANSWERS }, () => ({ ...hostileAnswer(random), ending: "close" as const }));
    const entries = answers.map(({ bytes }, index) => ({ path: String(index), text: bytes }));
    const header = { sessionId: "server", path: "answers" };
    await fileClient(host).uploadArchive(uploadOf(header, archiveOf(...entries)));
    const tally = new Tally();
    const left = answers.entries();
    const work = async (): Promise<void> => {
      for (const [index, answer] of left) await tryOne(index, answer);
    };
    const tryOne = async (index: number, answer: HostileAnswer): Promise<void> => {
      const asked = chooseRequest(random);
      const got = await ask(target, `/${String(index)}`, { ...asked, leave: false });
      tally.add(`/${String(index)} ${asked.method} ${asked.more.trim()}`, verdictOf(got, answer, asked));
      await expectAlive();
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    const { seen, wrong } = tally.report();
    expect(wrong).toEqual([]);
    for (const kind of ["whole", "bad gateway"]) expect(seen[kind]).toBeGreaterThan(ANSWERS / 20);
  });
});

describe("a name that is looked up while the last network ends (F4)", () => {
  const ROUNDS = IS_FULL ? 50 : 4;

  it(`does not end the host, ${String(ROUNDS)} times`, async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      questions = [];
      const asking = `asking-${String(round)}`;
      await createSession(host, asking, { networkPolicy: { allowOutbound: true, required: true } });
      const lookUps = ["a", "b", "c"].map((name) => `nslookup ${name}.example.org >/dev/null 2>&1 &`);
      await bash(host, asking, lookUps.join("\n"));
      const asked = await poll("names to be asked for", () => (questions.length >= 3 ? [...questions] : undefined));
      await destroy(host, asking);
      await poll("the network to end", () => (existsSync(router()) ? undefined : true), 60_000);
      for (const { message, port } of asked) await answer(message, port);
      await expectAlive();
      expect(await script(host, "other", "echo alive")).toBe("alive\n");
    }
  });

  /** Is there while a session has a network. */
  const router = (): string => join("/var/run/netns", namesOf(host).router);

  /** Says that the name does not exist. */
  async function answer(question: Buffer, port: number): Promise<void> {
    const reply = Buffer.from(question);
    reply.writeUInt16BE(0x8183, 2);
    await new Promise((resolve) => names.send(reply, port, "127.0.0.1", resolve));
  }
});

describe("a file worker that dies in the middle of its work", () => {
  const MIB = 1024 * 1024;

  it("costs the calls that it served, and nothing else", async () => {
    const files = fileClient(host);
    const begun = Promise.withResolvers<undefined>();
    const held = Promise.withResolvers<undefined>();
    async function* halting() {
      yield* uploadOf({ sessionId: "other", path: "half" }, Buffer.alloc(2 * MIB));
      begun.resolve(undefined);
      await held.promise;
    }
    const upload = files.writeFile(halting());
    const failed = expect(upload).rejects.toThrow();
    await script(host, "other", "dd if=/dev/zero of=/workspace/big bs=1M count=64 2>/dev/null");
    const download = files.downloadArchive({ sessionId: "other", path: "." })[Symbol.asyncIterator]();
    await download.next();
    await begun.promise;
    const beside = bash(host, "other", "sleep 2; echo beside");
    const workers = fileWorkers();
    expect(workers.length).toBeGreaterThanOrEqual(2);
    for (const worker of workers) process.kill(worker, "SIGKILL");
    await failed;
    held.resolve(undefined);
    await expect(exhaust(download)).rejects.toThrow();
    expect((await beside).content).toBe("beside\n");
    await expectAlive();
    await files.writeFile(uploadOf({ sessionId: "other", path: "whole" }, Buffer.from("whole")));
    expect(await script(host, "other", "cat whole; ls half 2>/dev/null; true")).toBe("whole");
  });

  async function exhaust(stream: AsyncIterator<unknown>): Promise<void> {
    for (let next = await stream.next(); next.done !== true; next = await stream.next());
  }

  /** The file workers of this host. */
  function fileWorkers(): readonly number[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .filter((name) => read(name, "cmdline").includes("file-worker"))
      .filter((name) => Number(/^PPid:\s+(\d+)$/m.exec(read(name, "status"))?.[1]) === pid)
      .map(Number);
  }

  function read(process: string, name: string): string {
    try {
      return readFileSync(`/proc/${process}/${name}`, "utf8");
    } catch {
      return "";
    }
  }
});
