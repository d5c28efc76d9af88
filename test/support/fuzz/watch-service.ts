import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { poll } from "../process.ts";

/** How long health takes to answer while inputs come. `end` fails if one call failed. */
export class HealthWatch {
  readonly #url: string;
  readonly #over = new AbortController();
  readonly #running: Promise<unknown>;
  slowestMs = 0;

  constructor(url: string) {
    this.#url = url;
    this.#running = this.#run().then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
  }

  async end(): Promise<void> {
    this.#over.abort();
    const failure = await this.#running;
    if (failure !== undefined) throw new Error("health did not answer", { cause: failure });
  }

  async #run(): Promise<void> {
    while (!this.#over.signal.aborted) {
      const begunMs = performance.now();
      const response = await fetch(`${this.#url}/grpc.health.v1.Health/Check`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: "{}",
      });
      await response.arrayBuffer();
      this.slowestMs = Math.max(this.slowestMs, performance.now() - begunMs);
      await delay(200);
    }
  }
}

const MIB = 1024 * 1024;

/** Memory of a process that is resident, in MiB. */
export function residentMib(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return (Number(kib) * 1024) / MIB;
}

/** Waits until a process has given back what a run took, to within `slackMib`. Fails if it does not. */
export async function memoryReturns(pid: number, beforeMib: number, slackMib: number): Promise<number> {
  let least = Infinity;
  const look = (): number | undefined => {
    least = Math.min(least, residentMib(pid));
    return least <= beforeMib + slackMib ? least : undefined;
  };
  return await poll(`process ${pid} to return to ${beforeMib.toFixed(0)} + ${slackMib} MiB`, look, 60_000, 500).catch(
    (thrown: unknown) => {
      throw new Error(`${String(thrown)}: ${least.toFixed(0)} MiB`);
    },
  );
}

/** Waits until no call is under way but the one that asks. */
export async function callsEnd(service: { readonly url: string; readonly token: string }): Promise<void> {
  const look = async (): Promise<true | undefined> => {
    const response = await fetch(`${service.url}/metrics`, { headers: { authorization: `Bearer ${service.token}` } });
    const counts = [...(await response.text()).matchAll(/^turnbox_rpc_in_flight\{.*\} (\d+)$/gm)];
    return counts.length > 0 && counts.every(([, count]) => count === "0") ? true : undefined;
  };
  await poll("all calls to end", look, 60_000, 250);
}
