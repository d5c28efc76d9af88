import { readdir, readFile, realpath, rm, rmdir } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, sep } from "node:path";
import type { Command } from "commander";
import { acquireHomeLock, hasErrno, invalidArgument, openHome, SandboxError } from "@turnbox/core";
import { findHosts, HOME_MARK, listHostHomes, SERVER_LOCK, serverLockPath } from "@turnbox/client/internal";
import type { Invocation } from "../invocation.ts";
import { type OutputOptions, withExamples, withOutputOption } from "../option.ts";
import { whileWorking } from "../progress/while-working.ts";
import { requireHostProgram } from "../service/host-program.ts";

const RESET_MS = 180_000;

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

/** Holds the server's own lock throughout, so that no server begins to serve what is being removed. */
async function reset(options: ResetOptions, invocation: Invocation): Promise<void> {
  const { home } = invocation.surroundings.environment;
  const output = invocation.output(options);
  const entries = await listHome(home);
  if (entries === undefined) {
    await output.result({ json: { home, removed: false }, text: `there is nothing at ${home}\n` });
    return;
  }
  assertIsTurnboxHome(home, entries);
  // Another version may have left things that this one does not know how to destroy.
  if (entries.includes(HOME_MARK)) openHome(home);
  await using _lock = await acquireHomeLock(serverLockPath(home));
  await assertNoHost(home);
  if (options.yes !== true) await confirm(home, invocation);
  await whileWorking({ text: `destroying ${home}`, options, work: () => destroy(home, invocation) }, invocation);
  await output.result({ json: { home, removed: true }, text: `removed ${home}\n` });
}

async function destroy(home: string, { surroundings, signal }: Invocation): Promise<void> {
  for (const host of await listHostHomes(home)) {
    const args = ["reset", "--home", host];
    await requireHostProgram(surroundings, { args, deadlineMs: RESET_MS }, { signal });
  }
  assertNothingMounted(await realpath(home), await readFile("/proc/self/mountinfo", "utf8").catch(() => ""));
  await removeHome(home);
}

/** A host outlives a server that was killed for as long as it takes to notice and to stop. */
async function assertNoHost(home: string): Promise<void> {
  const [host] = await findHosts(home);
  if (host === undefined) return;
  const pid = String(host.pid);
  throw new SandboxError("HOME_IN_USE", `a sandbox-host of ${home} still runs: process ${pid}`, {
    metadata: { home, pid },
  });
}

/**
 * The lock goes last and the mark of a home just before it: a server that starts meanwhile is refused, and one that
 * starts afterwards makes a home of its own, which is left alone.
 */
async function removeHome(home: string): Promise<void> {
  const last = [HOME_MARK, SERVER_LOCK];
  const others = (await readdir(home)).filter((name) => !last.includes(name));
  for (const name of others) await rm(join(home, name), { recursive: true, force: true, maxRetries: 3 });
  for (const name of last) await rm(join(home, name), { force: true });
  try {
    await rmdir(home);
  } catch (cause) {
    // A new home, or a link to a directory, which stays and is empty.
    if (!hasErrno(cause, "ENOTEMPTY", "EEXIST", "ENOTDIR", "ENOENT")) throw cause;
  }
}

async function listHome(home: string): Promise<readonly string[] | undefined> {
  try {
    return await readdir(home);
  } catch (cause) {
    if (hasErrno(cause, "ENOENT")) return undefined;
    throw cause;
  }
}

/** A mistyped TURNBOX_HOME must not cost the user a directory of something else. */
export function assertIsTurnboxHome(home: string, entries: readonly string[]): void {
  const isSpecial = home === dirname(home) || home === homedir();
  // A reset that was killed at its very end leaves nothing but its lock.
  const isEmpty = entries.every((name) => name.startsWith(SERVER_LOCK));
  if (isSpecial || (!isEmpty && !entries.includes(HOME_MARK))) {
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
