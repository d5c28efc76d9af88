import { type Clock, hasReason, randomToken, SandboxError } from "@turnbox/core";
import type { Containers } from "../container/container.ts";
import type { Ports } from "../port-access/ports.ts";
import type { Records } from "../record/records.ts";
import type { ProcessRow, ReceiptRow } from "../record/row.ts";
import type { Runtime, TerminalSize } from "../runtime/runtime.ts";
import type { Activity } from "../session/activity.ts";
import { environmentOf } from "../session/environment.ts";
import { assertGeneration } from "../session/generation.ts";
import { assertActive } from "../session/phase.ts";
import type { Receipts } from "../session/receipts.ts";
import { inOrder, type Session, within } from "../session/session.ts";
import type { LaunchedProcess } from "./launched-process.ts";
import type { Processes } from "./processes.ts";
import type { Terminals } from "./terminals.ts";

export interface LaunchRequest {
  readonly idempotencyKey: string;
  readonly payload: string;
  readonly expectedGeneration: number | undefined;
  readonly binary: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Absolute path inside. */
  readonly cwd: string;
  readonly terminal: TerminalSize | null;
  /** The port it will listen on; 0 exposes none. */
  readonly port: number;
}

interface Call {
  readonly signal: AbortSignal;
}

/**
 * Starts a process in a session and returns when it runs. Its row and the receipt of its key are durable before it is
 * started, so that a crash in between neither loses it nor starts it twice; a start that fails leaves nothing.
 */
export type LaunchProcess = (session: Session, request: LaunchRequest, call: Call) => Promise<LaunchedProcess>;

const PROCESS_ID_CHARS = 26;

interface Deps {
  readonly records: Records;
  readonly receipts: Receipts;
  readonly runtime: Runtime;
  readonly containers: Containers;
  readonly activity: Activity;
  readonly processes: Processes;
  readonly terminals: Terminals;
  readonly ports: Pick<Ports, "expose">;
  readonly clock: Clock;
}

export function createLaunchProcess(deps: Deps): LaunchProcess {
  const { receipts, containers, processes } = deps;
  return async (session, request, caller) => {
    const { signal } = within(session, caller);
    const { idempotencyKey: key, payload } = request;
    const processId = await receipts.once<string>(
      { scope: `${session.row.token}/LaunchProcess`, key, payload },
      async (receiptOf) => {
        assertActive(session.row.phase, "LaunchProcess");
        assertGeneration(session, request.expectedGeneration);
        const launch = new Launch(deps, session, { request, receiptOf, signal });
        return await launch.attempt().catch(async (thrown: unknown) => {
          // A container that is frozen or dead; `ensure` thaws or replaces it.
          if (!hasReason(thrown, "SANDBOX_LOST", "INVALID_STATE")) throw thrown;
          containers.suspect(session);
          return await launch.attempt();
        });
      },
    );
    return processes.get(session, processId);
  };
}

interface LaunchOptions {
  readonly request: LaunchRequest;
  readonly receiptOf: (processId: string) => ReceiptRow | undefined;
  readonly signal: AbortSignal;
}

/** One launch, which may be attempted twice. */
class Launch {
  readonly #deps: Deps;
  readonly #session: Session;
  readonly #request: LaunchRequest;
  readonly #receiptOf: LaunchOptions["receiptOf"];
  readonly #call: Call;

  constructor(deps: Deps, session: Session, { request, receiptOf, signal }: LaunchOptions) {
    this.#deps = deps;
    this.#session = session;
    this.#request = request;
    this.#receiptOf = receiptOf;
    this.#call = { signal };
  }

  /** Returns the id of the process. */
  async attempt(): Promise<string> {
    // Before the gate: an operation that waits for the gate to empty is ahead of this in the session's order.
    const address = this.#request.port === 0 ? "" : await this.#expose();
    using _inside = this.#session.gate.enter();
    this.#deps.activity.touch(this.#session);
    const container = await this.#ensureContainer(address);
    return await this.#launch(container, address);
  }

  async #expose(): Promise<string> {
    return await inOrder(this.#session, "LaunchProcess", async () => {
      const { address } = await this.#deps.ports.expose(this.#session, this.#request.port);
      return address;
    });
  }

  async #ensureContainer(address: string): Promise<string> {
    const { generation: exposedIn } = this.#session.row;
    const container = await this.#deps.containers.ensure(this.#session, this.#call);
    assertGeneration(this.#session, this.#request.expectedGeneration);
    if (address !== "" && this.#session.row.generation !== exposedIn)
      throw new SandboxError("SANDBOX_LOST", "the sandbox was replaced meanwhile", { admitted: "no" });
    return container;
  }

  async #launch(container: string, address: string): Promise<string> {
    const { processes, records } = this.#deps;
    const processId = randomToken(PROCESS_ID_CHARS);
    const receipt = this.#receiptOf(processId);
    const row = this.#rowOf({ processId, container, address, receipt });
    await processes.makeRoom(this.#session);
    const process = await processes.prepare(row);
    await records.call("startProcess", { process: row, receipt });
    processes.add(this.#session, process);
    try {
      await this.#start(process);
      await processes.commit(process, { ...process.row, started: "yes" });
    } catch (thrown) {
      await processes.forget(this.#session, process, "forget");
      throw thrown;
    }
    return processId;
  }

  #rowOf({
    receipt,
    ...made
  }: Pick<ProcessRow, "processId" | "container" | "address"> & {
    readonly receipt: ReceiptRow | undefined;
  }): ProcessRow {
    const { token, generation, headGeneration } = this.#session.row;
    const { binary, args, terminal, port } = this.#request;
    return {
      ...made,
      token,
      generation,
      headGeneration,
      binary,
      args,
      terminal,
      port,
      ready: port === 0 ? "yes" : "no",
      startedAtMs: this.#deps.clock.nowMs(),
      started: "no",
      receipt: receipt === undefined ? null : { scope: receipt.scope, key: receipt.key },
      end: null,
    };
  }

  async #start(process: LaunchedProcess): Promise<void> {
    const { binary, args, env, cwd, terminal: size } = this.#request;
    const ofTerminal: Record<string, string> = size === null ? {} : { TERM: "xterm-256color" };
    const spec = {
      argv: [binary, ...args] as const,
      env: environmentOf(this.#session.row.env, ofTerminal, { PWD: cwd }, env),
      cwd,
    };
    if (size !== null) {
      await this.#deps.terminals.open(this.#session, { process, spec, size }, this.#call);
      return;
    }
    const outputPath = await process.journal.outputPath();
    const { container } = process.row;
    await this.#deps.runtime.spawn(container, { ...spec, ...process.spawned, outputPath }, this.#call);
  }
}
