import { type ChildProcess, spawn } from "node:child_process";
import { copyFile, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { ended, poll, REPO } from "./process.ts";
import { environment } from "./server.ts";

const ENTRY = join(REPO, "packages/orchestrator/bin/turnbox-orchestrator.mjs");
const READY_MS = 60_000;

/** A real orchestrator of its own home, without hosts of its own. */
export interface TestOrchestrator extends AsyncDisposable {
  readonly home: string;
  readonly url: string;
  readonly token: string;
  /** The value of a metric without labels. */
  metric(name: string): Promise<number>;
  /** What it has logged in this home, also before it was last started. */
  logged(): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** kill -9. */
  kill(): Promise<void>;
}

/** Starts an orchestrator and waits for its ready line. Its owner removes the home. */
export async function startOrchestrator(
  home: string,
  env: Readonly<Record<string, string>>,
): Promise<TestOrchestrator> {
  const child = spawn(process.execPath, [ENTRY, "serve", "--home", home, "--port", "0"], {
    cwd: REPO,
    env: environment(home, env),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exit = ended(child);
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await exit;
  };
  try {
    const url = await readyUrl(child);
    const token = (await readFile(join(home, "token"), "utf8")).trim();
    return {
      home,
      url,
      token,
      metric: async (name) => {
        const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
        const value = new RegExp(`^${name} (\\S+)$`, "m").exec(await response.text())?.[1];
        if (value === undefined) throw new Error(`there is no metric ${name}: ${String(response.status)}`);
        return Number(value);
      },
      logged: () => readLog(home),
      kill: () => end("SIGKILL"),
      [Symbol.asyncDispose]: () => end("SIGTERM"),
    };
  } catch (thrown) {
    await end("SIGKILL");
    throw thrown;
  }
}

async function readyUrl(child: ChildProcess): Promise<string> {
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk: Buffer) => (output += chunk.toString()));
  return await poll(
    "the ready line",
    () => {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`the orchestrator ended: ${output}`);
      return /^turnbox ready (http:\S+)$/m.exec(output)?.[1];
    },
    READY_MS,
  );
}

async function readLog(home: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const text = await readFile(join(home, "logs", "orchestrator.log"), "utf8");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
}

/** Makes a home of the same fleet out of another one, as an operator does for a further replica. */
export async function copyFleet(from: string, to: string): Promise<void> {
  await mkdir(join(to, "keys"), { recursive: true, mode: 0o700 });
  for (const file of ["home.json", "token", "keys/signing-key.pem"]) await copyFile(join(from, file), join(to, file));
}
