import { SandboxError } from "@turnbox/core";
import { whileWanted } from "../../async/while-wanted.ts";

/** Who still waits for a piece of work that several may have asked for. */
export interface SharedCall {
  /** Aborts when all who followed the work have left. */
  readonly signal: AbortSignal;
  /** Waits for the work as long as this caller wants. */
  follow<T>(work: Promise<T>, caller: AbortSignal): Promise<T>;
}

export function createSharedCall(): SharedCall {
  const nobody = new AbortController();
  let followers = 0;
  return {
    signal: nobody.signal,
    follow: async (work, caller) => {
      followers += 1;
      try {
        return await whileWanted(work, caller);
      } finally {
        followers -= 1;
        if (followers === 0) {
          nobody.abort(new SandboxError("CANCELLED", "nobody waits for it any more", { admitted: "no" }));
        }
      }
    },
  };
}
