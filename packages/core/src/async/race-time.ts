import { setAlarm } from "./alarm.ts";
import type { Clock } from "./clock.ts";

export interface RaceTimeOptions {
  readonly clock: Clock;
  /** How long the work is waited for at most. */
  readonly atMostMs: number;
}

/**
 * Waits until the work has ended, well or not, or the time has passed, and says which it was. The work itself goes on, and a failure
 * of it has a handler.
 */
export async function raceTime(
  work: PromiseLike<unknown>,
  { clock, atMostMs }: RaceTimeOptions,
): Promise<"ended" | "goes_on"> {
  return await new Promise((resolve) => {
    const turnOff = setAlarm(clock, atMostMs, () => {
      resolve("goes_on");
    });
    const end = (): void => {
      turnOff();
      resolve("ended");
    };
    work.then(end, end);
  });
}
