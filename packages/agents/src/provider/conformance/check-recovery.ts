import { isFinder, type Prepared, type PrepareRequest, type Provider, type ProviderCall } from "../provider.ts";
import { identityLabels } from "../session/identity-labels.ts";
import type { CheckContext } from "./check-context.ts";
import { dispose, expectThat, NotApplicable } from "./check-run.ts";
import { refusalOf } from "./refusal.ts";

/** That a session gets its runtime back, also in a program that knows nothing but what was written down. */
export async function checkRecovery(context: CheckContext, { state }: Prepared, call: ProviderCall): Promise<void> {
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
