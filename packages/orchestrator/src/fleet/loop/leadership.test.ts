import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { createManualClock } from "@turnbox/core/testing";
import { pino } from "pino";
import { createFakeStore } from "../../store/fake/fake-store.ts";
import { Leadership } from "./leadership.ts";

const CALL = { signal: new AbortController().signal };

function setUp() {
  const clock = createManualClock();
  const store = createFakeStore({ clock });
  const lead = (holder: string) =>
    new Leadership({ store, holder, ttlMs: 15_000, clock, logger: pino({ level: "silent" }) });
  return { clock, store, lead };
}

describe("Leadership", () => {
  it("keeps the lease while it runs, and gives it up at the end", async () => {
    const { clock, lead } = setUp();
    const over = new AbortController();
    const first = lead("a");
    const running = first.run({ signal: over.signal });
    await clock.advance(120_000);
    expect(first.lead?.epoch).toBe(1);
    expect(await lead("b").hold(CALL)).toBeUndefined();
    over.abort();
    await running;
    expect((await lead("b").hold(CALL))?.epoch).toBe(2);
  });

  it("stops what goes on before anybody else can lead, when the lease cannot be renewed", async () => {
    const { clock, store, lead } = setUp();
    const first = lead("a");
    const over = new AbortController();
    const running = first.run({ signal: over.signal });
    await clock.advance(1000);
    const signal = first.lead?.signal;
    const { acquireLease } = store;
    store.acquireLease = () => Promise.reject(new SandboxError("OVERLOADED", "the store is away"));
    await clock.advance(14_000);
    expect(signal?.aborted).toBe(true);
    store.acquireLease = acquireLease;
    expect((await lead("b").hold(CALL))?.epoch).toBe(2);
    over.abort();
    await running;
  });
});
