import { ask } from "./ask.ts";
import type { Finding, ProbeDeps } from "./finding.ts";
import { findCommand, isThere } from "./find-command.ts";
import { isAtLeast } from "./is-at-least.ts";
import { isStatic } from "./is-static.ts";
import { packageRemedy } from "./machine.ts";
import type { SystemPart, VersionQuestion } from "./system-parts.ts";
import { tryPart } from "./try-part.ts";

const QUESTION_MS = 10_000;

/** Looks for a part, then tries it. What it takes for a part to be there is the same for the bootstrap. */
export async function probePart(part: SystemPart, deps: ProbeDeps): Promise<Finding> {
  const instead = await findInstead(part, deps);
  const found = instead ?? (await findPackage(part, deps));
  if (found.status !== "found") return found;
  return await tryPart(part, { found, by: instead === undefined ? "package" : "alternative" }, deps);
}

async function findInstead({ insteadOf }: SystemPart, deps: ProbeDeps): Promise<Finding | undefined> {
  if (insteadOf === undefined) return undefined;
  const files = await Promise.all(insteadOf.commands.map((command) => findCommand(command, deps.path)));
  if (files.includes(undefined)) return undefined;
  const answer = await ask({ argv: insteadOf.argv, deadlineMs: QUESTION_MS }, deps);
  if (answer.kind !== "ended" || answer.exitCode !== 0 || !answer.stdout.includes(insteadOf.prints)) return undefined;
  return { status: "found", version: answer.stdout.split("\n")[0] ?? "", detail: insteadOf.name, remedy: "" };
}

async function findPackage(part: SystemPart, deps: ProbeDeps): Promise<Finding> {
  const byPackage = { version: "", remedy: packageRemedy(part, deps.machine) };
  const files = await Promise.all(part.commands.map((command) => findCommand(command, deps.path)));
  const absent = part.commands.filter((_, index) => files[index] === undefined);
  if (absent.length > 0) return { ...byPackage, status: "missing", detail: `${absent.join(", ")} not found` };
  if (part.static === true && !(await isStatic(files[0] ?? ""))) {
    return { ...byPackage, status: "broken", detail: `${part.commands[0]} is not statically linked` };
  }
  const version = part.version === undefined ? "" : await askVersion(part.version, deps);
  const fault = versionFault(part, version);
  if (fault !== undefined) return { ...byPackage, status: "broken", version: version ?? "", detail: fault };
  return await findDevices(part, version ?? "");
}

function versionFault({ version: question, minimumVersion }: SystemPart, version: string | undefined) {
  if (version === undefined) return `${question?.argv.join(" ") ?? ""} tells no version`;
  if (minimumVersion === undefined || isAtLeast(version, minimumVersion)) return undefined;
  return `version ${version} is older than ${minimumVersion}`;
}

/** No package brings a device. */
async function findDevices({ devices = [], deviceRemedy = "" }: SystemPart, version: string): Promise<Finding> {
  for (const device of devices) {
    if (!(await isThere(device))) {
      return { status: "broken", version, detail: `${device} does not exist`, remedy: deviceRemedy };
    }
  }
  return { status: "found", version, detail: "", remedy: "" };
}

/** The version, empty where none is told and none has to be, undefined where the program does not tell its own. */
async function askVersion({ argv, pattern, optional }: VersionQuestion, deps: ProbeDeps): Promise<string | undefined> {
  const answer = await ask({ argv, deadlineMs: QUESTION_MS }, deps);
  const text = answer.kind === "ended" ? answer.stdout || answer.stderr : "";
  return new RegExp(pattern).exec(text)?.[1] ?? (optional === true ? "" : undefined);
}
