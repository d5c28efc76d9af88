import { randomToken } from "@turnbox/client/internal";
import { resolveProfile } from "../profile/resolve-profile.ts";
import type { Prepared, PrepareRequest } from "../provider.ts";
import { checkEnd } from "./check-end.ts";
import { checkRecovery } from "./check-recovery.ts";
import { createCheckRun, dispose, expectThat } from "./check-run.ts";
import { checkRuntime } from "./check-runtime.ts";
import type { Finding } from "./finding.ts";
import { type CheckContext, type CheckOptions, type MakeProvider, SECRET } from "./check-context.ts";
import { createWorkspace, type Workspace } from "./workspace.ts";

/**
 * Holds a provider to `PROVIDER_CHECKS`, on one runtime that it makes and destroys. The runtime needs `sh`. It is
 * destroyed whatever fails before, and every failure is in the findings, so that one look shows all.
 */
export async function checkProvider(makeProvider: MakeProvider, options: CheckOptions): Promise<readonly Finding[]> {
  const run = createCheckRun();
  const provider = await makeProvider();
  await using workspace = await createWorkspace();
  const request = createRequest(workspace, options);
  const isShared = ({ runtimeRootDir }: Prepared): boolean => runtimeRootDir === workspace.root;
  const context: CheckContext = { run, makeProvider, provider, workspace, request, isShared };
  await run.run("says its backend", async () => {
    const backend = provider.backend();
    expectThat(backend === options.backend, `it says ${backend}, and ${options.backend} is expected`);
  });
  await run.run("prepares nothing for a caller who has gone", async () => {
    await provider.prepare(request, { signal: AbortSignal.abort() }).then(
      () => expectThat(false, "it answered under a signal that had ended"),
      () => undefined,
    );
  });
  await workspace.write("kept/in.txt", "from here");
  await workspace.write("node_modules/left/out.txt", "left out");
  await workspace.write("secret.local", "left out");
  const prepared = await checkRuntime(context, options);
  try {
    if (prepared !== undefined) await checkRecovery(context, prepared, options);
  } finally {
    await checkEnd(context, prepared, options);
    await dispose(provider);
  }
  return run.findings();
}

const ID_CHARS = 12;

function createRequest(workspace: Workspace, { backend, profile = {} }: CheckOptions): PrepareRequest {
  const syncMode = backend === "local" ? "none" : "turn-bidirectional";
  return {
    sessionId: `conformance-${randomToken(ID_CHARS)}`,
    workspaceId: "conformance",
    sandboxId: randomToken(ID_CHARS),
    instanceId: "",
    localRootDir: workspace.root,
    localAdditionalDirs: [],
    sandbox: resolveProfile({ profile: "conformance", ...profile, backend, syncMode }),
    agentCommand: "sh -c 'exit 0'",
    agentEnv: { AGH_CONFORMANCE: "given", TURNBOX_TOKEN: SECRET, E2B_API_KEY: SECRET },
    permissions: "approve-all",
    resumeAcpState: "",
  };
}
