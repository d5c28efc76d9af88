import { expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import { createBootLoad } from "./boot-load.ts";

/** Boots that end on demand, and the callers that were woken because no boot is waited for. */
function newBootLoad() {
  const clock = createManualClock();
  const bootLoad = createBootLoad(clock);
  const settled: string[] = [];
  return {
    clock,
    bootLoad,
    settled,
    boot: () => {
      const booting = Promise.withResolvers<void>();
      const booted = bootLoad.run(() => booting.promise);
      return async (): Promise<void> => {
        booting.resolve();
        await booted;
      };
    },
    wait: (name: string, signal?: AbortSignal): void => {
      void bootLoad.calm(signal && { signal }).then(
        () => settled.push(name),
        () => settled.push(`${name} aborted`),
      );
    },
  };
}

it("is calm if nothing boots, also after a boot that failed", async () => {
  const { clock, bootLoad, settled, wait } = newBootLoad();
  await expect(bootLoad.run(() => Promise.reject(new Error("no boot")))).rejects.toThrow("no boot");
  wait("a");
  await clock.advance(0);
  expect(settled).toEqual(["a"]);
});

it("has who waits go on after the last boot", async () => {
  const { clock, settled, boot, wait } = newBootLoad();
  const [first, second] = [boot(), boot()];
  wait("a");
  await first();
  await clock.advance(1000);
  expect(settled).toEqual([]);
  await second();
  await clock.advance(100);
  expect(settled).toEqual(["a"]);
});

it("leaves a crowd of containers the time for what they were booted for", async () => {
  const { clock, settled, boot, wait } = newBootLoad();
  const ends = [boot(), boot(), boot()];
  await clock.advance(1000);
  for (const end of ends) await end();
  wait("a");
  await clock.advance(499);
  expect(settled).toEqual([]);
  await clock.advance(1);
  expect(settled).toEqual(["a"]);
});

it("bounds how long a caller waits, by a few seconds and by its signal", async () => {
  const { clock, settled, boot, wait } = newBootLoad();
  boot();
  const leaving = new AbortController();
  wait("a");
  wait("b", leaving.signal);
  leaving.abort();
  await clock.advance(4900);
  expect(settled).toEqual(["b aborted"]);
  await clock.advance(100);
  expect(settled).toEqual(["b aborted", "a"]);
});
