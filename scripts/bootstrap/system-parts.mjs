import { accessSync, closeSync, constants, existsSync, openSync, readFileSync, readSync } from "node:fs";
import path from "node:path";
import { runCommand } from "./command.mjs";
import { root } from "./layout.mjs";

/** Where system commands live, also for users whose PATH leaves them out. */
const SYSTEM_FOLDERS = ["/usr/local/sbin", "/usr/sbin", "/sbin"];
const PROBE_TIMEOUT_MS = 20_000;

export const readSystemParts = () =>
  JSON.parse(readFileSync(path.join(root, "packages/sandbox-host/system-parts.json"), "utf8")).parts;

export function systemPath(env) {
  return [...(env.PATH ?? "").split(path.delimiter), ...SYSTEM_FOLDERS].filter((folder) => folder !== "");
}

function findCommand(name, folders) {
  return folders
    .map((folder) => path.join(folder, name))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/** Whether a 64-bit little-endian ELF file asks for no interpreter, which is what makes it run in any root filesystem. */
export function isStatic(bytes) {
  const INTERPRETER = 3;
  if (bytes.length < 64 || bytes.toString("latin1", 1, 4) !== "ELF" || bytes[4] !== 2 || bytes[5] !== 1) return false;
  const offset = Number(bytes.readBigUInt64LE(32));
  const size = bytes.readUInt16LE(54);
  const count = bytes.readUInt16LE(56);
  if (offset + size * count > bytes.length) return false;
  return Array.from({ length: count }, (_, i) => bytes.readUInt32LE(offset + i * size)).every((t) => t !== INTERPRETER);
}

function readHead(file) {
  const handle = openSync(file, "r");
  try {
    const bytes = Buffer.alloc(64 * 1024);
    return bytes.subarray(0, readSync(handle, bytes, 0, bytes.length, 0));
  } finally {
    closeSync(handle);
  }
}

/** Whether `version` is at least `minimum`, number by number: 1.10 is newer than 1.9. */
export function isAtLeast(version, minimum) {
  const numbersOf = (text) => (text.match(/\d+/g) ?? []).map(Number);
  const own = numbersOf(version);
  const differences = numbersOf(minimum).map((number, index) => (own[index] ?? 0) - number);
  return (differences.find((difference) => difference !== 0) ?? 0) >= 0;
}

async function versionProblem({ version, minimumVersion }, env) {
  if (version === undefined) return undefined;
  const { stdout, tail } = await runCommand(version.argv, { env, timeoutMs: PROBE_TIMEOUT_MS });
  const found = new RegExp(version.pattern).exec(stdout || tail)?.[1] ?? (version.optional === true ? "" : undefined);
  if (found === undefined) return `${version.argv.join(" ")} tells no version`;
  if (minimumVersion === undefined || isAtLeast(found, minimumVersion)) return undefined;
  return `version ${found} is older than ${minimumVersion}`;
}

async function worksInstead(part, { env, folders }) {
  const other = part.insteadOf;
  if (other === undefined || other.commands.some((name) => findCommand(name, folders) === undefined)) return false;
  const { code, stdout } = await runCommand(other.argv, { env, timeoutMs: PROBE_TIMEOUT_MS });
  return code === 0 && stdout.includes(other.prints);
}

/**
 * What keeps a part from being there, or undefined. `fix` says what helps: its package, or something only the person
 * who runs the machine can do.
 */
export async function probePart(part, env) {
  const folders = systemPath(env);
  const probeEnv = { ...env, PATH: folders.join(path.delimiter) };
  if (await worksInstead(part, { env: probeEnv, folders })) return undefined;
  const absent = part.commands.filter((name) => findCommand(name, folders) === undefined);
  if (absent.length > 0) return { part, fix: "package", problem: `${absent.join(", ")} not found` };
  if (part.static === true && !isStatic(readHead(findCommand(part.commands[0], folders)))) {
    return { part, fix: "package", problem: `${part.commands[0]} is not statically linked` };
  }
  const outdated = await versionProblem(part, probeEnv);
  if (outdated !== undefined) return { part, fix: "package", problem: outdated };
  const device = (part.devices ?? []).find((file) => !existsSync(file));
  if (device !== undefined) return { part, fix: "machine", problem: `${device} does not exist` };
  return undefined;
}

/** All parts that are missing, in the order of the list. */
export async function findMissingParts(parts, env) {
  const probes = await Promise.all(parts.map((part) => probePart(part, env)));
  return probes.filter((probe) => probe !== undefined);
}
