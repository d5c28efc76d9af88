import { randomToken } from "@turnbox/client/internal";
import { resolveProfile } from "../profile/resolve-profile.ts";
import { isFinder, type Prepared, type PrepareRequest, type Provider, type ProviderCall } from "../provider.ts";
import { identityLabels } from "../session/identity-labels.ts";
import { checkEnd } from "./check-end.ts";
import { createCheckRun, dispose, expectThat, NotApplicable } from "./check-run.ts";
import { checkRuntime } from "./check-runtime.ts";
import type { Finding } from "./finding.ts";
import { type CheckContext, type CheckOptions, type MakeProvider, SECRET } from "./check-context.ts";
import { createWorkspace, type Workspace } from "./workspace.ts";
import { refusalOf } from "./refusal.ts";

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

/** That a session gets its runtime back, also in a program that knows nothing but what was written down. */
async function checkRecovery(context: CheckContext, { state }: Prepared, call: ProviderCall): Promise<void> {
  const { run, provider, makeProvider, request } = context;
  const { instanceId, providerState } = state;
  await run.run("gives the session the same runtime when it prepares again", async () => {
    const again = await provider.prepare({ ...request, instanceId, providerState }, call);
    expectThat(again.state.instanceId === instanceId, `it is ${again.state.instanceId}, and was ${instanceId}`);
    const content = await again.toolHost.readTextFile("kept/in.txt", call);
    expectThat(content === "from here", "the files are not what they were");
  });
  await run.run("finds a runtime after a crash by its labels", async () => {
    const fresh = await makeProvider();
    await assertFound({ fresh, request, instanceId }, call).finally(() => dispose(fresh));
  });
}

interface Search {
  readonly fresh: Provider;
  readonly request: PrepareRequest;
  readonly instanceId: string;
}

async function assertFound({ fresh, request, instanceId }: Search, call: ProviderCall): Promise<void> {
  if (!isFinder(fresh)) throw new NotApplicable("it has no way to look for runtimes");
  const found = await fresh.findSandbox({ ...request, labels: identityLabels(request) }, call);
  expectThat(found.instanceId === instanceId, `it found ${found.instanceId}, and ${instanceId} was made`);
  const other = { ...request, sandboxId: `${request.sandboxId}-other` };
  const reason = await refusalOf(fresh.findSandbox({ ...other, labels: identityLabels(other) }, call));
  expectThat(reason === "REMOTE_SANDBOX_NOT_FOUND", `of a runtime that nobody made it says ${reason}`);
  const taken = await fresh.prepare(request, call);
  expectThat(taken.state.instanceId === instanceId, "preparing without the id made a second runtime");
}
