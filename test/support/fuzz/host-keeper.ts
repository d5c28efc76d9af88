import { join } from "node:path";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { loadOrCreateHomeToken } from "@turnbox/core";
import { signerOf } from "../fleet-hosts.ts";
import type { TestHost } from "../host.ts";
import { completeTurn, createSession, destroy, listSessions, script, type SeenSession } from "../host-calls.ts";
import { poll } from "../process.ts";
import type { Answer } from "./answer.ts";
import type { Keeper } from "./fuzz.ts";
import { countDestroying } from "./host-state.ts";
import type { Input } from "./input.ts";
import { ifRefused, Mending } from "./mending.ts";
import type { Service } from "./wire.ts";
import { newSubject, type Role, type Subject, World } from "./world.ts";

const FIXTURES: readonly (readonly [string, Role])[] = [
  ["fz-steady-1", "steady"],
  ["fz-steady-2", "steady"],
  ["fz-resting", "resting"],
  ["fz-turning", "turning"],
];
const SPARES = 4;
const GONE_MS = 60_000;
/** More than the fixtures hold at first, fewer than inputs would make. */
const MOST_PROCESSES = 12;
const FILES = "cd /workspace && rm -rf a dir link && echo a > a && mkdir -p dir && echo b > dir/b && ln -sf a link";

/** Keeps sessions with files, turns, calls, processes and a terminal on a host, and spares to be destroyed. */
export class HostKeeper implements Keeper {
  readonly world = new World();
  readonly #host: TestHost;
  readonly #mending = new Mending(() => this.#mend());

  constructor(host: TestHost) {
    this.#host = host;
  }

  get service(): Service {
    const { home, url } = this.#host;
    const verbs = ["read", "execute", "files", "turn", "lifecycle"] as const;
    const grant = { tenant: "default", sandbox: "fz-steady-1", verbs, lifetimeMs: 3_600_000 };
    return {
      url,
      tokens: {
        home: loadOrCreateHomeToken(join(home, "token")).reveal(),
        sandbox: signerOf(home).sign(grant).token.reveal(),
        forged: signerOf(home, "another-fleet").sign(grant).token.reveal(),
      },
    };
  }

  async mend(): Promise<void> {
    await this.#mending.run();
  }

