import { Socket } from "node:net";
import type { Readable } from "node:stream";

/** Outputs that background processes hold after their execution has ended; read to nowhere for as long as they last. */
export interface LingeringOutputs {
  add(this: void, source: Readable): void;
}

/** Holds at most `limit` of them: beyond it, the longest-held is closed, and its writers meet a broken pipe. */
export function createLingeringOutputs(limit: number): LingeringOutputs {
  const held = new Set<Readable>();
  return {
    add: (source) => {
      held.add(source);
      source.once("close", () => held.delete(source));
      // A socket that is only read to nowhere does not keep the service up.
      if (source instanceof Socket) source.unref();
      const [oldest] = held;
      if (held.size > limit) oldest?.destroy();
    },
  };
}
