import { type BytePath, toText } from "../../file/path.ts";
import { WORKING_DIRECTORY } from "../../session/environment.ts";

/** The shortest name that every tool takes back: relative if it is below the working directory. */
export function shownPath(path: BytePath): string {
  return shortPath(toText(path));
}

export function shortPath(path: string): string {
  if (path === WORKING_DIRECTORY) return ".";
  return path.startsWith(`${WORKING_DIRECTORY}/`) ? path.slice(WORKING_DIRECTORY.length + 1) : path;
}
