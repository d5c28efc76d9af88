import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { hasErrno, randomToken } from "@turnbox/client/internal";
import { counted, done, refused, type ToolOutcome } from "../tool/outcome.ts";
import { editText, showLines } from "../tool/text.ts";
import type { ToolSet } from "../tool/tool-set.ts";
import { type Inside, resolveInside } from "./inside.ts";
import type { LocalTarget } from "./local-target.ts";

const MAX_READ_BYTES = 10 * 1024 * 1024;
const DRAFT_CHARACTERS = 8;

export const fileTools: Pick<ToolSet<LocalTarget>, "read_file" | "write_file" | "edit_file"> = {
  read_file: async ({ root }, params, { signal }) =>
    await onFile(root, params.path, async (file) => {
      const text = await readText(file, signal);
      return typeof text === "string" ? showLines(file.shown, text, params) : text;
    }),
  write_file: async ({ root }, { path, content, create_dirs: createDirs }, { signal }) =>
    await onFile(root, path, async (file) => {
      if (createDirs) await mkdir(dirname(file.path), { recursive: true });
      const before = await statIfThere(file.path);
      if (before?.isFile() === false) return refused(`${file.shown} is not a regular file.`);
      signal.throwIfAborted();
      await writeWhole(file.path, content, before?.mode);
      const size = counted(Buffer.byteLength(content), "byte");
      return done(`${before === undefined ? "Created" : "Replaced"} ${file.shown} (${size}).`);
    }),
  edit_file: async ({ root }, params, { signal }) =>
    await onFile(root, params.path, async (file) => {
      const before = await readText(file, signal);
      if (typeof before !== "string") return before;
      const { text, outcome } = editText(file.shown, before, params);
      if (text !== undefined) await writeWhole(file.path, text, (await stat(file.path)).mode);
      return outcome;
    }),
};

/** Resolves the path; what the system says about it is the tool's answer, not a failure of the environment. */
export async function onFile(
  root: string,
  path: string,
  work: (file: Inside) => Promise<ToolOutcome>,
): Promise<ToolOutcome> {
  try {
    return await work(await resolveInside(root, path));
  } catch (thrown) {
    for (const [errno, words] of Object.entries(SAID_OF_ERRNO)) {
      if (hasErrno(thrown, errno)) return refused(`${path}: ${words}.`);
    }
    throw thrown;
  }
}

const SAID_OF_ERRNO: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file or directory",
  ENOTDIR: "a part of the path is not a directory",
  EISDIR: "it is a directory",
  EACCES: "this process may not touch it",
  EPERM: "this process may not touch it",
  ELOOP: "there are too many symbolic links",
  ENAMETOOLONG: "the name is too long",
  ENOSPC: "the disk is full",
};

/** The text of a regular file, or why it is not shown. */
async function readText(file: Inside, signal: AbortSignal): Promise<string | ToolOutcome> {
  const stats = await stat(file.path);
  if (!stats.isFile()) return refused(`${file.shown} is not a regular file.`);
  if (stats.size > MAX_READ_BYTES)
    return refused(`${file.shown} has ${counted(stats.size, "byte")}; use bash to look into it.`);
  const bytes = await readFile(file.path, { signal });
  return bytes.includes(0) ? refused(`${file.shown} is not a text file. Use bash to look into it.`) : bytes.toString();
}

/** All of it or nothing. */
async function writeWhole(path: string, content: string, mode = 0o644): Promise<void> {
  const draft = `${path}.${randomToken(DRAFT_CHARACTERS)}.draft`;
  try {
    await writeFile(draft, content, { flag: "wx", mode: mode & 0o7777 });
    await rename(draft, path);
  } catch (thrown) {
    await rm(draft, { force: true });
    throw thrown;
  }
}

async function statIfThere(path: string) {
  try {
    return await stat(path);
  } catch (thrown) {
    if (hasErrno(thrown, "ENOENT")) return undefined;
    throw thrown;
  }
}