  /** Removes what lives on a clock of its own, so that nothing changes by itself. */
  async rest(): Promise<void> {
    await this.mend();
    const fixtures = new Set(FIXTURES.map(([sessionId]) => sessionId));
    for (const { sessionId } of await listSessions(this.#host))
      if (!fixtures.has(sessionId)) await destroy(this.#host, sessionId);
    await poll("destroyed sessions to be gone", () => countDestroying(this.#host) === 0 || undefined, GONE_MS, 100);
  }

  see({ subject }: Input, answer: Answer): void {
    if (answer.kind === "done") for (const message of answer.messages) this.world.learn(subject, message);
  }

  async #mend(): Promise<void> {
    await this.#host.call("HostService/HealthCheck");
    await this.#open();
    const live = new Map((await listSessions(this.#host)).map((session) => [session.sessionId, session]));
    for (const [sessionId, role] of FIXTURES) await this.#mendFixture(sessionId, role, live.get(sessionId));
    await this.#mendSpares([...live.keys()]);
    await this.#mendTemplates();
  }

  /** One that inputs have wrecked (its /workspace is gone, say) is made again. */
  async #mendFixture(sessionId: string, role: Role, session: SeenSession | undefined): Promise<void> {
    const subject = this.world.subjects(role).find((one) => one.sessionId === sessionId);
    if (subject !== undefined && session?.state === "SESSION_STATE_ACTIVE") {
      subject.generation = session.generation;
      if (role !== "steady") return;
      const mended = await this.#mendProcesses(subject).then(() => true as const, ifRefused);
      if (mended === true) return;
    }
    if (role === "resting" && session?.state === "SESSION_STATE_PAUSED") return;
    await destroy(this.#host, sessionId);
    await this.#make(sessionId, role);
  }

  /** A host that inputs have closed takes sessions again. */
  async #open(): Promise<void> {
    const { url, home } = this.#host;
    const token = loadOrCreateHomeToken(join(home, "token")).reveal();
    await fetch(`${url}/turnbox.host.v1.HostService/SetAdmission`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${token}`,
        "turnbox-fleet-epoch": "3",
      },
      body: JSON.stringify({ admission: "ADMISSION_OPEN" }),
    });
  }

  async #make(sessionId: string, role: Role): Promise<void> {
    const subject = newSubject(sessionId);
    await createSession(this.#host, sessionId);
    await script(this.#host, sessionId, FILES);
    this.world.learn(subject, (await completeTurn(this.#host, sessionId)) as unknown as JsonValue);
    await script(this.#host, sessionId, "echo c >> a; rm dir/b; echo d > d");
    this.world.learn(subject, (await completeTurn(this.#host, sessionId)) as unknown as JsonValue);
    subject.toolCalls.push("fz-known");
    const call = { sessionId, toolCallId: "fz-known", toolName: "bash", params: { cmd: "echo known" } };
    await this.#host.call("ToolService/ExecuteTool", call);
    if (role === "steady") await this.#mendProcesses(subject);
    const subjects = this.world.subjects(role);
    subjects.splice(0, subjects.length, ...subjects.filter((one) => one.sessionId !== sessionId), subject);
  }

  /** A program that reads, and one at a terminal; too many are ended. */
  async #mendProcesses(subject: Subject): Promise<void> {
    const { sessionId } = subject;
    const answer = await this.#host.call("ProcessService/ListProcesses", { sessionId });
    const running = ((answer["processes"] ?? []) as readonly SeenProcess[]).filter(
      ({ state }) => state === "PROCESS_STATE_RUNNING",
    );
    subject.processes.splice(0, subject.processes.length, ...running.map(({ processId }) => processId));
    for (const { processId } of running.slice(MOST_PROCESSES))
      await this.#host.call("ProcessService/KillProcess", { sessionId, processId, signal: 9 });
    const launch = async (more: object): Promise<void> => {
      const made = await this.#host.call("ProcessService/LaunchProcess", {
        sessionId,
        binary: "cat",
        cwd: "/",
        ...more,
      });
      this.world.learn(subject, made as JsonObject);
    };
    if (!running.some(({ terminal }) => terminal === true)) await launch({ terminal: { columns: 80, rows: 24 } });
    if (!running.some(({ terminal }) => terminal !== true)) await launch({});
  }

  /** Sessions that inputs made are there to be destroyed; the rest of them goes. */
  async #mendSpares(live: readonly string[]): Promise<void> {
    const fixtures = new Set(FIXTURES.map(([sessionId]) => sessionId));
    const others = live.filter((sessionId) => !fixtures.has(sessionId));
    const kept = others.slice(-SPARES);
    for (const sessionId of others.slice(0, -SPARES)) await destroy(this.#host, sessionId);
    while (kept.length < SPARES) {
      const sessionId = `fz-spare-${this.world.next()}`;
      await createSession(this.#host, sessionId);
      kept.push(sessionId);
    }
    this.world.subjects("spare").splice(0, SPARES, ...kept.map(newSubject));
  }

  async #mendTemplates(): Promise<void> {
    const answer = await this.#host.call("HostService/ListTemplates");
    const templates = (answer["templates"] ?? []) as readonly { readonly name: string; readonly digest: string }[];
    const known = templates.map(({ name, digest }) => ({ name, digest }));
    const first = known.filter(({ name }) => name === "mini");
    this.world.templates.splice(
      0,
      this.world.templates.length,
      ...first,
      ...known.filter(({ name }) => name !== "mini"),
    );
    if (this.world.tools.length > 0) return;
    const catalog = (await this.#host.call("ToolService/ListTools"))["tools"] as readonly SeenTool[];
    this.world.tools.push(...catalog.map(({ name, inputSchema }) => ({ name, schema: inputSchema })));
  }
}

interface SeenProcess {
  readonly processId: string;
  readonly state: string;
  readonly terminal?: boolean;
}

interface SeenTool {
  readonly name: string;
  readonly inputSchema: JsonObject;
}
