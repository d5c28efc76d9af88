import { Secret } from "@turnbox/client";
import { invalidArgument, parseVariables } from "@turnbox/client/internal";
import { fieldsOf, parseBoolean, parseChoice, parseDirectory, parseText, parseTexts, type RawFields } from "./field.ts";
import type { RawProfile } from "./raw-profile.ts";
import { resolveDaytona } from "./resolve-daytona.ts";
import {
  type Backend,
  DEFAULT_BACKEND,
  isBackend,
  type NetworkPolicy,
  PERSISTENCE_MODES,
  type Resolved,
  SYNC_MODES,
} from "./resolved.ts";

const FIELDS: readonly (keyof RawProfile)[] = [
  "profile",
  "backend",
  "syncMode",
  "persistence",
  "runtimeRootDir",
  "destroyOnStop",
  "env",
  "secretEnv",
  "network",
  "daytona",
];

/**
 * The profile that counts. Each field is taken from `raw`, else from `defaults`, else from the backend's own default;
 * maps (`env`, `secretEnv`, `network`, `daytona`) are taken from both, entry by entry. Every refusal is INVALID_ARGUMENT and names the field and its rule.
 */
export function resolveProfile(raw: RawProfile, defaults: RawProfile = {}): Resolved {
  const own = fieldsOf("profile", raw, FIELDS);
  const usual = fieldsOf("defaults", defaults, FIELDS);
  const given: RawFields = { ...usual, ...own };
  const merged = (field: keyof RawProfile): RawFields => ({ ...mapOf(field, usual), ...mapOf(field, own) });
  const backend = parseBackend(given["backend"]);
  const isLocal = backend === "local";
  const persistence = parseChoice("persistence", given["persistence"] ?? "transient", PERSISTENCE_MODES);
  const usualSync = isLocal ? "none" : "session-bidirectional";
  const secretEnv = parseSecrets(merged("secretEnv"));
  const env = parseEnv("env", merged("env"));
  const twice = Object.keys(env).some((name) => Object.hasOwn(secretEnv, name));
  if (twice) throw invalidArgument("secretEnv", "must have no variable that env has too");
  return {
    profile: parseText("profile", given["profile"] ?? "default", { maxBytes: 128, empty: "refused" }),
    backend,
    syncMode: parseChoice("syncMode", given["syncMode"] ?? usualSync, SYNC_MODES),
    persistence,
    runtimeRootDir: parseRoot(given["runtimeRootDir"], backend),
    destroyOnStop: parseBoolean("destroyOnStop", given["destroyOnStop"] ?? persistence !== "reuse"),
    env,
    secretEnv,
    network: resolveNetwork(merged("network"), isLocal ? "open" : "closed"),
    daytona: resolveDaytona(backend === "daytona" ? merged("daytona") : own["daytona"], backend),
  };
}

function mapOf(field: keyof RawProfile, fields: RawFields): RawFields {
  const value = fields[field] ?? {};
  if (typeof value !== "object" || Array.isArray(value)) throw invalidArgument(field, "must be an object");
  return value as RawFields;
}

function parseBackend(value: unknown): Backend {
  const backend = value ?? DEFAULT_BACKEND;
  if (isBackend(backend)) return backend;
  throw invalidArgument("backend", "must be local, turnbox, daytona, e2b, or a name of your own that begins with x-");
}

/** A local runtime is the workspace itself. */
function parseRoot(value: unknown, backend: Backend): string {
  const directory = parseDirectory("runtimeRootDir", value ?? "");
  if (backend === "local" && directory !== "")
    throw invalidArgument("runtimeRootDir", "must be empty where backend is local");
  return directory;
}

function parseEnv(field: string, value: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  const isText = (entry: [string, unknown]): entry is [string, string] => typeof entry[1] === "string";
  const entries = Object.entries(value);
  if (!entries.every(isText)) throw invalidArgument(field, "must have strings as values");
  return parseVariables(field, Object.fromEntries(entries));
}

function parseSecrets(value: Readonly<Record<string, unknown>>): Readonly<Record<string, Secret>> {
  const plain = Object.entries(value).map(([name, one]) => [name, one instanceof Secret ? one.reveal() : one]);
  const checked = parseEnv("secretEnv", Object.fromEntries(plain) as Readonly<Record<string, unknown>>);
  return Object.fromEntries(Object.entries(checked).map(([name, one]) => [name, new Secret(one)]));
}

const NETWORK_FIELDS: readonly (keyof NetworkPolicy)[] = [
  "allowPublicIngress",
  "allowOutbound",
  "allowList",
  "denyList",
  "required",
];
const MAX_RULES = 1024;

/** The policy with its defaults; `usual` is what holds if nothing is said. */
export function resolveNetwork(value: unknown, usual: "open" | "closed"): NetworkPolicy {
  const given = value === undefined ? {} : fieldsOf("network", value, NETWORK_FIELDS);
  const isOpen = usual === "open";
  return {
    allowPublicIngress: parseBoolean("network.allowPublicIngress", given["allowPublicIngress"] ?? isOpen),
    allowOutbound: parseBoolean("network.allowOutbound", given["allowOutbound"] ?? isOpen),
    allowList: parseRules("network.allowList", given["allowList"]),
    denyList: parseRules("network.denyList", given["denyList"]),
    required: parseBoolean("network.required", given["required"] ?? false),
  };
}

function parseRules(field: string, value: unknown): readonly string[] {
  const rules = parseTexts(field, value ?? []);
  if (rules.length > MAX_RULES) throw invalidArgument(field, `must have at most ${MAX_RULES} rules`);
  return rules;
}
