/** The directory that relative paths begin at in a sandbox, for tools and for files. */
export const WORKING_DIRECTORY = "/workspace";

/** What every process in a sandbox starts from; nothing of the host's environment is in it. */
const BASE_ENVIRONMENT: Readonly<Record<string, string>> = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  HOME: "/root",
  USER: "root",
  LANG: "C.UTF-8",
  TERM: "dumb",
  PWD: WORKING_DIRECTORY,
};

/** The environment of a call: the base, then the session's, then the call's own. */
export function environmentOf(...layers: readonly Readonly<Record<string, string>>[]): Record<string, string> {
  return Object.assign({}, BASE_ENVIRONMENT, ...layers) as Record<string, string>;
}

/** The absolute path of what a caller named; a relative one is below the working directory. */
export function absolutePath(path: string): string {
  return path.startsWith("/") ? path : path === "." ? WORKING_DIRECTORY : `${WORKING_DIRECTORY}/${path}`;
}
