import { posix } from "node:path";
import type { Clock } from "@turnbox/client";
import { remoteEnvironment } from "../agent-environment.ts";
import { createTurnboxLauncher } from "../launch/turnbox-launcher.ts";
import { checkNetwork } from "../network-check.ts";
import type { Prepared, PrepareRequest, ProviderCall, SandboxIdentity, SessionState } from "../provider.ts";
import { splitCommand } from "../split-command.ts";
import { createTurnboxToolHost } from "../tool-host/turnbox-tool-host.ts";
import { withTerminalEnvironment } from "../tool-host-environment.ts";
import type { Acquired } from "./acquire-sandbox.ts";
import { createTurnboxState } from "./turnbox-state.ts";

const USUAL_ROOT = "/workspace";
/** Where directories beyond the workspace are inside. */
const ADDITIONAL_ROOT = "/additional";

/** Makes the directories of a sandbox that is up, and what an agent in it is started and served by. */
export async function prepareSandbox(
  request: PrepareRequest,
  { sandbox, info }: Acquired,
  { clock, ...call }: ProviderCall & { readonly clock: Clock },
): Promise<Prepared> {
  const [command, ...args] = splitCommand(request.agentCommand);
  const { env, secretEnv, warnings } = remoteEnvironment(request);
  const { permissions } = request;
  const state = stateOf(request, sandbox.id, { state: "prepared", preparedAt: new Date(clock.nowMs()) });
  const { runtimeRootDir: root, runtimeAdditionalDirs: additionalDirs } = state;
  for (const path of [root, ...additionalDirs]) await sandbox.files.makeDirectory(path, { parents: true, ...call });
  return {
    state,
    runtimeRootDir: root,
    runtimeAdditionalDirs: additionalDirs,
    launcher: createTurnboxLauncher(sandbox, { root, clock }),
    launch: { command, args, env, secretEnv, cwd: root },
    toolHost: withTerminalEnvironment(
      createTurnboxToolHost(sandbox, { root, additionalDirs, permissions }),
      request.sandbox.env,
    ),
    warnings: [...warnings, ...networkWarnings(request, info.capabilities.runtime)],
  };
}

/** Without a sandbox runtime the host has sessions on its own network; it refuses a policy that insists by itself. */
function networkWarnings({ sandbox }: PrepareRequest, runtime: string): readonly string[] {
  if (runtime !== "none") return [];
  const ability = { ingress: "enforced", outbound: "open", lists: "ignored" } as const;
  return checkNetwork(sandbox.network, ability, "turnbox without a sandbox runtime");
}

export function stateOf(
  identity: SandboxIdentity,
  instanceId: string,
  known: Pick<SessionState, "state" | "preparedAt">,
): SessionState {
  const { sandboxId, sandbox, localAdditionalDirs } = identity;
  return {
    sandboxId,
    backend: "turnbox",
    profile: sandbox.profile,
    instanceId,
    runtimeRootDir: sandbox.runtimeRootDir === "" ? USUAL_ROOT : sandbox.runtimeRootDir,
    runtimeAdditionalDirs: localAdditionalDirs.map((path, at) => `${ADDITIONAL_ROOT}/${at + 1}-${nameOf(path)}`),
    providerState: createTurnboxState(identity),
    // The client renews its access by itself.
    sshAccessExpiresAt: undefined,
    ...known,
  };
}

/** A name that is the same each time, and one in every filesystem. */
function nameOf(path: string): string {
  const name = posix
    .basename(path)
    .replace(/[^A-Za-z0-9._-]/g, "_")
    .slice(0, 64);
  return name === "" ? "directory" : name;
}
