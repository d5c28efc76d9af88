import { access, constants, open } from "node:fs/promises";
import { delimiter, join } from "node:path";

/** The program headers of every real program are within these bytes. */
const HEAD_BYTES = 64 * 1024;
const PT_INTERP = 3;

/** The file of a command; undefined if PATH has none that may be run. */
export async function findCommand(command: string, path: string): Promise<string | undefined> {
  for (const folder of path.split(delimiter)) {
    const file = join(folder, command);
    if (folder !== "" && (await isThere(file, constants.X_OK))) return file;
  }
  return undefined;
}

export async function isThere(path: string, mode = constants.F_OK): Promise<boolean> {
  return await access(path, mode).then(
    () => true,
    () => false,
  );
}

/** Whether a program is a 64-bit little-endian ELF file without an interpreter, which runs in any root. */
export async function isStatic(file: string): Promise<boolean> {
  await using handle = await open(file, "r");
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
  return asksForNoInterpreter(buffer.subarray(0, bytesRead));
}

function asksForNoInterpreter(bytes: Buffer): boolean {
  if (bytes.length < 64 || bytes.toString("latin1", 1, 4) !== "ELF" || bytes[4] !== 2 || bytes[5] !== 1) return false;
  const offset = Number(bytes.readBigUInt64LE(32));
  const size = bytes.readUInt16LE(54);
  const count = bytes.readUInt16LE(56);
  if (offset + size * count > bytes.length) return false;
  const types = Array.from({ length: count }, (_, index) => bytes.readUInt32LE(offset + index * size));
  return !types.includes(PT_INTERP);
}
