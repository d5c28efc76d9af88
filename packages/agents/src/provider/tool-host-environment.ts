import type { ToolHost } from "./provider.ts";

/** The tool host, with terminals that have the profile's variables beneath those that the agent gives. */
export function withTerminalEnvironment(toolHost: ToolHost, env: Readonly<Record<string, string>>): ToolHost {
  return {
    ...toolHost,
    createTerminal: (spec, options) => toolHost.createTerminal({ ...spec, env: { ...env, ...spec.env } }, options),
  };
}
