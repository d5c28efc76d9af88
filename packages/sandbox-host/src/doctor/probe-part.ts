import { ask } from "./ask.ts";
import type { Finding, ProbeDeps } from "./finding.ts";
import { findCommand, isStatic, isThere } from "./find-command.ts";
import { packageRemedy, ROOT_REMEDY } from "./machine.ts";
import type { SystemPart, VersionQuestion } from "./system-parts.ts";

const QUESTION_MS = 10_000;
/** A daemon that takes longer than this for a short answer hangs. */
const TRIAL_MS = 5000;

/** Looks for a part, then tries it. The bootstrap uses the same conditions for a part to be there. */
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

/** No package contains a device, so a missing one has a remedy of its own. */
async function findDevices({ devices = [], deviceRemedy = "" }: SystemPart, version: string): Promise<Finding> {
  for (const device of devices) {
    if (!(await isThere(device))) {
      return { status: "broken", version, detail: `${device} does not exist`, remedy: deviceRemedy };
    }
  }
  return { status: "found", version, detail: "", remedy: "" };
}

/** The version; empty if the program prints none and need not, undefined if it prints none and has to. */
async function askVersion({ argv, pattern, optional }: VersionQuestion, deps: ProbeDeps): Promise<string | undefined> {
  const answer = await ask({ argv, deadlineMs: QUESTION_MS }, deps);
  const text = answer.kind === "ended" ? answer.stdout || answer.stderr : "";
  return new RegExp(pattern).exec(text)?.[1] ?? (optional === true ? "" : undefined);
}

/** Whether `version` is at least `minimum`, number by number: 1.10 is newer than 1.9. */
function isAtLeast(version: string, minimum: string): boolean {
  const [own, wanted] = [numbersOf(version), numbersOf(minimum)];
  for (const [index, number] of wanted.entries()) {
    const difference = (own[index] ?? 0) - number;
    if (difference !== 0) return difference > 0;
  }
  return true;
}

const numbersOf = (version: string): readonly number[] => (version.match(/\d+/g) ?? []).map(Number);

interface Candidate {
  readonly found: Finding;
  /** Which of the two does the part's work on this machine. */
  readonly by: "package" | "alternative";
}

/**
 * Finds out whether a part that is there also works. Nothing is started for it: a daemon that the host starts when it needs
 * it may be not running.
 */
async function tryPart({ trial, insteadOf }: SystemPart, { found, by }: Candidate, deps: ProbeDeps): Promise<Finding> {
  if (trial === undefined) return found;
  const what = trial.argv.join(" ");
  const broken = (detail: string): Finding => {
    const ofPart = by === "alternative" ? (insteadOf?.trialRemedy ?? trial.remedy) : trial.remedy;
    return { ...found, status: "broken", detail, remedy: deps.machine.user === "root" ? ofPart : ROOT_REMEDY };
  };
  const answer = await ask({ argv: trial.argv, deadlineMs: TRIAL_MS }, deps);
  if (answer.kind === "silent") return broken(`${what} did not answer within ${TRIAL_MS / 1000} s`);
  if (answer.kind === "unrunnable") return broken(`${what} cannot be run`);
  if (answer.exitCode === 0) return found;
  if (by === "package" && new RegExp(trial.startable).test(answer.stderr)) {
    return { ...found, detail: "not running; the host starts it" };
  }
  return broken(`${what} failed: ${answer.stderr.split("\n")[0] ?? ""}`);
}
