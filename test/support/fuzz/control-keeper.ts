import type { JsonValue } from "@bufbuild/protobuf";
import {
  control,
  createSandbox,
  destroySandbox,
  instancesReady,
  listInstances,
  listSandboxes,
  type SeenSandbox,
} from "../control-calls.ts";
import { signerOf } from "../fleet-hosts.ts";
import { poll } from "../process.ts";
import type { TestServer } from "../server.ts";
import type { Answer } from "./answer.ts";
import type { Keeper } from "./fuzz.ts";
import type { Input } from "./input.ts";
import { ifRefused, Mending } from "./mending.ts";
import type { Service } from "./wire.ts";
import { newSubject, type Role, type Subject, World } from "./world.ts";

const STEADY_INSTANCE = "local-1";
const ROLES: readonly Role[] = ["steady", "resting"];
const SPARES = 3;
const REST_MS = 60_000;

/** Keeps sandboxes, a process in one of them and spares to be destroyed in a fleet of two local hosts. */
export class ControlKeeper implements Keeper {
  readonly world = new World();
  readonly #server: TestServer;
  readonly #mending = new Mending(() => this.#mend());

  constructor(server: TestServer) {
    this.#server = server;
  }

  get service(): Service {
    const { home, url, token } = this.#server;
    const sandbox = this.world.subjects("steady")[0]?.sessionId.split(":")[2] ?? "none";
    const verbs = ["read", "execute", "lifecycle"] as const;
    const grant = { tenant: "default", sandbox, verbs, lifetimeMs: 3_600_000 };
    return {
      url,
      tokens: {
        home: token,
        sandbox: signerOf(home).sign(grant).token.reveal(),
        forged: signerOf(home, "another-fleet").sign(grant).token.reveal(),
      },
    };
  }

  async mend(): Promise<void> {
    await this.#mending.run();
  }

  see({ subject }: Input, answer: Answer): void {
    if (answer.kind === "done") for (const message of answer.messages) this.world.learn(subject, message);
  }

  /** Opens the disposable instance again, and removes what lives on a clock of its own. */
  async rest(): Promise<void> {
    await this.mend();
    const kept = new Set(ROLES.flatMap((role) => this.world.subjects(role)).map(({ sessionId }) => sessionId));
    const others = async (): Promise<readonly SeenSandbox[]> =>
      (await listSandboxes(this.#server, {})).sandboxes.filter(({ sandboxId }) => !kept.has(sandboxId));
    for (const { sandboxId } of await others()) await destroySandbox(this.#server, sandboxId);
    await poll("the others to be gone", async () => ((await others()).length === 0 ? true : undefined), REST_MS);
    await instancesReady(this.#server, 2, REST_MS);
  }

  async #mend(): Promise<void> {
    const instances = await listInstances(this.#server);
    // The others are given to cordon, drain and refresh. A drained one is replaced by one with another name.
    const disposable = instances.map(({ instanceId }) => instanceId).filter((id) => id !== STEADY_INSTANCE);
    this.world.instances.splice(0, this.world.instances.length, ...disposable);
    for (const { instanceId } of instances)
      await control(this.#server, "FleetService/UncordonInstance", { instanceId }).catch(ifRefused);
    const { sandboxes } = await listSandboxes(this.#server, {});
    const live = new Map(sandboxes.map((sandbox) => [sandbox.sandboxId, sandbox]));
    for (const role of ROLES) await this.#mendRole(role, (id) => live.get(id)?.state);
    const kept = new Set(ROLES.flatMap((role) => this.world.subjects(role)).map(({ sessionId }) => sessionId));
    const others = [...live.keys()].filter((sandboxId) => !kept.has(sandboxId));
    for (const sandboxId of others.slice(0, -SPARES)) await destroySandbox(this.#server, sandboxId);
    const spares = others.slice(-SPARES);
    while (spares.length < SPARES) spares.push((await createSandbox(this.#server)).sandboxId);
    this.world.subjects("spare").splice(0, SPARES, ...spares.map(newSubject));
    await this.#mendTemplates();
  }

  async #mendRole(role: Role, stateOf: (sandboxId: string) => string | undefined): Promise<void> {
    const [subject] = this.world.subjects(role);
    const state = subject === undefined ? undefined : stateOf(subject.sessionId);
    if (state === "SESSION_STATE_ACTIVE" || (role === "resting" && state === "SESSION_STATE_PAUSED")) {
      if (subject !== undefined && role === "steady") await this.#mendProcess(subject);
      return;
    }
    const made = await this.#createSteady();
    if (role === "steady") await this.#mendProcess(made);
    this.world.subjects(role).splice(0, 1, made);
  }

  /** On the instance that no input drains. */
  async #createSteady(): Promise<Subject> {
    for (;;) {
      const { sandboxId, instanceId } = await createSandbox(this.#server);
      if (instanceId === STEADY_INSTANCE) return newSubject(sandboxId);
      await control(this.#server, "FleetService/CordonInstance", { instanceId });
      await destroySandbox(this.#server, sandboxId);
    }
  }

  async #mendProcess(subject: Subject): Promise<void> {
    if (subject.processes.length > 0) subject.processes.splice(0, subject.processes.length - 4);
    const request = { sandboxId: subject.sessionId, binary: "cat" };
    const launched = await control(this.#server, "SandboxControlService/LaunchProcess", request);
    this.world.learn(subject, launched as JsonValue);
  }

  async #mendTemplates(): Promise<void> {
    const answer = await control(this.#server, "SandboxControlService/ListTemplates");
    const templates = (answer["templates"] ?? []) as readonly { readonly name: string; readonly digest: string }[];
    this.world.templates.splice(
      0,
      this.world.templates.length,
      ...templates.map(({ name, digest }) => ({ name, digest })),
    );
  }
}
