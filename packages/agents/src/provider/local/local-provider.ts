import { statSync } from "node:fs";
import { isAbsolute } from "node:path";
import type { Clock } from "@turnbox/client";
import { invalidArgument, systemClock } from "@turnbox/client/internal";
import { localEnvironment } from "../agent-environment.ts";
import { createLocalLauncher } from "../launch/local-launcher.ts";
import { checkNetwork } from "../network-check.ts";
import type { Prepared, PrepareRequest, Provider } from "../provider.ts";
import { splitCommand } from "../split-command.ts";
import { NOTHING_SYNCED } from "../sync/sync-types.ts";
import { createLocalToolHost } from "../tool-host/local-tool-host.ts";
import { withTerminalEnvironment } from "../tool-host-environment.ts";

/** This machine has one runtime, which is neither made nor removed. */
const INSTANCE_ID = "local";

/** What the provider of this machine is made with. */
export interface LocalProviderOptions {
  readonly clock?: Clock;
}

/**
 * Runs agents on this machine, in the workspace itself, as this user: nothing keeps them in. There is nothing to sync and
 * nothing to destroy, and no network policy that restricts anything can be enforced.
 */
export function createLocalProvider(options: LocalProviderOptions = {}): Provider {
  const { clock = systemClock } = options;
  return {
    backend: () => "local",
    prepare: async (request, { signal } = {}) => {
      signal?.throwIfAborted();
      return prepare(request, clock);
    },
    syncToRuntime: async (_state, { signal }) => {
      signal?.throwIfAborted();
      return NOTHING_SYNCED;
    },
    syncFromRuntime: async (_state, { signal }) => {
      signal?.throwIfAborted();
      return NOTHING_SYNCED;
    },
    destroy: async (state, { signal, persistence } = {}) => {
      signal?.throwIfAborted();
      const isKept = (persistence ?? state.providerState?.["persistence"]) === "reuse";
      return { ...state, state: isKept ? "stopped" : "destroyed" };
    },
  };
}

function prepare(request: PrepareRequest, clock: Clock): Prepared {
  const { localRootDir: root, localAdditionalDirs: additionalDirs, sandbox, permissions } = request;
  assertDirectory("localRootDir", root);
  for (const directory of additionalDirs) assertDirectory("localAdditionalDirs", directory);
  const ability = { ingress: "open", outbound: "open", lists: "ignored" } as const;
  const warnings = checkNetwork(sandbox.network, ability, "local");
  const { env, secretEnv, warnings: kept } = localEnvironment(request);
  const [command, ...args] = splitCommand(request.agentCommand);
  const toolHost = createLocalToolHost({ root, additionalDirs, permissions, clock });
  return {
    state: {
      sandboxId: request.sandboxId,
      backend: "local",
      profile: sandbox.profile,
      state: "prepared",
      instanceId: INSTANCE_ID,
      runtimeRootDir: root,
      runtimeAdditionalDirs: additionalDirs,
      providerState: { version: 1, persistence: sandbox.persistence },
      sshAccessExpiresAt: undefined,
      preparedAt: new Date(clock.nowMs()),
    },
    runtimeRootDir: root,
    runtimeAdditionalDirs: additionalDirs,
    launcher: createLocalLauncher({ root, clock }),
    launch: { command, args, env, secretEnv, cwd: root },
    toolHost: withTerminalEnvironment(toolHost, sandbox.env),
    warnings: [...warnings, ...kept],
  };
}

function assertDirectory(field: string, path: string): void {
  if (!isAbsolute(path)) throw invalidArgument(field, "must be absolute");
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw invalidArgument(field, "must be a directory that exists");
  }
}
