import { SandboxError } from "@turnbox/core";
import type { SimProcess } from "./sim-process.ts";
import type { SimWorld } from "./world.ts";

/** A call from an orchestrator to something outside of it. */
export interface WireCall<T> {
  readonly process: SimProcess;
  readonly signal: AbortSignal;
  /** How long an answer is waited for before the line counts as broken. */
  readonly patienceMs: number;
  /** Whether nothing passes between the two at this moment, and how a sender notices. */
  readonly cut: () => "open" | "refused" | "silent";
  /** What the other side does when the request arrives. */
  readonly serve: () => Promise<T>;
}

const FAST_MS = [1, 8] as const;
const SLOW_MS = [500, 8000] as const;

/**
 * Sends a request over a bad line: it is delayed, lost, doubled, and so is its answer. Whoever sends learns nothing more
 * than over a real line: that nothing was sent, that something may have been, or the answer. A request whose sender has
 * left before it arrives is not served.
 */
export function send<T>(world: SimWorld, call: WireCall<T>): Promise<T> {
  const { timeline, chance } = world;
  const { process, signal } = call;
  const delayMs = (): number =>
    chance.happens(world.weather.slow) ? chance.between(...SLOW_MS) : chance.between(...FAST_MS);

  return new Promise<T>((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason as Error);
      return;
    }
    let isOver = false;
    const end = (settle: () => void): void => {
      if (isOver) return;
      isOver = true;
      patience.cancel();
      signal.removeEventListener("abort", onAbort);
      settle();
    };
    const onAbort = (): void => {
      end(() => {
        reject(leftBy(signal));
      });
    };
    const answer = (settle: () => void): void => {
      process.enter(() => {
        end(settle);
      });
    };
    const breakLine = (admitted: "no" | "unknown"): void => {
      answer(() => {
        reject(unreachable(admitted));
      });
    };
    const patience = timeline.after(call.patienceMs, () => {
      breakLine("unknown");
    });
    signal.addEventListener("abort", onAbort, { once: true });

    const carryBack = (settle: () => void): void => {
      const isLost = chance.happens(world.weather.lostAnswer);
      timeline.after(delayMs(), () => {
        if (call.cut() !== "open") return;
        if (!isLost) answer(settle);
        else if (chance.happens(0.5)) breakLine("unknown");
      });
    };
    const arrive = (isDouble: boolean): void => {
      if (isOver || call.cut() !== "open") return;
      call.serve().then(
        (result) => {
          if (isDouble) return;
          carryBack(() => {
            resolve(result);
          });
        },
        (error: unknown) => {
          if (isDouble) return;
          carryBack(() => {
            reject(SandboxError.from(error));
          });
        },
      );
    };

    if (call.cut() === "refused") {
      timeline.after(delayMs(), () => {
        breakLine("no");
      });
      return;
    }
    if (chance.happens(world.weather.lostRequest)) {
      if (chance.happens(0.5)) timeline.after(delayMs(), () => breakLine("unknown"));
      return;
    }
    const arrivesInMs = delayMs();
    timeline.after(arrivesInMs, () => {
      arrive(false);
    });
    if (chance.happens(world.weather.duplicate)) {
      timeline.after(arrivesInMs + delayMs(), () => {
        arrive(true);
      });
    }
  });
}

export function unreachable(admitted: "no" | "unknown"): SandboxError {
  const why = admitted === "no" ? "cannot be connected to" : "did not answer, or the connection broke";
  return new SandboxError("HOST_UNREACHABLE", `the other side ${why}`, { admitted });
}

/** As the adapter of real hosts does: the caller's own reason, with an outcome that is not known. */
function leftBy(signal: AbortSignal): SandboxError {
  const { reason, message } = SandboxError.from(signal.reason);
  return new SandboxError(reason === "INTERNAL" ? "CANCELLED" : reason, message, {
    admitted: "unknown",
    cause: signal.reason,
  });
}
