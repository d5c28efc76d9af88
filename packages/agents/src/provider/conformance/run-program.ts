import type { Prepared } from "../provider.ts";

const DEADLINE_MS = 30_000;

/** Runs a shell script in the runtime, as an agent is run, and answers with what it wrote. */
export async function runProgram(
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
