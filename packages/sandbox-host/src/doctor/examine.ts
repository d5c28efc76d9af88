import { type CommandRunner, type ConfigEntry, hasReason, SandboxError } from "@turnbox/core";
import type { Runtime } from "../runtime/runtime.ts";
import type { Finding } from "./finding.ts";
import { type Machine, ROOT_REMEDY, readMachine } from "./machine.ts";
import { probePart } from "./probe-part.ts";
import { readSystemParts, type SystemPart } from "./system-parts.ts";

/** The state of one part, as `turnbox doctor` prints it. */
export interface PartReport extends Finding {
  readonly name: string;
  readonly required: boolean;
  readonly without: string;
}

export interface DoctorReport {
  readonly parts: readonly PartReport[];
  readonly config: readonly ConfigEntry[];
}

export interface DoctorDeps {
  readonly runner: CommandRunner;
  readonly path: string;
  /** The runtime of the configuration. It is tried, not searched for. */
  readonly runtime: Runtime;
  /** Parts without which the configured host does not start. */
  readonly required: ReadonlySet<string>;
  readonly config: readonly ConfigEntry[];
  readonly signal: AbortSignal;
  /** Default is this machine. */
  readonly machine?: Machine;
  /** Default is those of `system-parts.json`. */
  readonly systemParts?: readonly SystemPart[];
}

/** Tries every part of the machine that the host uses. */
export async function examine(deps: DoctorDeps): Promise<DoctorReport> {
  const machine = deps.machine ?? (await readMachine());
  const systemParts = deps.systemParts ?? (await readSystemParts());
  const parts = await Promise.all(
    systemParts.map(async (part): Promise<PartReport> => {
      const finding = await probePart(part, { ...deps, machine });
      return { name: part.name, required: deps.required.has(part.name), without: part.without, ...finding };
    }),
  );
  return { parts: [examineUser(machine, deps), ...parts, await tryRuntime(machine, deps)], config: deps.config };
}

/** Datasets, mounts and gVisor need root. */
function examineUser({ user }: Machine, { required }: DoctorDeps): PartReport {
  const part = {
    name: "root",
    required: required.has("zfs") || required.has("runsc"),
    version: "",
    without: "the storage zfs and the runtime gvisor do not work",
  };
  if (user === "root") return { ...part, status: "found", detail: "", remedy: "" };
  return { ...part, status: "broken", detail: "this user is not root", remedy: ROOT_REMEDY };
}

/** Tries the runtime that containers are booted with. */
async function tryRuntime({ user }: Machine, { runtime, signal, required }: DoctorDeps): Promise<PartReport> {
  const report = {
    name: `runtime ${runtime.kind}`,
    required: required.has("runtime"),
    version: "",
    without: "no sandbox runs here",
  };
  if (runtime.kind === "gvisor" && user !== "root") {
    return { ...report, status: "broken", detail: "it was not tried, since it needs root", remedy: ROOT_REMEDY };
  }
  try {
    const { version } = await runtime.open({ signal });
    return { ...report, status: "found", version, detail: "", remedy: "" };
  } catch (thrown) {
    signal.throwIfAborted();
    const error = SandboxError.from(thrown);
    const status = hasReason(error, "COMMAND_MISSING") ? "missing" : "broken";
    return { ...report, status, detail: error.message, remedy: runtimeRemedy(error) };
  }
}

/** The remedy of an error may be to run doctor, which is what the user does already. */
function runtimeRemedy({ remedy }: SandboxError): string {
  if (!remedy.includes("turnbox doctor")) return remedy;
  return "see to the parts above that are not found; where all are there, the cause is in what the runtime says here";
}
