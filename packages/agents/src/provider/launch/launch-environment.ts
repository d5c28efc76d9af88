import type { LaunchSpec } from "./launcher.ts";

/** What a program is given: the spec's variables, and over them its secret ones. */
export function launchEnvironment(spec: Pick<LaunchSpec, "env" | "secretEnv">): Record<string, string> {
  const secrets = Object.entries(spec.secretEnv ?? {}).map(([name, secret]) => [name, secret.reveal()]);
  return { ...spec.env, ...(Object.fromEntries(secrets) as Record<string, string>) };
}
