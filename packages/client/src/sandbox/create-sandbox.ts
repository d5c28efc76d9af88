import type { Clock } from "@turnbox/core";
import { Verb } from "@turnbox/protocol/turnbox/common/v1/access_pb";
import { sessionPart } from "./sandbox-reference.ts";
import type { ServerLink } from "./link/server-link.ts";
import type { Sandbox as WireSandbox } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { createFiles } from "./files/create-files.ts";
import { createHostCalls } from "./host-call.ts";
import { createChildren } from "./life/sandbox-children.ts";
import { createLife } from "./life/sandbox-life.ts";
import type { LinkPool } from "./link/link-pool.ts";
import type { Access } from "./link/sandbox-link.ts";
import { createNetwork } from "./network/create-network.ts";
import { createProcesses, createShell } from "./process/create-processes.ts";
import type { Sandbox } from "./sandbox.ts";
import { createTools } from "./tool/sandbox-tools.ts";
import { createDiff } from "./turn/sandbox-diff.ts";
import { toSandboxInfo } from "./to-sandbox-info.ts";
import { createTurns } from "./turn/sandbox-turns.ts";
import { toOptional } from "./wire/text.ts";

/** What all handles of one `Turnbox` share. */
export interface SandboxParts {
  readonly server: ServerLink;
  readonly clock: Clock;
  readonly links: LinkPool;
}

export interface SandboxOrigin {
  readonly sandboxId: string;
  /** Empty if there is none. */
  readonly name: string;
  /** What the server said about it. */
  readonly known?: WireSandbox | undefined;
  /** Whether disposing destroys it: `made` here, or `found`. */
  readonly origin: "made" | "found";
  /** The way to it, if the server has said it already. */
  readonly access?: Access | undefined;
}

/** The handle of a sandbox. Nothing is sent before its first call. */
export function createSandbox(parts: SandboxParts, { sandboxId, name, known, origin, access }: SandboxOrigin): Sandbox {
  const { server, clock, links } = parts;
  const link = links.lease(sandboxId, access);
  const sessionId = sessionPart(sandboxId);
  const calls = createHostCalls(link, { sessionId, clock });
  const life = createLife(server, calls);
  let onDispose: "destroy" | "leave" = origin === "made" ? "destroy" : "leave";

  const sandbox: Sandbox = {
    id: sandboxId,
    sessionId,
    name: toOptional(name),
    known: known === undefined ? undefined : toSandboxInfo(known),
    ...life,
    destroy: async (options) => {
      await life.destroy(options);
      onDispose = "leave";
    },
    ...createTools(calls),
    ...createTurns(calls),
    diff: createDiff(calls),
    ...createChildren({ server, calls, adopt: (child) => createSandbox(parts, { ...child, origin: "made" }) }),
    files: createFiles(calls),
    processes: createProcesses(calls),
    shell: createShell(calls),
    network: createNetwork(calls, {
      signal: link.signal,
      open: () => links.open(sandboxId, [Verb.READ, Verb.NETWORK]),
    }),
    keep: () => {
      onDispose = "leave";
      return sandbox;
    },
    [Symbol.asyncDispose]: async () => {
      try {
        if (onDispose === "destroy") await sandbox.destroy();
      } finally {
        link[Symbol.dispose]();
      }
    },
  };
  return sandbox;
}
