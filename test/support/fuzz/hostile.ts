import { type DescEnum, type JsonObject, type JsonValue, ScalarType } from "@bufbuild/protobuf";
import type { Chance } from "./chance.ts";
import type { Leaf } from "./tree.ts";

const NUMBERS = [
  0n,
  1n,
  -1n,
  2n,
  7n,
  101n,
  1001n,
  65_535n,
  65_536n,
  2n ** 31n - 1n,
  2n ** 31n,
  -(2n ** 31n),
  2n ** 32n - 1n,
  2n ** 32n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 53n + 1n,
  2n ** 63n - 1n,
  2n ** 63n,
  -(2n ** 63n),
  2n ** 64n - 1n,
] as const;

const DOUBLES = [0, -0, 0.5, 0.009, 1, -1, 1024.5, 1e-300, 1e300, Number.NaN, Infinity, -Infinity] as const;

const TEXTS = [
  "",
  " ",
  "a",
  ".",
  "..",
  "/",
  "//",
  "../../../../../../etc/passwd",
  "/workspace/../../../etc/shadow",
  "/proc/self/mem",
  "/proc/1/root/etc",
  "/dev/null",
  "/sys",
  "a/b/../../c",
  "\0",
  "a\0b",
  "\n",
  "a\r\nb: c",
  "\u001b[2J\u0007",
  "\ud800",
  "a\udc00b",
  "\ufeff",
  "\u202egnp.exe",
  "é".normalize("NFD"),
  "😀".repeat(64),
  "-rf",
  "--help",
  "$(reboot)",
  "`id`",
  "'; DROP TABLE sessions; --",
  "%s%n%x",
  "%2e%2e%2f",
  "{}",
  "null",
  "true",
  "0.5",
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "*",
  "**/**/**/*",
  "[",
  "(((((((((((((((((((",
  "fleet:local-1:",
  "fleet:local-1:../x",
  "fleet::",
  "mini@",
  "mini@../../x",
  "a@b@c",
  "169.254.169.254",
  "0.0.0.0/0",
  "::/0",
  "999.1.1.1/33",
] as const;

const LENGTHS = [63, 64, 65, 127, 128, 129, 255, 256, 257, 4095, 4096, 4097, 65_536] as const;
const VERY_LONG = 1_000_000;
const P_VERY_LONG = 0.01;

export function hostileText(chance: Chance): string {
  if (chance.happens(P_VERY_LONG)) return "x".repeat(VERY_LONG);
  if (chance.happens(0.2)) return chance.of(["a", "a/", "../", "é", "\u0001", "/"]).repeat(chance.of(LENGTHS));
  if (chance.happens(0.15)) return Buffer.from(chance.bytes(chance.below(40))).toString("utf8");
  return chance.of(TEXTS);
}

export const hostileNumber = (chance: Chance): bigint => chance.of(NUMBERS);

export function hostileBytes(chance: Chance): Uint8Array {
  const length = chance.happens(P_VERY_LONG) ? VERY_LONG : chance.of([0, 1, 2, 3, 511, 512, 513, 4096, 10_240]);
  if (chance.happens(0.3)) return new Uint8Array(length);
  return chance.bytes(Math.min(length, 4096));
}

/** A leaf of the type, or of its neighbourhood: numbers may be out of range, and each form makes of them what it can. */
export function hostileLeaf(scalar: ScalarType, chance: Chance): Leaf {
  switch (scalar) {
    case ScalarType.STRING:
      return hostileText(chance);
    case ScalarType.BYTES:
      return hostileBytes(chance);
    case ScalarType.BOOL:
      return chance.happens(0.5);
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return chance.of(DOUBLES);
    default:
      return hostileNumber(chance);
  }
}

export function hostileEnum({ values }: DescEnum, chance: Chance): bigint {
  return chance.of([-1n, 99n, BigInt(values.length), 2n ** 31n - 1n, -(2n ** 31n), 0n]);
}

export function hostileJson(chance: Chance, depth = 0): JsonValue {
  const kind = depth > 4 ? 0 : chance.below(8);
  if (kind === 1) return Array.from({ length: chance.below(4) }, () => hostileJson(chance, depth + 1));
  if (kind === 2) return hostileObject(chance, depth + 1);
  if (kind === 3) return nested(chance.of([10, 90]));
  if (kind === 4) return chance.of([null, true, false]);
  if (kind === 5) return chance.of([0, -1, 0.5, 1e300, 2 ** 53]);
  return hostileText(chance).toWellFormed();
}

export function hostileObject(chance: Chance, depth = 0): JsonObject {
  const names = Array.from({ length: chance.below(4) }, () => hostileText(chance).toWellFormed().slice(0, 200));
  return Object.fromEntries(names.map((name) => [name, hostileJson(chance, depth + 1)]));
}

/** Lists in lists. */
function nested(depth: number): JsonValue {
  let value: JsonValue = [];
  for (let level = 0; level < depth; level += 1) value = [value];
  return value;
}
