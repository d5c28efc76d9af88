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
import type { Terminals } from "./terminal.ts";

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

/**
 * Starts a process in a session and answers when it runs. Its row and the receipt of its key are durable before it is
 * started, so that a crash in between neither loses it nor starts it twice; a start that fails leaves nothing.
 */
export type LaunchProcess = (
  session: Session,
  request: LaunchRequest,
  call: { readonly signal: AbortSignal },
) => Promise<LaunchedProcess>;

const PROCESS_ID_CHARS = 26;

export function createLaunchProcess(deps: {
  readonly records: Records;
  readonly receipts: Receipts;
  readonly runtime: Runtime;
  readonly containers: Containers;
  readonly activity: Activity;
  readonly processes: Processes;
  readonly terminals: Terminals;
  readonly ports: Pick<Ports, "expose">;
  readonly clock: Clock;
}): LaunchProcess {
  const { records, receipts, runtime, containers, processes, terminals, clock } = deps;

  const start = async (
    session: Session,
    { process, request }: { readonly process: LaunchedProcess; readonly request: LaunchRequest },
    call: { readonly signal: AbortSignal },
  ): Promise<void> => {
    const spec = {
      argv: [request.binary, ...request.args] as const,
      env: environmentOf(
        session.row.env,
        request.terminal === null ? {} : { TERM: "xterm-256color" },
        { PWD: request.cwd },
        request.env,
      ),
      cwd: request.cwd,
    };
    const { container } = process.row;
    if (request.terminal !== null) {
      await terminals.open(session, { process, spec, size: request.terminal }, call);
      return;
    }
    const outputPath = await process.journal.outputPath();
    await runtime.spawn(container, { ...spec, ...process.spawned, outputPath }, call);
  };

  const expose = async (session: Session, port: number): Promise<string> =>
    await inOrder(session, "LaunchProcess", async () => (await deps.ports.expose(session, port)).address);

  const launch = async (
    session: Session,
    request: LaunchRequest,
    { address, receiptOf, signal }: Attempt & { readonly address: string },
  ): Promise<string> => {
    const { generation: exposedIn } = session.row;
    const container = await containers.ensure(session, { signal });
    assertGeneration(session, request.expectedGeneration);
    if (address !== "" && session.row.generation !== exposedIn)
      throw new SandboxError("SANDBOX_LOST", "the sandbox was replaced meanwhile", { admitted: "no" });
    const processId = randomToken(PROCESS_ID_CHARS);
    const receipt = receiptOf(processId);
    const { token, generation, headGeneration } = session.row;
    const row: ProcessRow = {
      token,
      processId,
      generation,
      headGeneration,
      container,
      binary: request.binary,
      args: request.args,
      terminal: request.terminal,
      port: request.port,
      address,
      ready: request.port === 0 ? "yes" : "no",
      startedAtMs: clock.nowMs(),
      started: "no",
      receipt: receipt === undefined ? null : { scope: receipt.scope, key: receipt.key },
      end: null,
    };
    await processes.makeRoom(session);
    const process = await processes.prepare(row);
    await records.call("startProcess", { process: row, receipt });
    processes.add(session, process);
    try {
      await start(session, { process, request }, { signal });
      await processes.commit(process, { ...process.row, started: "yes" });
    } catch (thrown) {
      await processes.forget(session, process, "forget");
      throw thrown;
    }
    return processId;
  };

  const attempt = async (session: Session, request: LaunchRequest, how: Attempt): Promise<string> => {
    // Before the gate: an operation that waits for the gate to empty is ahead of this in the session's order.
    const address = request.port === 0 ? "" : await expose(session, request.port);
    using _place = session.gate.enter();
    deps.activity.touch(session);
    return await launch(session, request, { ...how, address });
  };

  return async (session, request, caller) => {
    const { signal } = within(session, caller);
    const { idempotencyKey: key, payload } = request;
    const processId = await receipts.once<string>(
      { scope: `${session.row.token}/LaunchProcess`, key, payload },
      async (receiptOf) => {
        assertActive(session.row.phase, "LaunchProcess");
        assertGeneration(session, request.expectedGeneration);
        return await attempt(session, request, { receiptOf, signal }).catch(async (thrown: unknown) => {
          // A container that is frozen or dead; `ensure` thaws or replaces it.
          if (!hasReason(thrown, "SANDBOX_LOST", "INVALID_STATE")) throw thrown;
          containers.suspect(session);
          return await attempt(session, request, { receiptOf, signal });
        });
      },
    );
    return processes.get(session, processId);
  };
}

interface Attempt {
  readonly receiptOf: (processId: string) => ReceiptRow | undefined;
  readonly signal: AbortSignal;
}
