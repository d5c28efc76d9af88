import path from "node:path";
import { Secret } from "../secret/secret.ts";
import { parseBytes, parseDurationMs } from "./quantity.ts";

/** What a source offers for a setting: text from the environment, or a JSON value from the file. */
export type RawValue =
  | { readonly from: "env"; readonly text: string }
  | { readonly from: "file"; readonly json: unknown };

/** One key of a configuration. Made by the functions below. */
export interface Setting<T> {
  readonly env: `TURNBOX_${string}`;
  readonly description: string;
  readonly default: T;
  /** The rule in words, for messages: "a whole number from 1 to 100". */
  readonly rule: string;
  /** The value, or undefined where the rule is broken. */
  readonly parse: (raw: RawValue) => T | undefined;
}

/** What every setting says about itself. A default of null means: absent unless given. */
export interface SettingSpec<D> {
  readonly env: `TURNBOX_${string}`;
  readonly description: string;
  readonly default: D;
}

interface Range {
  readonly min: number;
  readonly max: number;
}

const within = (value: number | undefined, { min, max }: Range): number | undefined =>
  value !== undefined && value >= min && value <= max ? value : undefined;

const numberOf = (raw: RawValue): number | undefined => {
  const value = raw.from === "file" ? raw.json : raw.text.trim() === "" ? undefined : Number(raw.text);
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
};

const textOf = (raw: RawValue): string | undefined => {
  const value = raw.from === "file" ? raw.json : raw.text;
  return typeof value === "string" ? value : undefined;
};

function setting<T, D extends T | null>(
  spec: SettingSpec<D>,
  rule: string,
  parse: (raw: RawValue) => T | undefined,
): Setting<T | D> {
  return { env: spec.env, description: spec.description, default: spec.default, rule, parse };
}

/** A whole number. */
export function int<D extends number | null>(spec: SettingSpec<D> & Range): Setting<number | D> {
  return setting<number, D>(spec, `must be a whole number from ${spec.min} to ${spec.max}`, (raw) => {
    const value = within(numberOf(raw), spec);
    return Number.isSafeInteger(value) ? value : undefined;
  });
}

/** A share between 0 and 1. */
export function fraction<D extends number | null>(spec: SettingSpec<D> & Partial<Range>): Setting<number | D> {
  const range = { min: spec.min ?? 0, max: spec.max ?? 1 };
  return setting<number, D>(spec, `must be a number from ${range.min} to ${range.max}`, (raw) =>
    within(numberOf(raw), range),
  );
}

/** A size in bytes: a number, or text with a unit such as "20GiB" or "500MB". */
export function bytes<D extends number | null>(spec: SettingSpec<D> & Partial<Range>): Setting<number | D> {
  const range = { min: spec.min ?? 0, max: spec.max ?? Number.MAX_SAFE_INTEGER };
  return setting<number, D>(spec, `must be a size such as "20GiB", from ${range.min} to ${range.max} bytes`, (raw) =>
    within(parseBytes(raw.from === "env" ? raw.text : raw.json), range),
  );
}

/** A time span in milliseconds: text with a unit such as "250ms", "30s", "5m", "2h", "1d". A number without one is refused. */
export function durationMs<D extends number | null>(spec: SettingSpec<D> & Partial<Range>): Setting<number | D> {
  const range = { min: spec.min ?? 0, max: spec.max ?? 365 * 86_400_000 };
  return setting<number, D>(
    spec,
    `must be a duration with its unit such as "30s" or "250ms", from ${range.min} to ${range.max} ms`,
    (raw) => within(parseDurationMs(raw.from === "env" ? raw.text : raw.json), range),
  );
}

/** One of a few words. */
export function choice<const V extends string, D extends V | null>(
  spec: SettingSpec<D> & { readonly values: readonly V[] },
): Setting<V | D> {
  return setting<V, D>(spec, `must be one of ${spec.values.join(", ")}`, (raw) => {
    const text = textOf(raw);
    return spec.values.find((value) => value === text);
  });
}

/** Text of at most 4,096 characters without control characters. */
export function text<D extends string | null>(
  spec: SettingSpec<D> & { readonly pattern?: RegExp },
): Setting<string | D> {
  const rule = spec.pattern === undefined ? "must be text" : `must be text that matches ${spec.pattern.source}`;
  return setting<string, D>(spec, rule, (raw) => {
    const value = textOf(raw);
    return value !== undefined && isPlain(value) && (spec.pattern?.test(value) ?? true) ? value : undefined;
  });
}

/** Several texts: a JSON array, or text with commas between. */
export function textList(spec: SettingSpec<readonly string[]>): Setting<readonly string[]> {
  return setting<readonly string[], readonly string[]>(spec, "must be a list of texts", (raw) => {
    const list: unknown = raw.from === "file" ? raw.json : splitList(raw.text);
    return Array.isArray(list) && list.every((item) => typeof item === "string" && item !== "" && isPlain(item))
      ? Object.freeze([...(list as string[])])
      : undefined;
  });
}

/** An absolute path. */
export function filePath<D extends string | null>(spec: SettingSpec<D>): Setting<string | D> {
  return setting<string, D>(spec, "must be an absolute path", (raw) => {
    const value = textOf(raw);
    return value !== undefined && isPlain(value) && path.isAbsolute(value) ? path.normalize(value) : undefined;
  });
}

const FLAGS: ReadonlyMap<unknown, boolean> = new Map<unknown, boolean>([
  ["true", true],
  ["1", true],
  ["false", false],
  ["0", false],
]);

/** true or false; 1 and 0 in the environment. */
export function flag<D extends boolean | null>(spec: SettingSpec<D>): Setting<boolean | D> {
  return setting<boolean, D>(spec, "must be true or false", (raw) =>
    raw.from === "env" ? FLAGS.get(raw.text) : typeof raw.json === "boolean" ? raw.json : undefined,
  );
}

/** Text that never prints. It has no default but absence. */
export function secret(spec: SettingSpec<null>): Setting<Secret | null> {
  return setting<Secret, null>(spec, "must be text", (raw) => {
    const value = textOf(raw);
    return value === undefined || value === "" ? undefined : new Secret(value);
  });
}

const isPlain = (value: string): boolean => value.length <= 4096 && !/\p{Cc}/u.test(value);

const splitList = (value: string): string[] => (value === "" ? [] : value.split(",").map((item) => item.trim()));
