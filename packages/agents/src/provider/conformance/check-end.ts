import { isFinder, type Prepared, type ProviderCall, type SessionState } from "../provider.ts";
import { identityLabels } from "../session/identity-labels.ts";
import type { CheckContext } from "./check-context.ts";
import { expectThat, NotApplicable } from "./check-run.ts";
import { refusalOf } from "./refusal.ts";

/** Brings the files out and destroys, whatever the checks before said. */
export async function checkEnd(
  context: CheckContext,
  prepared: Prepared | undefined,
  call: ProviderCall,
): Promise<void> {
  const { run, provider, workspace, request } = context;
  const state = prepared?.state ?? (await leftBehind(context, call));
  if (state === undefined) return;
  await run.run("brings the files out at the stop", async () => {
    await prepared?.toolHost[Symbol.asyncDispose]();
    const signal = call.signal === undefined ? {} : { signal: call.signal };
    const { errors } = await provider.syncFromRuntime(state, { reason: "stop", ...signal });
    expectThat(errors.length === 0, `it left out: ${errors.join("; ")}`);
    expectThat((await workspace.read("made.txt")) === "inside", "a file that was made inside did not come out");
  });
  const end = { ...call, persistence: "transient" as const };
  await run.run("destroys the runtime", async () => {
    const { state: after } = await provider.destroy(state, end);
    expectThat(after === "destroyed", `its state is ${after} then`);
  });
  await run.run("destroys a second time without effect", async () => {
    const { state: after } = await provider.destroy(state, end);
    expectThat(after === "destroyed", `its state is ${after} then`);
  });
  await run.run("finds nothing that was destroyed", async () => {
    if (!isFinder(provider)) throw new NotApplicable("it has no way to look for runtimes");
    const reason = await refusalOf(provider.findSandbox({ ...request, labels: identityLabels(request) }, call));
    expectThat(reason === "REMOTE_SANDBOX_NOT_FOUND", `it says ${reason}`);
  });
}

/** What a `prepare` that failed has made nonetheless. */
async function leftBehind({ provider, request }: CheckContext, call: ProviderCall): Promise<SessionState | undefined> {
  if (!isFinder(provider)) return undefined;
  return await provider.findSandbox({ ...request, labels: identityLabels(request) }, call).catch(() => undefined);
}
