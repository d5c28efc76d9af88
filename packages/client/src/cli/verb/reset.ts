import { readdir, readFile, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, sep } from "node:path";
import type { Command } from "commander";
import { invalidArgument, SandboxError } from "@turnbox/core";
import type { Invocation } from "../invocation.ts";
import { type OutputOptions, withExamples, withOutputOption } from "../option.ts";
import { requireHostProgram } from "../service/host-program.ts";
import { findRunningServer } from "../service/running-server.ts";
import { listHostHomes } from "./down.ts";

const RESET_MS = 180_000;
/** Every home has it before anything else. */
const HOME_MARK = "home.json";

interface ResetOptions extends OutputOptions {
  readonly yes?: boolean;
}

export function registerReset(program: Command, invocation: Invocation): void {
  withExamples(
    withOutputOption(program.command("reset"))
      .summary("destroy everything in TURNBOX_HOME")
      .description(
        "Destroy all sandboxes, snapshots, templates and the pool of TURNBOX_HOME, then remove the directory itself. " +
          "The server must be down.",
      )
      .option("--yes", "do not ask"),
    [
      ["turnbox reset", "ask, then destroy"],
      ["turnbox reset --yes", "destroy"],
    ],
  ).action(async (options: ResetOptions) => {
    await reset(options, invocation);
  });
}

async function reset(options: ResetOptions, invocation: Invocation): Promise<void> {
  const { surroundings, signal } = invocation;
  const { home } = surroundings.environment;
  const output = invocation.output(options);
  const running = await findRunningServer(home, surroundings.clock);
  if (running !== undefined) {
    throw new SandboxError("HOME_IN_USE", `the server of ${home} runs: process ${String(running.pid)}; stop it first`, {
      metadata: { home, pid: String(running.pid) },
    });
  }
  const entries = await listHome(home);
  if (entries === undefined) {
    await output.result({ json: { home, removed: false }, text: `there is nothing at ${home}\n` });
    return;
  }
  assertIsTurnboxHome(home, entries);
  if (options.yes !== true) await confirm(home, invocation);
  for (const host of await listHostHomes(home)) {
    const args = ["reset", "--home", host];
    await requireHostProgram(surroundings, { args, deadlineMs: RESET_MS }, { signal });
  }
  assertNothingMounted(home, await readFile("/proc/self/mountinfo", "utf8").catch(() => ""));
  await rm(home, { recursive: true, force: true });
  await output.result({ json: { home, removed: true }, text: `removed ${home}\n` });
}

async function listHome(home: string): Promise<readonly string[] | undefined> {
  try {
    return await readdir(home);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw cause;
  }
}

/** A mistyped TURNBOX_HOME must not cost anybody a directory of something else. */
export function assertIsTurnboxHome(home: string, entries: readonly string[]): void {
  const isSpecial = home === dirname(home) || home === homedir();
  if (isSpecial || (entries.length > 0 && !entries.includes(HOME_MARK))) {
    throw new SandboxError("CONFIG_INVALID", `${home} does not look like a home of Turnbox, so it is left alone`, {
      metadata: { home },
    });
  }
}

/** Removing a tree with something mounted in it would delete that too. Mountinfo writes blanks as octal escapes. */
export function assertNothingMounted(home: string, mountinfo: string): void {
  const mounted = mountinfo
    .split("\n")
    .map((line) =>
      (line.split(" ")[4] ?? "").replaceAll(/\\(\d{3})/g, (_, octal: string) =>
        String.fromCharCode(parseInt(octal, 8)),
      ),
    )
    .filter((path) => path === home || path.startsWith(home + sep));
  if (mounted.length > 0) {
    throw new SandboxError("INVALID_STATE", `still mounted below ${home}: ${mounted.join(", ")}; nothing was removed`, {
      metadata: { home },
    });
  }
}

async function confirm(home: string, invocation: Invocation): Promise<void> {
  const { ask } = invocation.surroundings;
  if (ask === undefined) throw invalidArgument("yes", "without a terminal to ask at, --yes is needed");
  await invocation.output({}).note(`This destroys all sandboxes, snapshots and templates in ${home}.`);
  const answer = await ask("Type yes to go on: ", { signal: invocation.signal });
  if (answer.trim() !== "yes") throw new SandboxError("CANCELLED", "nothing was removed");
}
