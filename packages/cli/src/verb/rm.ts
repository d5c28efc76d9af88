import type { Command } from "commander";
import { type Residue, SandboxError, type Turnbox } from "@turnbox/client";
import { type ErrorReport, toErrorReport } from "../error-report.ts";
import { exitCodeOf } from "../exit-code.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import type { Spinner } from "../progress/spinner.ts";
import { whileWorking } from "../progress/while-working.ts";

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
    const { signal, surroundings } = invocation;
    using turnbox = invocation.turnbox(options);
    const sandboxIds = new Set<string>();
    for (const id of ids) sandboxIds.add((await turnbox.handle(id, { signal })).id);
    const deadlineMs = surroundings.clock.monotonicMs() + WAIT_MS;
    const wait = options.wait ? "residue" : "none";
    const removals: Removal[] = [];
    let exitCode = 0;
    for (const sandboxId of sandboxIds) {
      const many = sandboxIds.size === 1 ? "" : ` (${String(removals.length + 1)} of ${String(sandboxIds.size)})`;
      const work = async (spinner: Spinner): Promise<Removal> =>
        await remove({ sandboxId, turnbox, deadlineMs, wait, spinner }, invocation);
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
  readonly turnbox: Turnbox;
  readonly deadlineMs: number;
  readonly wait: "residue" | "none";
  readonly spinner: Spinner;
}

async function remove(
  { sandboxId, turnbox, deadlineMs, wait, spinner }: Order,
  { signal, surroundings }: Invocation,
): Promise<Removal> {
  if (wait === "none") {
    await (await turnbox.handle(sandboxId)).destroy({ signal });
    return { sandboxId, destroyed: true, residue: "unknown" };
  }
  const onDestroyed = (): void => {
    spinner.say(`waiting until nothing of ${sandboxId} is left`);
  };
  const waitMs = Math.max(0, deadlineMs - surroundings.clock.monotonicMs());
  const residue = await turnbox.destroyAndWait(sandboxId, { waitMs, onDestroyed, signal });
  return { sandboxId, destroyed: true, residue };
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
