import { SandboxError } from "../error/sandbox-error.ts";
import type { RawValue, Setting } from "./setting.ts";

/** All keys of one service's configuration, by their names in config.json. */
export type ConfigTable = Readonly<Record<string, Setting<unknown>>>;

/** The values of a table. */
export type ConfigOf<T extends ConfigTable> = {
  readonly [K in keyof T]: T[K] extends Setting<infer V> ? V : never;
};

export interface ConfigSources {
  /** The parsed config.json; undefined where there is none. */
  readonly file?: unknown;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Keys of config.json that other parts of Turnbox read. */
  readonly foreignKeys?: readonly string[];
  /** TURNBOX_* variables that other parts of Turnbox read. */
  readonly foreignEnv?: readonly string[];
}

/** Where a value came from, for people. */
export interface ConfigEntry {
  readonly key: string;
  readonly env: string;
  /** As JSON would show it; secrets show as `[redacted]`, an absent value as null. */
  readonly value: unknown;
  readonly source: "default" | "file" | "env";
  readonly description: string;
}

interface Resolved {
  readonly key: string;
  readonly value: unknown;
  readonly source: ConfigEntry["source"];
}

/**
 * Reads a configuration: the environment wins over the file, the file over the default. Unknown keys and variables are
 * refused. Every problem is named in the one `CONFIG_INVALID` that is thrown. The answer is frozen.
 */
export function parseConfig<const T extends ConfigTable>(table: T, sources: ConfigSources): ConfigOf<T> {
  const values = Object.fromEntries(resolve(table, sources).map(({ key, value }) => [key, value]));
  return Object.freeze(values) as ConfigOf<T>;
}

/** The same reading, told key by key in the order of the table. Throws what `parseConfig` throws. */
export function describeConfig(table: ConfigTable, sources: ConfigSources): readonly ConfigEntry[] {
  return resolve(table, sources).map(({ key, value, source }) => ({
    key,
    env: table[key]?.env ?? "",
    value: JSON.parse(JSON.stringify(value)) as unknown,
    source,
    description: table[key]?.description ?? "",
  }));
}

function resolve(table: ConfigTable, sources: ConfigSources): readonly Resolved[] {
  const problems: string[] = [];
  const file = readFileObject(sources.file, problems);
  problems.push(...unknownKeys(table, file, sources), ...unknownVariables(table, sources));
  const resolved = Object.entries(table).map(([key, setting]) => {
    const raw = pick(setting.env, { key, file, env: sources.env });
    if (raw === undefined) return { key, value: setting.default, source: "default" as const };
    const value = setting.parse(raw);
    if (value === undefined) problems.push(`${raw.from === "env" ? setting.env : key} ${setting.rule}`);
    return { key, value, source: raw.from };
  });
  if (problems.length > 0) {
    throw new SandboxError("CONFIG_INVALID", problems.join("; "), { metadata: { problems: String(problems.length) } });
  }
  return resolved;
}

function readFileObject(file: unknown, problems: string[]): ReadonlyMap<string, unknown> {
  if (file === undefined) return new Map();
  if (typeof file !== "object" || file === null || Array.isArray(file)) {
    problems.push("config.json must hold a JSON object");
    return new Map();
  }
  return new Map(Object.entries(file));
}

function unknownKeys(table: ConfigTable, file: ReadonlyMap<string, unknown>, sources: ConfigSources): string[] {
  return [...file.keys()]
    .filter((key) => !Object.hasOwn(table, key) && !(sources.foreignKeys ?? []).includes(key))
    .map((key) => `config.json has the unknown key ${JSON.stringify(key)}`);
}

function unknownVariables(table: ConfigTable, sources: ConfigSources): string[] {
  const known = new Set<string>([...Object.values(table).map((setting) => setting.env), ...(sources.foreignEnv ?? [])]);
  return Object.keys(sources.env)
    .filter((name) => name.startsWith("TURNBOX_") && sources.env[name] !== undefined && !known.has(name))
    .map((name) => `${name} is not a known variable`);
}

interface Sources {
  readonly key: string;
  readonly file: ReadonlyMap<string, unknown>;
  readonly env: ConfigSources["env"];
}

/** An empty variable counts as not set, as shells and service files make them. */
function pick(name: string, { key, file, env }: Sources): RawValue | undefined {
  const text = env[name];
  if (text !== undefined && text !== "") return { from: "env", text };
  return file.has(key) ? { from: "file", json: file.get(key) } : undefined;
}
