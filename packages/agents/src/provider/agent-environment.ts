import type { Secret } from "@turnbox/client";
import type { PrepareRequest } from "./provider.ts";

/** The agent's variables that may leave this machine. */
const AGENT_PREFIXES = ["AGH_", "TURNBOX_AGENT_"];

/**
 * What opens the accounts of those who run sandboxes. An agent that had one could make, read and remove runtimes of
 * others, so these go nowhere, whatever asks for it.
 */
const PROVIDER_KEYS =
  /^(TURNBOX_(TOKEN|TOKEN_FILE|HOME|URL)|(DAYTONA|E2B|FLY|MODAL|RUNLOOP|VERCEL)_(API_KEY|API_TOKEN|ACCESS_TOKEN|TOKEN|JWT_TOKEN|SECRET)|MODAL_TOKEN_(ID|SECRET)|AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN))$/i;

export interface AgentEnvironment {
  readonly env: Readonly<Record<string, string>>;
  readonly secretEnv: Readonly<Record<string, Secret>>;
  /** One for each variable that was asked for and stays here; never with its value. */
  readonly warnings: readonly string[];
}

/** What an agent in a remote runtime is given: its own variables by prefix, and the profile's, which win. */
export function remoteEnvironment({
  agentEnv,
  sandbox,
}: Pick<PrepareRequest, "agentEnv" | "sandbox">): AgentEnvironment {
  const asked = { ...sandbox.env, ...sandbox.secretEnv };
  const blocked = Object.keys(asked).filter(isProviderKey);
  const own = Object.entries(agentEnv).filter(([name]) => AGENT_PREFIXES.some((prefix) => name.startsWith(prefix)));
  return {
    env: { ...without(Object.fromEntries(own)), ...without(sandbox.env) },
    secretEnv: without(sandbox.secretEnv),
    warnings: blocked.map((name) => `the variable ${name} opens a sandbox provider and is not given to the agent`),
  };
}

/** What an agent on this machine is given: all of its variables and the profile's, but for the keys to providers. */
export function localEnvironment({
  agentEnv,
  sandbox,
}: Pick<PrepareRequest, "agentEnv" | "sandbox">): AgentEnvironment {
  return { ...remoteEnvironment({ agentEnv, sandbox }), env: { ...without(agentEnv), ...without(sandbox.env) } };
}

export const isProviderKey = (name: string): boolean => PROVIDER_KEYS.test(name);

function without<Value>(variables: Readonly<Record<string, Value>>): Readonly<Record<string, Value>> {
  return Object.fromEntries(Object.entries(variables).filter(([name]) => !isProviderKey(name)));
}
