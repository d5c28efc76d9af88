import { isDeepStrictEqual } from "node:util";
import { type Clock, setAlarm } from "@turnbox/core";
import type { ContainerSpec } from "../../runtime.ts";
import type { SpareShape } from "./spare-sandbox.ts";

/**
 * Spare sandboxes, one at a time, for a container that a caller waits for: the container's own boot in one takes about half
 * as long. One is made some time after such a boot, like what that one asked for.
 */
export interface Spares {
  /** One that this container fits into. It is the caller's, who boots the container in it or removes it. */
  take(spec: ContainerSpec): string | undefined;
  /** Says that a container was booted for a caller that waited. */
  expect(spec: ContainerSpec): void;
  /** Ends the spare, and makes no more. */
  close(): Promise<void>;
}

export interface SparesOptions {
  readonly newId: () => string;
  readonly boot: (id: string, shape: SpareShape, signal: AbortSignal) => Promise<void>;
  readonly remove: (id: string) => Promise<void>;
  /** Freezes one, unless it has been taken by the time that it could. */
  readonly freeze: (id: string, isReady: () => boolean) => Promise<void>;
  /** Settles when no caller waits for a boot. */
  readonly calm: (call: { readonly signal: AbortSignal }) => Promise<void>;
  readonly clock: Clock;
}

/** What the container was booted for comes first. */
const DELAY_MS = 500;
/** A frozen one is slower to begin with, by some 10 ms; a caller that comes so late has other things to wait for. */
const FREEZE_AFTER_MS = 60_000;
/** When it cannot be done, it is not tried again and again. */
const MAX_FAILURES = 3;

export function createSpares({ newId, boot, remove, freeze, calm, clock }: SparesOptions): Spares {
  const stop = new AbortController();
  let ready: { readonly id: string; readonly shape: SpareShape } | undefined;
  let making: Promise<void> | undefined;
  let failures = 0;
  let turnOff = (): void => undefined;

  const make = async (shape: SpareShape): Promise<void> => {
    await clock.sleep(DELAY_MS, { signal: stop.signal });
    await calm({ signal: stop.signal });
    const id = newId();
    await boot(id, shape, stop.signal);
    ready = { id, shape };
    turnOff();
    turnOff = setAlarm(clock, FREEZE_AFTER_MS, () => {
      if (ready?.id === id) freeze(id, () => ready?.id === id).catch(() => undefined);
    });
  };
  return {
    take: (spec) => {
      if (ready === undefined || spec.network !== undefined || !isDeepStrictEqual(ready.shape, shapeOf(spec)))
        return undefined;
      const { id } = ready;
      ready = undefined;
      turnOff();
      return id;
    },
    expect: (spec) => {
      if (stop.signal.aborted || making !== undefined || failures >= MAX_FAILURES || spec.network !== undefined) return;
      const shape = shapeOf(spec);
      if (isDeepStrictEqual(ready?.shape, shape)) return;
      const [old] = [ready];
      ready = undefined;
      making = (old === undefined ? Promise.resolve() : remove(old.id))
        .then(() => make(shape))
        .catch(() => {
          if (!stop.signal.aborted) failures += 1;
        })
        .finally(() => {
          making = undefined;
        });
    },
    close: async () => {
      stop.abort();
      await making;
      turnOff();
      const last = ready;
      ready = undefined;
      if (last !== undefined) await remove(last.id);
    },
  };
}

const shapeOf = ({ hostname, limits }: ContainerSpec): SpareShape => ({ hostname, limits });
