import { hasReason } from "@turnbox/client";
import type { Prepared, ProviderCall, SyncOptions } from "../provider.ts";
import { formatRecord, parseRecord } from "../state/record-json.ts";
import { toStoredProfile } from "../state/session-record.ts";
import { type CheckContext, SECRET } from "./check-context.ts";
import { expectThat, NotApplicable } from "./check-run.ts";

/** What a runtime is and does between its making and its end; undefined if there is none. */
export async function checkRuntime(context: CheckContext, call: ProviderCall): Promise<Prepared | undefined> {
  const { run, provider, workspace, isShared } = context;
  const prepared = await prepareFirst(context, call);
  if (prepared === undefined) return undefined;
  const { state, toolHost } = prepared;
  const sync = (reason: SyncOptions["reason"]): SyncOptions => ({
    reason,
    excludePatterns: ["*.local"],
    ...(call.signal === undefined ? {} : { signal: call.signal }),
  });

  await run.run("answers with a state that can be written down and read again", async () => {
    assertStorable(context, prepared);
  });
  await run.run("brings the workspace in at the start", async () => {
    const { files, errors } = await provider.syncToRuntime(state, sync("start"));
    expectThat(errors.length === 0, `it left out: ${errors.join("; ")}`);
    expectThat(isShared(prepared) || files > 0, "it says that it sent no files");
    const content = await toolHost.readTextFile("kept/in.txt", call);
    expectThat(content === "from here", "a file of the workspace reads differently in the runtime");
  });
  await run.run("leaves out what the excludes say", async () => {
    if (isShared(prepared)) throw new NotApplicable("the runtime is the workspace");
    for (const path of ["node_modules/left/out.txt", "secret.local"]) {
      const isThere = await toolHost.readTextFile(path, call).then(
        () => true,
        () => false,
      );
      expectThat(!isThere, `${path} is in the runtime`);
    }
  });
  await run.run("launches a program that talks over its input and output", async () => {
    const script = 'read -r line; printf "%s " "$line" "$AGH_CONFORMANCE"; printf inside > made.txt; exit 7';
    const { output, exitCode } = await runProgram(prepared, { script, input: "hello\n" });
    expectThat(output === "hello given ", `it wrote ${JSON.stringify(output)}, and not its input and its variable`);
    expectThat(exitCode === 7, `it ended with ${String(exitCode)}, and not with 7`);
  });
  await run.run("keeps the keys to providers from the agent", async () => {
    const script = 'printf "%s" "$TURNBOX_TOKEN$E2B_API_KEY"';
    const { output } = await runProgram(prepared, { script, input: "" });
    expectThat(output === "", "a program in the runtime has a key to a provider");
  });
  await run.run("syncs at a turn's boundaries in both directions", async () => {
    await workspace.write("turn.txt", "begin");
    await provider.syncToRuntime(state, sync("turn"));
    expectThat((await toolHost.readTextFile("turn.txt", call)) === "begin", "the turn began without the workspace");
    await toolHost.writeTextFile("turn.txt", "end", call);
    await provider.syncFromRuntime(state, sync("turn"));
    expectThat((await workspace.read("turn.txt")) === "end", "the turn ended, and its files did not come out");
  });
  await run.run("keeps a required network policy, or refuses it", async () => {
    await assertPolicyKept(context, prepared, call);
  });
  return prepared;
}

async function prepareFirst(
  { run, provider, request }: CheckContext,
  call: ProviderCall,
): Promise<Prepared | undefined> {
  let prepared: Prepared | undefined;
  await run.run("prepares a runtime with a launcher and a tool host", async () => {
    prepared = await provider.prepare(request, call);
    const { state, runtimeRootDir, launcher, toolHost } = prepared;
    expectThat(typeof launcher.launch === "function", "it has no launcher");
    expectThat(typeof toolHost.readTextFile === "function", "it has no tool host");
    expectThat(state.state === "prepared", `its state is ${state.state}`);
    expectThat(state.backend === provider.backend(), "its state has another backend");
    expectThat(state.sandboxId === request.sandboxId, "its state has another sandbox id than the request");
    expectThat(state.instanceId !== "", "its state has no instance id");
    expectThat(
      runtimeRootDir.startsWith("/") && runtimeRootDir === state.runtimeRootDir,
      "its runtime root is not clear",
    );
  });
  return prepared;
}

function assertStorable({ request }: CheckContext, { state }: Prepared): void {
  const record = {
    ...request,
    sandbox: toStoredProfile(request.sandbox),
    status: "active" as const,
    excludePatterns: [],
    state,
    updatedAt: new Date(0),
  };
  const written = formatRecord(record);
  const isSame = JSON.stringify(parseRecord(written, "the state").state) === JSON.stringify(state);
  expectThat(isSame, "its state is another one after it was written down and read again");
  expectThat(!JSON.stringify(state).includes(SECRET), "a secret of the agent is in its state");
}

/** On the runtime that is there: a policy that restricts and insists. */
async function assertPolicyKept(
  { provider, request }: CheckContext,
  { state }: Prepared,
  call: ProviderCall,
): Promise<void> {
  const network = { ...request.sandbox.network, allowOutbound: false, denyList: ["192.0.2.0/24"], required: true };
  const { instanceId, providerState } = state;
  try {
    const again = { ...request, instanceId, providerState, sandbox: { ...request.sandbox, network } };
    const { warnings } = await provider.prepare(again, call);
    expectThat(!warnings.some((one) => one.includes("network")), "it warns of a policy that it had to keep or refuse");
  } catch (thrown) {
    if (!hasReason(thrown, "CAPABILITY_NOT_SUPPORTED")) throw thrown;
  }
}

const DEADLINE_MS = 30_000;

/** Runs a shell script in the runtime, as an agent is run, and returns what it wrote. */
async function runProgram(
  { launcher, launch }: Prepared,
  { script, input }: { readonly script: string; readonly input: string },
): Promise<{ readonly output: string; readonly exitCode: number | undefined }> {
  const call = { signal: AbortSignal.timeout(DEADLINE_MS) };
  await using handle = await launcher.launch({ ...launch, command: "sh", args: ["-c", script] }, call);
  const output = new Response(handle.stdout).text();
  const writer = handle.stdin.getWriter();
  // One that has ended does not read; its exit says how it went.
  await writer
    .write(Buffer.from(input))
    .then(() => writer.close())
    .catch(() => undefined);
  const { exitCode } = await handle.wait(call);
  return { output: await output, exitCode };
}
