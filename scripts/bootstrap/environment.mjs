import path from "node:path";

/** Settings that decide whether the user's registry can be reached. npm hands them to its scripts as `npm_config_*`. */
const NETWORK_SETTINGS = new Set([
  "registry",
  "userconfig",
  "globalconfig",
  "ca",
  "cafile",
  "cert",
  "key",
  "proxy",
  "https_proxy",
  "noproxy",
  "strict_ssl",
  "local_address",
]);

/** npm sets these beside its `npm_*` variables, for the one script that it runs. */
const SET_BY_NPM = new Set(["INIT_CWD", "NODE"]);

const settingOf = (name) => (name.startsWith("npm_config_") ? name.slice("npm_config_".length) : undefined);

const reachesRegistry = (name) => {
  const setting = settingOf(name);
  if (setting === undefined) return false;
  return NETWORK_SETTINGS.has(setting) || setting.startsWith("//") || /^@[^:]+:registry$/.test(setting);
};

/** Without npm's own variables: they would configure the inner npm and pnpm for the outer command. */
function withoutNpm(env) {
  const underNpm = env.npm_execpath !== undefined || env.npm_lifecycle_event !== undefined;
  const isKept = ([name, value]) => {
    if (value === undefined || (underNpm && SET_BY_NPM.has(name))) return false;
    return !name.startsWith("npm_") || (reachesRegistry(name) && value !== "");
  };
  return Object.fromEntries(Object.entries(env).filter(isKept));
}

/** pnpm reads `pnpm_config_*` only: a registry or proxy that was given to npm is repeated under that name. */
function forPnpm(env) {
  const repeated = {};
  for (const [name, value] of Object.entries(env)) {
    const setting = settingOf(name.toLowerCase());
    if (setting !== undefined && NETWORK_SETTINGS.has(setting)) repeated[`pnpm_config_${setting}`] = value;
  }
  return repeated;
}

/** The environment for everything below the bootstrap: `folders` lead the PATH, and the way to the user's registry is kept. */
export function childEnvironment(env, folders) {
  const kept = withoutNpm(env);
  const entries = [...folders, kept.PATH ?? ""].filter((entry) => entry !== "");
  return { ...forPnpm(kept), ...kept, PATH: entries.join(path.delimiter) };
}
