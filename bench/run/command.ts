import { type StdioOptions, spawn } from "node:child_process";

/** No bare tool takes longer than this. */
const DEADLINE_MS = 120_000;

/** Runs a program that must succeed; answers with its output. */
export async function command(program: string, args: readonly string[]): Promise<string> {
  const child = spawn(program, [...args], { stdio: ["ignore", "pipe", "pipe"], cwd: "/", timeout: DEADLINE_MS });
  const texts = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name].on("data", (chunk: Buffer) => (texts[name] += chunk.toString()));
  await success(child, `${program} ${args.join(" ")}`, () => texts.stderr);
  return texts.stdout;
}

/** The same for one that leaves a process behind, which would hold pipes open. */
export async function commandWithout(stdio: StdioOptions, program: string, args: readonly string[]): Promise<void> {
  const child = spawn(program, [...args], { stdio, cwd: "/", timeout: DEADLINE_MS });
  await success(child, `${program} ${args.join(" ")}`, () => "");
}

async function success(child: ReturnType<typeof spawn>, what: string, stderr: () => string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  child.once("error", reject);
  child.once("close", resolve);
  const exitCode = await promise;
  if (exitCode !== 0) throw new Error(`${what}: exit ${String(exitCode)}: ${stderr().slice(-2000)}`);
}
