import { invalidArgument } from "@turnbox/core";

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

/** Throws `INVALID_ARGUMENT` for names that are not variable names, and for what would not fit. */
export function checkEnvironment(field: string, env: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(env)) {
    if (!/^[A-Za-z_][A-Za-z0-9_]{0,255}$/.test(name)) {
      throw invalidArgument(
        field,
        "names must be letters, digits and underscores, not beginning with a digit, at most 256 characters",
      );
    }
    if (value.includes("\0") || value.length > MAX_VALUE) {
      throw invalidArgument(field, `the value of ${name} must have at most ${MAX_VALUE} characters and no NUL`);
    }
  }
  if (Object.keys(env).length > MAX_VARIABLES)
    throw invalidArgument(field, `must have at most ${MAX_VARIABLES} variables`);
}

const MAX_VALUE = 65_536;
const MAX_VARIABLES = 256;
