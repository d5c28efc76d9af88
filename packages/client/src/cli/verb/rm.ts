import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import { hasReason, SandboxError } from "@turnbox/core";
import type { HostClients, TurnboxClients } from "../../client.ts";
import { isTrustedHost } from "../../config.ts";
import { CALL_MS } from "../deadline.ts";
import { type ErrorReport, toErrorReport } from "../error-report.ts";
import { exitCodeOf } from "../exit-code.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import type { Spinner } from "../progress/spinner.ts";
import { whileWorking } from "../progress/while-working.ts";
import { type OpenSandbox, openSandbox, resolveSandbox } from "../resolve/resolve-sandbox.ts";
import { type Residue, waitForResidue } from "../residue.ts";

interface RmOptions extends ServerOptions {
  readonly wait: boolean;
}

interface Removal {
  readonly sandboxId: string;
  readonly destroyed: boolean;
  readonly residue: Residue;
  readonly error?: ErrorReport["error"];
}

const WAIT_MS = 15_000;

export function registerRm(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("rm <id...>"))
      .summary("destroy sandboxes")
      .description(
        "Destroy sandboxes with all their snapshots. The decision is durable at once; the removal of processes and files " +
          "goes on in the background, and this waits for it, at most 15 s.",
      )
      .option("--no-wait", "do not wait for the removal"),
    [
      ["turnbox rm web", "destroy, and wait until nothing of it is left"],
      ["turnbox rm k7f2 m3 --no-wait", "several, without waiting"],
    ],
  ).action(async (ids: readonly string[], options: RmOptions) => {
    using server = await invocation.server(options);
    const sandboxIds = new Set<string>();
    for (const id of ids) sandboxIds.add(await resolveSandbox(server, id, invocation));
    const deadlineMs = invocation.surroundings.clock.monotonicMs() + WAIT_MS;
    const wait = options.wait ? "residue" : "none";
    const removals: Removal[] = [];
    let exitCode = 0;
    for (const sandboxId of sandboxIds) {
      const many = sandboxIds.size === 1 ? "" : ` (${String(removals.length + 1)} of ${String(sandboxIds.size)})`;
      const work = async (spinner: Spinner): Promise<Removal> =>
        await remove({ sandboxId, server, deadlineMs, wait, spinner }, invocation);
      try {
        removals.push(await whileWorking({ text: `destroying ${sandboxId}${many}`, options, work }, invocation));
      } catch (thrown) {
        const error = SandboxError.from(thrown);
        if (sandboxIds.size === 1 || error.reason === "CANCELLED") throw error;
        exitCode ||= exitCodeOf(error);
        removals.push({ sandboxId, destroyed: false, residue: "unknown", error: toErrorReport(error).error });
      }
    }
    await invocation
      .output(options)
      .result({ json: { sandboxes: removals }, text: removals.map(formatRemoval).join("") });
    invocation.exitWith(exitCode);
  });
}

interface Order {
  readonly sandboxId: string;
  readonly server: TurnboxClients;
  readonly deadlineMs: number;
  readonly wait: "residue" | "none";
  readonly spinner: Spinner;
}

async function remove(
  { sandboxId, server, deadlineMs, wait, spinner }: Order,
  invocation: Invocation,
): Promise<Removal> {
  const { signal, surroundings } = invocation;
  // Asked for first: nobody says where a destroyed sandbox was.
  using sandbox = wait === "none" ? undefined : await openIfThere(server, sandboxId, invocation);
  await server.sandboxes.destroySandbox(
    { idempotencyKey: randomUUID(), sandboxId },
    { signal, timeoutMs: CALL_MS.change },
  );
  if (sandbox === undefined) return { sandboxId, destroyed: true, residue: "unknown" };
  spinner.say(`waiting until nothing of ${sandboxId} is left`);
  using operator = openAsOperator(sandbox.host, server, invocation);
  const { host, sessionId } = sandbox;
  const residue = await waitForResidue(
    { sessionId, host, operator, deadlineMs },
    { clock: surroundings.clock, signal },
  );
  return { sandboxId, destroyed: true, residue };
}

/** A host that does not answer, or a sandbox that is half gone, must not keep anybody from destroying it. */
async function openIfThere(
  server: TurnboxClients,
  sandboxId: string,
  invocation: Invocation,
): Promise<OpenSandbox | undefined> {
  try {
    return await openSandbox(server, sandboxId, invocation);
  } catch (thrown) {
    if (hasReason(thrown, "CANCELLED", "SERVER_UNREACHABLE", "UNAUTHENTICATED")) throw thrown;
    return undefined;
  }
}

/** The host's health is not for a sandbox's token; a host on the server's own machine knows the server's. */
function openAsOperator(host: HostClients, server: TurnboxClients, invocation: Invocation): HostClients | undefined {
  const { url } = host.endpoint;
  return isTrustedHost(url, server.endpoint) ? invocation.host({ url, token: server.endpoint.token }) : undefined;
}

const RESIDUE_WORDS: Readonly<Record<Residue, string>> = {
  gone: "nothing of it is left",
  pending:
    "its files or processes are still being removed; `turnbox doctor` and the host's health show when they are gone",
  unknown: "its removal goes on in the background",
};

function formatRemoval({ sandboxId, destroyed, residue, error }: Removal): string {
  if (error !== undefined) return `${sandboxId}: ${error.reason}: ${error.message}\n`;
  return destroyed ? `destroyed ${sandboxId}: ${RESIDUE_WORDS[residue]}\n` : "";
}
