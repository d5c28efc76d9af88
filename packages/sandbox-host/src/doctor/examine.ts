import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { type CommandRunner, type ConfigEntry, hasReason, SandboxError } from "@turnbox/core";
import type { Runtime } from "../runtime/runtime.ts";
import { readSystemParts, type SystemPart } from "./system-parts.ts";

/** How it stands with one part, as `turnbox doctor` prints it. */
export interface PartReport {
  readonly name: string;
  readonly status: "found" | "missing" | "broken";
  readonly version: string;
  readonly required: boolean;
  readonly detail: string;
  readonly without: string;
  readonly remedy: string;
}

export interface DoctorReport {
  readonly parts: readonly PartReport[];
  readonly config: readonly ConfigEntry[];
}

const PROBE_MS = 10_000;

export interface DoctorDeps {
  readonly runner: CommandRunner;
  readonly path: string;
  /** The runtime that the configuration names; it is tried, not looked up. */
  readonly runtime: Runtime;
  /** Parts without which the configured host does not start. */
  readonly required: ReadonlySet<string>;
  readonly config: readonly ConfigEntry[];
  readonly signal: AbortSignal;
}

/** Tries every part of the machine that the host uses. */
export async function examine(deps: DoctorDeps): Promise<DoctorReport> {
  const parts: PartReport[] = [];
  for (const part of await readSystemParts()) parts.push(await examinePart(part, deps));
  parts.push(await tryRuntime(deps));
  return { parts, config: deps.config };
}

async function examinePart(part: SystemPart, deps: DoctorDeps): Promise<PartReport> {
  const found = (await askInstead(part, deps)) ?? (await findMissing(part, deps)) ?? (await askVersion(part, deps));
  return {
    name: part.name,
    required: deps.required.has(part.name),
    without: part.without,
    remedy: `apt-get install ${part.suite === "backports" ? "-t CODENAME-backports " : ""}${part.package}`,
    ...found,
  };
}

type Finding = Pick<PartReport, "status" | "version" | "detail">;

/** Another part that does the same work. */
async function askInstead({ insteadOf }: SystemPart, deps: DoctorDeps): Promise<Finding | null> {
  if (insteadOf === undefined) return null;
  const output = await ask(insteadOf.argv, deps);
  if (output?.includes(insteadOf.prints) !== true) return null;
  return { status: "found", version: output.split("\n")[0] ?? "", detail: insteadOf.name };
}

async function findMissing(part: SystemPart, deps: DoctorDeps): Promise<Finding | null> {
  for (const command of part.commands) {
    if (!(await isInPath(command, deps.path)))
      return { status: "missing", version: "", detail: `${command} is not in PATH` };
  }
  for (const device of part.devices ?? []) {
    if (!(await isThere(device))) return { status: "broken", version: "", detail: `there is no ${device}` };
  }
  return null;
}

async function askVersion({ version, minimumVersion }: SystemPart, deps: DoctorDeps): Promise<Finding> {
  if (version === undefined) return { status: "found", version: "", detail: "" };
  const output = await ask(version.argv, deps);
  const told = new RegExp(version.pattern).exec(output ?? "")?.[1];
  if (told === undefined)
    return { status: "broken", version: "", detail: `${version.argv.join(" ")} did not tell its version` };
  const isOld = minimumVersion !== undefined && told < minimumVersion;
  return {
    status: isOld ? "broken" : "found",
    version: told,
    detail: isOld ? `it is older than ${minimumVersion}` : "",
  };
}

/** What a container really boots and runs with. */
async function tryRuntime({ runtime, signal, required }: DoctorDeps): Promise<PartReport> {
  const report = {
    name: `runtime ${runtime.kind}`,
    required: required.has("runtime"),
    without: "no sandbox runs here",
  };
  try {
    const { version } = await runtime.open({ signal });
    return { ...report, status: "found", version, detail: "", remedy: "" };
  } catch (thrown) {
    const error = SandboxError.from(thrown);
    const status = hasReason(error, "COMMAND_MISSING") ? "missing" : "broken";
    return { ...report, status, version: "", detail: error.message, remedy: error.remedy };
  }
}

async function ask([command, ...args]: readonly [string, ...string[]], deps: DoctorDeps): Promise<string | null> {
  try {
    const { exitCode, stdout } = await deps.runner.run(
      { command, args, deadlineMs: PROBE_MS },
      { signal: deps.signal },
    );
    return exitCode === 0 ? stdout.trim() : null;
  } catch {
    return null;
  }
}

async function isInPath(command: string, path: string): Promise<boolean> {
  for (const directory of path.split(delimiter)) {
    if (await isThere(join(directory, command), constants.X_OK)) return true;
  }
  return false;
}

async function isThere(path: string, mode = constants.F_OK): Promise<boolean> {
  return await access(path, mode).then(
    () => true,
    () => false,
  );
}
