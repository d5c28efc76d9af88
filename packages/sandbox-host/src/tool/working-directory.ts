import { WORKING_DIRECTORY } from "../file/path.ts";

/** The absolute path of what a caller named: relative ones are below the working directory, in both tiers. */
export function absolutePath(path: string): string {
  return path.startsWith("/") ? path : path === "." ? WORKING_DIRECTORY : `${WORKING_DIRECTORY}/${path}`;
}
