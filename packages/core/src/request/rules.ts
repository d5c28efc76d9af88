import { invalidArgument } from "../error/sandbox-error.ts";

/** The rules of the contract that both services hold requests to. Each refusal names the field and the rule. */

const LABEL_KEY = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/;
const MAX_LABELS = 64;
const MAX_LABEL_BYTES = 255;
const MAX_VARIABLES = 256;
const MAX_VARIABLE_BYTES = 64 * 1024;
/** Of names and values together. */
const MAX_ENVIRONMENT_BYTES = 256 * 1024;
const MAX_KEY_BYTES = 256;
const CPUS = { min: 0.01, max: 1024 };
const MIN_MEMORY_BYTES = 64 * 1024 * 1024;
/** The kernel has no pid above the upper bound, and refuses a limit beyond it. */
const PIDS = { min: 16, max: 4_194_304 };

/** What is not cannot be written in UTF-8, to a mark of a dataset for example. */
const WELL_FORMED = "must be Unicode without lone surrogates";

type TextMap = Readonly<Record<string, string>>;

/** Labels, in an object that has nothing but them. */
export function parseLabels(field: string, labels: TextMap): TextMap {
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
    if (!value.isWellFormed()) throw invalidArgument(field, `values ${WELL_FORMED}`);
  }
  return Object.fromEntries(entries);
}

/** Environment variables. Neither names nor values appear in the message: they may be secrets. */
export function parseVariables(field: string, env: TextMap): TextMap {
  const entries = Object.entries(env);
  if (entries.length > MAX_VARIABLES) throw invalidArgument(field, `must have at most ${MAX_VARIABLES} variables`);
  for (const [name, value] of entries) {
    if (!/^[A-Za-z_][A-Za-z0-9_]{0,255}$/.test(name)) {
      const rule = "names must be letters, digits and underscores, not beginning with a digit";
      throw invalidArgument(field, `${rule}, at most 256 characters`);
    }
    if (value.includes("\0") || Buffer.byteLength(value) > MAX_VARIABLE_BYTES) {
      throw invalidArgument(field, `values must have at most ${MAX_VARIABLE_BYTES} bytes and no NUL`);
    }
  }
  if (environmentBytes(env) > MAX_ENVIRONMENT_BYTES) {
    throw invalidArgument(field, `names and values must have at most ${MAX_ENVIRONMENT_BYTES} bytes together`);
  }
  return Object.fromEntries(entries);
}

/** What names and values take together. */
export function environmentBytes(env: TextMap): number {
  return Object.entries(env).reduce((sum, entry) => sum + Buffer.byteLength(entry[0]) + Buffer.byteLength(entry[1]), 0);
}

/** Key of an idempotent request; empty means none. */
export function parseKey(field: string, key: string): string {
  if (Buffer.byteLength(key) > MAX_KEY_BYTES) throw invalidArgument(field, `must have at most ${MAX_KEY_BYTES} bytes`);
  if (!key.isWellFormed()) throw invalidArgument(field, WELL_FORMED);
  return key;
}

/** A 64-bit number of the wire as one that counts exactly; 0 means absent. */
export function parseSize(field: string, value: bigint): number | undefined {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw invalidArgument(field, "must be at most 9007199254740991");
  return value === 0n ? undefined : Number(value);
}

/** An enum value that this server knows; 0 is the default that the contract names. */
export function parseEnum<Value>(field: string, wire: number, known: ReadonlyMap<number, Value>): Value {
  const value = known.get(wire);
  if (value === undefined) throw invalidArgument(field, `has the unknown value ${wire}`);
  return value;
}

/** Bounds of a sandbox; absent means the host's default. */
export interface Resources {
  readonly cpus?: number;
  readonly memoryBytes?: number;
  readonly pids?: number;
}

/** Resources as the wire has them, 0 meaning absent. Less than a sandbox needs to live is refused. */
export function parseResources(
  wire: { readonly cpus: number; readonly memoryBytes: bigint; readonly pids: number } | undefined,
): Resources {
  if (wire === undefined) return {};
  const { cpus, pids } = wire;
  const memoryBytes = parseSize("resources.memory_bytes", wire.memoryBytes);
  if (cpus !== 0 && !(cpus >= CPUS.min && cpus <= CPUS.max)) {
    throw invalidArgument("resources.cpus", `must be 0 or from ${CPUS.min} to ${CPUS.max}`);
  }
  if (memoryBytes !== undefined && memoryBytes < MIN_MEMORY_BYTES) {
    throw invalidArgument("resources.memory_bytes", `must be 0 or at least ${MIN_MEMORY_BYTES}`);
  }
  checkPids(pids);
  return {
    ...(cpus === 0 ? {} : { cpus }),
    ...(memoryBytes === undefined ? {} : { memoryBytes }),
    ...(pids === 0 ? {} : { pids }),
  };
}

function checkPids(pids: number): void {
  if (pids === 0 || (pids >= PIDS.min && pids <= PIDS.max)) return;
  throw invalidArgument("resources.pids", `must be 0 or from ${PIDS.min} to ${PIDS.max}`);
}
