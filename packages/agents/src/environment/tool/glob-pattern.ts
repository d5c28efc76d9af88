import { GlobError, invalidArgument, parseGlob } from "@turnbox/client/internal";

/** Whether a path, relative and with slashes, matches the pattern of a call. Throws `INVALID_ARGUMENT` if it is no pattern. */
export function parseGlobPattern(pattern: string): (path: string) => boolean {
  try {
    const glob = parseGlob(pattern);
    return (path) => glob.matches(path);
  } catch (thrown) {
    throw thrown instanceof GlobError ? invalidArgument("params.pattern", thrown.message) : thrown;
  }
}
