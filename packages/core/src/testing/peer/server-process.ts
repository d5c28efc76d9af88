import { spawn } from "node:child_process";
import { type AddressInfo, createServer } from "node:net";

const START_TIMEOUT_MS = 60_000;
const POLL_MS = 50;

/** A server by others that a test talks to, as a process of its own on a loopback port. Its disposal ends it. */
export interface ServerProcess extends AsyncDisposable {
  readonly url: string;
}

export interface ServerProgram {
  readonly name: string;
  readonly program: string;
  readonly argv: (port: number) => readonly string[];
  /** Beside the environment of the test. */
  readonly env: Readonly<Record<string, string>>;
  /** A path that the server answers without a failure when it serves. */
  readonly readyPath: string;
}

/** Starts a server and waits until it serves. */
export async function startServerProcess({
  name,
  program,
  argv,
  env,
  readyPath,
}: ServerProgram): Promise<ServerProcess> {
  const port = await freePort();
  const child = spawn(program, [...argv(port)], {
    stdio: ["ignore", "ignore", "ignore"],
    env: { ...process.env, ...env },
  });
  const exited = new Promise<void>((resolve) => {
    child.once("exit", () => {
      resolve();
    });
    child.once("error", () => {
      resolve();
    });
  });
  const url = `http://127.0.0.1:${port}`;
  const end = async (): Promise<void> => {
    child.kill("SIGKILL");
    await exited;
  };
  const giveUpAtMs = performance.now() + START_TIMEOUT_MS;
  while (!(await answers(`${url}${readyPath}`))) {
    if (performance.now() > giveUpAtMs || child.exitCode !== null || child.pid === undefined) {
      await end();
      throw new Error(`${name} does not answer`);
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return { url, [Symbol.asyncDispose]: end };
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false;
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
