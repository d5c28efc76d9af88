import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import { invalidArgument, parseSessionId } from "@turnbox/core";
import type { PageRequest } from "@turnbox/protocol/turnbox/common/v1/paging_pb";
import type { Labels } from "../control/sandbox-control.ts";

const LABEL_KEY = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/;
const MAX_LABELS = 64;
const MAX_LABEL_BYTES = 255;
const MAX_KEY_BYTES = 256;
const MAX_ENV = 256;
const MAX_ENV_BYTES = 128 * 1024;
const DEFAULT_PAGE_SIZE = 100;
const MAX_PAGE_SIZE = 1000;
const TEMPLATE = /^[a-z0-9][a-z0-9._-]{0,62}(@[A-Za-z0-9][A-Za-z0-9._-]{0,127})?$/;

/** Labels as the contract allows them, in an object that has nothing but them. */
export function parseLabels(field: string, labels: Readonly<Record<string, string>>): Labels {
  const entries = Object.entries(labels);
  if (entries.length > MAX_LABELS) throw invalidArgument(field, `must have at most ${MAX_LABELS} labels`);
  for (const [key, value] of entries) {
    if (!LABEL_KEY.test(key)) {
      const rule = "keys must be 1 to 63 letters, digits, dots, underscores, slashes or hyphens";
      throw invalidArgument(field, `${rule}, beginning with a letter or digit`);
    }
    if (Buffer.byteLength(value) > MAX_LABEL_BYTES) {
      throw invalidArgument(field, `values must have at most ${MAX_LABEL_BYTES} bytes`);
    }
  }
  return Object.fromEntries(entries);
}

/** Environment variables. Neither names nor values appear in the message: they may be secrets. */
export function parseEnv(field: string, env: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const entries = Object.entries(env);
  if (entries.length > MAX_ENV) throw invalidArgument(field, `must have at most ${MAX_ENV} variables`);
  for (const [key, value] of entries) {
    if (!/^[A-Za-z_][A-Za-z0-9_]{0,255}$/.test(key)) {
      throw invalidArgument(field, "names must be letters, digits and underscores, not beginning with a digit");
    }
    if (value.includes("\0")) throw invalidArgument(field, "values must not contain NUL");
    if (Buffer.byteLength(value) > MAX_ENV_BYTES)
      throw invalidArgument(field, `values must have at most ${MAX_ENV_BYTES} bytes`);
  }
  return Object.fromEntries(entries);
}

/** Key of an idempotent request; empty means none. */
export function parseKey(key: string): string {
  if (Buffer.byteLength(key) > MAX_KEY_BYTES) {
    throw invalidArgument("idempotency_key", `must have at most ${MAX_KEY_BYTES} bytes`);
  }
  return key;
}

/** A name by the rule of session ids; empty means none. */
export function parseName(name: string): string | undefined {
  return name === "" ? undefined : parseSessionId(name, "name");
}

/** Empty means the default template. */
export function parseTemplate(template: string): string {
  if (template !== "" && !TEMPLATE.test(template)) {
    throw invalidArgument(
      "template",
      "must be name or name@version, the name of lower-case letters, digits, dot, underscore, hyphen",
    );
  }
  return template;
}

/** A 64-bit number of the wire as one that counts exactly; 0 means absent. */
export function parseSize(field: string, value: bigint): number | undefined {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw invalidArgument(field, "must be at most 9007199254740991");
  return value === 0n ? undefined : Number(value);
}

export function parsePositiveMs(field: string, duration: Duration | undefined): number | undefined {
  if (duration === undefined) return undefined;
  const value = durationMs(duration);
  if (!(value > 0) || !Number.isSafeInteger(Math.ceil(value)))
    throw invalidArgument(field, "must be more than nothing");
  return value;
}

export function parsePage(page: PageRequest | undefined): { readonly pageSize: number; readonly pageToken: string } {
  const pageSize = page?.pageSize ?? 0;
  if (pageSize > MAX_PAGE_SIZE) throw invalidArgument("page.page_size", `must be at most ${MAX_PAGE_SIZE}`);
  return { pageSize: pageSize === 0 ? DEFAULT_PAGE_SIZE : pageSize, pageToken: page?.pageToken ?? "" };
}

/** An enum value that this server knows; 0 is the default that the contract names. */
export function parseEnum<Value>(field: string, wire: number, known: ReadonlyMap<number, Value>): Value {
  const value = known.get(wire);
  if (value === undefined) throw invalidArgument(field, `has the unknown value ${wire}`);
  return value;
}
