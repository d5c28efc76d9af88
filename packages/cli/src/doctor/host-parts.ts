import { hasReason } from "@turnbox/core";
import { runHostProgram } from "../service/host-program.ts";
import type { Surroundings } from "../surroundings.ts";
import type { Part, PartStatus } from "./part.ts";

const DOCTOR_MS = 60_000;

/** What the sandbox-host's own doctor found on this machine. */
export interface HostReport {
  readonly parts: readonly Part[];
  /** The host's configuration, key by key, secrets left out; empty if it could not be asked. */
  readonly config: readonly ConfigEntry[];
}

/** Asks the sandbox-host's program; one that is missing or does not answer is itself a part that is not well. */
export async function examineHost(
  surroundings: Surroundings,
  options: { readonly signal: AbortSignal },
): Promise<HostReport> {
  const args = ["doctor", "--json", "--home", surroundings.environment.home];
  try {
    const { stdout, stderr } = await runHostProgram(surroundings, { args, deadlineMs: DOCTOR_MS }, options);
    return (
      parseHostReport(stdout) ?? {
        config: [],
        parts: [unwell("broken", `its doctor did not answer: ${firstError(stderr)}`)],
      }
    );
  } catch (thrown) {
    options.signal.throwIfAborted();
    const detail = thrown instanceof Error ? thrown.message : "";
    return { config: [], parts: [unwell(hasReason(thrown, "COMMAND_MISSING") ? "missing" : "broken", detail)] };
  }
}

/** A stack trace begins with what was thrown; everything after it is for its makers. */
const firstError = (stderr: string): string =>
  (stderr.split("\n").find((line) => /error|^[A-Z_]+: /i.test(line)) ?? stderr.trim()).slice(0, 300);

const unwell = (status: PartStatus, detail: string): Part => ({
  name: "sandbox-host",
  status,
  version: "",
  required: true,
  detail,
  without: "nothing of the machine's parts can be examined, and no sandbox runs here",
  remedy: "install @turnbox/sandbox-host beside this command line, with Node 24 or newer",
});

/** The report of `turnbox-sandbox-host doctor --json`, or undefined if the text is none. */
export function parseHostReport(text: string): HostReport | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isRecord(value) || !Array.isArray(value["parts"])) return undefined;
  const parts = value["parts"].filter(isRecord).map(toPart);
  const config = Array.isArray(value["config"]) ? value["config"].filter(isRecord).map(toConfigEntry) : [];
  return { parts, config };
}

/** A setting as it would be used, and where it comes from: default, file or env. */
export interface ConfigEntry {
  readonly key: string;
  readonly value: unknown;
  readonly source: string;
}

const toConfigEntry = ({ key, value, source }: Readonly<Record<string, unknown>>): ConfigEntry => ({
  key: String(key),
  value: value ?? null,
  source: String(source),
});

/** The settings that are not defaults; the others are in `--json`. */
export const formatConfig = (config: readonly ConfigEntry[]): string =>
  config
    .filter(({ source }) => source !== "default")
    .map(({ key, value, source }) => `${key} = ${JSON.stringify(value)} (${source})\n`)
    .join("");

function toPart(raw: Readonly<Record<string, unknown>>): Part {
  const text = (key: string): string => (typeof raw[key] === "string" ? raw[key] : "");
  const status = text("status");
  return {
    name: text("name"),
    status: status === "found" || status === "missing" ? status : "broken",
    version: text("version"),
    required: raw["required"] === true,
    detail: text("detail"),
    without: text("without"),
    remedy: text("remedy"),
  };
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null;
