import { PassThrough } from "node:stream";
import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "../testing/manual-clock.ts";
import { parentDeath } from "./parent-watch.ts";

describe("parentDeath", () => {
  it("resolves when the process gets another parent", async () => {
    const clock = createManualClock();
    let parentPid = 100;
    let dead = false;
    const watch = parentDeath({
      clock,
      intervalMs: 500,
      signal: new AbortController().signal,
      currentParentPid: () => parentPid,
    }).then(() => {
      dead = true;
    });
    await clock.advance(5000);
    expect(dead).toBe(false);
    parentPid = 1;
    await clock.advance(500);
    await watch;
    expect(dead).toBe(true);
  });

  it("resolves at once if the parent died before the first look", async () => {
    const options = { clock: createManualClock(), intervalMs: 500, signal: new AbortController().signal };
    await parentDeath({ ...options, parentPid: 100, currentParentPid: () => 1 });
  });

  it("resolves when the pipe from the parent ends", async () => {
    const stdin = new PassThrough();
    const clock = createManualClock();
    const watch = parentDeath({ clock, intervalMs: 500, signal: new AbortController().signal, stdin });
    stdin.end("input that is not read");
    await watch;
    expect(clock.sleeping).toBe(0);
    expect(stdin.listenerCount("end")).toBe(0);
  });

  it("stops with the signal's reason", async () => {
    const controller = new AbortController();
    const reason = new Error("stopping");
    const watch = parentDeath({ clock: createManualClock(), intervalMs: 500, signal: controller.signal });
    controller.abort(reason);
    await expect(watch).rejects.toBe(reason);
  });
});
