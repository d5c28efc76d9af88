/** What every process in a sandbox starts from; nothing of the host's environment is in it. */
const BASE_ENVIRONMENT: Readonly<Record<string, string>> = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  HOME: "/root",
  USER: "root",
  LANG: "C.UTF-8",
  TERM: "dumb",
  PWD: "/workspace",
};

/** The environment of a call: the base, then the session's, then the call's own. */
export function environmentOf(...layers: readonly Readonly<Record<string, string>>[]): Record<string, string> {
  return Object.assign({}, BASE_ENVIRONMENT, ...layers) as Record<string, string>;
}
