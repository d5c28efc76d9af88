import type { Clock } from "@turnbox/core";
import { Turnbox } from "../turnbox/turnbox.ts";
import { connectServices, type Fault, NOW_MS, type SeenCall, type Services } from "./connect-services.ts";

export interface LibraryHarness extends Disposable {
  readonly turnbox: Turnbox;
  readonly calls: SeenCall[];
  /** What happens to the next calls of a method, one after the other. */
  readonly faults: Map<string, Fault[]>;
  /** Addresses whose connections were closed. */
  readonly closed: string[];
  /** How long was slept between attempts. */
  readonly sleptMs: number[];
  /** The fields of the requests of a method. */
  sent(method: string): readonly Readonly<Record<string, unknown>>[];
}

/** Sleeps from here on are deadlines, which do not pass in a test. */
const DEADLINE_MS = 1000;

/** The library over services in memory, on a clock whose short waits take no time. */
export function createLibraryHarness(
  services: Services,
  { clock: ownClock }: { readonly clock?: Clock } = {},
): LibraryHarness {
  const calls: SeenCall[] = [];
  const faults = new Map<string, Fault[]>();
  const closed: string[] = [];
  const sleptMs: number[] = [];
  const connect = connectServices(services, { calls, faults, closed });
  const clock = ownClock ?? createJumpingClock(sleptMs);
  const turnbox = Turnbox.connect({ url: "http://127.0.0.1:7700", token: "server-token", env: {}, connect, clock });
  return {
    turnbox,
    calls,
    faults,
    closed,
    sleptMs,
    sent: (method) =>
      calls.flatMap((call) => (call.method === method ? [call.message as Readonly<Record<string, unknown>>] : [])),
    [Symbol.dispose]: () => {
      turnbox.close();
    },
  };
}

function createJumpingClock(sleptMs: number[]): Clock {
  let monotonicMs = 0;
  return {
    nowMs: () => NOW_MS + monotonicMs,
    monotonicMs: () => monotonicMs,
    sleep: async (ms, { signal } = {}) => {
      if (ms >= DEADLINE_MS) {
        await new Promise((_, reject) => signal?.addEventListener("abort", reject));
      }
      await new Promise((resolve) => setImmediate(resolve));
      signal?.throwIfAborted();
      sleptMs.push(ms);
      monotonicMs += ms;
    },
  };
}
