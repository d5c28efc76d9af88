import { createServer, type AddressInfo } from "node:net";
import { poll } from "../process.ts";

/** Environment of a service whose garbage the test collects, and the port of its inspector, which is closed until then. */
export interface Collectable {
  readonly env: { readonly NODE_OPTIONS: string };
  readonly port: number;
}

export async function collectable(): Promise<Collectable> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return { env: { NODE_OPTIONS: `--inspect-port=127.0.0.1:${port}` }, port };
}

const OPEN_MS = 30_000;

/** Has a Node process collect its garbage, so that its memory is what it holds. An idle process does that only much later. */
export async function collectGarbage(pid: number, { port }: Collectable): Promise<void> {
  process.kill(pid, "SIGUSR1");
  const url = await poll("the inspector to open", () => inspectorUrl(port), OPEN_MS);
  const socket = new WebSocket(url);
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", reject);
  });
  const answered = new Promise((resolve) => {
    socket.addEventListener("message", resolve);
  });
  socket.send(JSON.stringify({ id: 1, method: "HeapProfiler.collectGarbage" }));
  await answered;
  socket.close();
}

async function inspectorUrl(port: number): Promise<string | undefined> {
  try {
    const targets = (await (await fetch(`http://127.0.0.1:${port}/json`)).json()) as readonly Target[];
    return targets[0]?.webSocketDebuggerUrl;
  } catch {
    return undefined;
  }
}

interface Target {
  readonly webSocketDebuggerUrl: string;
}
