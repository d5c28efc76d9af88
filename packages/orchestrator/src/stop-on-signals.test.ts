import { EventEmitter } from "node:events";
import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import { stopOnSignals } from "./stop-on-signals.ts";

describe("stopOnSignals", () => {
  const begin = () => {
    const source = new EventEmitter();
    const clock = createManualClock();
    const exits: number[] = [];
    const stop = stopOnSignals({ source, clock, exit: (exitCode) => exits.push(exitCode) });
    return { source, clock, exits, stop };
  };

  it("takes a burst of signals for one request to stop cleanly", async () => {
    const { source, clock, exits, stop } = begin();
    expect(stop.aborted).toBe(false);
    for (const name of ["SIGTERM", "SIGTERM", "SIGHUP"]) source.emit(name);
    await clock.advance(999);
    source.emit("SIGTERM");
    expect(stop.reason).toMatchObject({ reason: "SHUTTING_DOWN" });
    expect(exits).toEqual([]);
  });

  it("ends at once when it is asked again a second after the first time", async () => {
    const { source, clock, exits } = begin();
    source.emit("SIGTERM");
    await clock.advance(1000);
    source.emit("SIGINT");
    expect(exits).toEqual([130]);
  });
});
