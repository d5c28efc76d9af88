import { spawn } from "node:child_process";
import { createServer, type AddressInfo } from "node:net";

const START_TIMEOUT_MS = 60_000;
const POLL_MS = 50;

/** A model of AWS by others, as a process of its own. */
export interface MotoServer extends AsyncDisposable {
  readonly url: string;
  /** Forgets everything that was made. */
  reset(): Promise<void>;
}

export async function startMoto(python: string): Promise<MotoServer> {
  const port = await freePort();
  const child = spawn(python, ["-m", "moto.server", "-H", "127.0.0.1", "-p", String(port)], {
    stdio: ["ignore", "ignore", "ignore"],
    // Hundreds of images of others, which would be read again after each reset.
    env: { ...process.env, MOTO_EC2_LOAD_DEFAULT_AMIS: "false" },
  });
  const exited = new Promise<void>((resolve) => {
    child.once("exit", () => {
      resolve();
    });
  });
  const url = `http://127.0.0.1:${port}`;
  const end = async (): Promise<void> => {
    child.kill("SIGKILL");
    await exited;
  };
  const giveUpAtMs = performance.now() + START_TIMEOUT_MS;
  while (!(await answers(`${url}/moto-api/`))) {
    if (performance.now() > giveUpAtMs || child.exitCode !== null) {
      await end();
      throw new Error("moto's server does not answer");
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return {
    url,
    reset: async () => {
      await fetch(`${url}/moto-api/reset`, { method: "POST" });
    },
    [Symbol.asyncDispose]: end,
  };
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
