import type { SandboxIdentity } from "../provider.ts";

/** The labels that say whose a runtime is. */
export const IDENTITY_LABELS = {
  session: "turnbox.session-id",
  workspace: "turnbox.workspace-id",
  sandbox: "turnbox.sandbox-id",
  profile: "turnbox.profile",
} as const;

/** What a runtime is found by. A profile may get another name, and the runtime is the session's still. */
export function identityLabels({ sessionId, sandboxId }: Pick<SandboxIdentity, "sessionId" | "sandboxId">): Labels {
  return { [IDENTITY_LABELS.session]: sessionId, [IDENTITY_LABELS.sandbox]: sandboxId };
}

/** What a runtime is made with: the identity, and what helps people who look at a list of runtimes. */
export function runtimeLabels(identity: SandboxIdentity): Labels {
  return {
    ...identityLabels(identity),
    [IDENTITY_LABELS.workspace]: identity.workspaceId,
    [IDENTITY_LABELS.profile]: identity.sandbox.profile,
  };
}

type Labels = Readonly<Record<string, string>>;
