import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/client";
import { reasonOf } from "../environment.suite.ts";
import { createSessionLife } from "./session-life.ts";

const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
const nothing = (): Promise<void> => Promise.resolve();
const unreachable = (): Promise<never> => Promise.reject(new SandboxError("HOST_UNREACHABLE", "no answer"));

describe("the life of a session", () => {
  it("that is destroyed while it is being made ends the making, and has nothing to remove", async () => {
    const life = createSessionLife();
    const removed: string[] = [];
    const creating = reasonOf(life.create(untilAborted));
    await life.destroy(async () => void removed.push("session"));
    expect([await creating, life.phase, removed]).toEqual(["SESSION_NOT_ACTIVE", "destroyed", []]);
  });

  it("that was made all the same, although its end was asked for, is removed", async () => {
    const life = createSessionLife();
    const removed: string[] = [];
    const made = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const make = (): Promise<void> => {
      begun.resolve();
      return made.promise;
    };
    const creating = reasonOf(life.create(make));
    await begun.promise;
    const destroying = life.destroy(async () => void removed.push("session"));
    made.resolve();
    await destroying;
    expect([await creating, life.phase, removed]).toEqual(["SESSION_NOT_ACTIVE", "destroyed", ["session"]]);
  });

  it("goes on where its end failed, and can be ended again", async () => {
    const life = createSessionLife();
    await life.create(nothing);
    expect(await reasonOf(Promise.all([life.destroy(unreachable), life.destroy(unreachable)]))).toBe(
      "HOST_UNREACHABLE",
    );
    expect([life.phase, await life.run("a call", async () => "done")]).toEqual(["live", "done"]);
    await life.destroy(nothing);
    expect(life.phase).toBe("destroyed");
  });

  it("has its lifecycle calls one after the other, and other calls beside them", async () => {
    const life = createSessionLife();
    await life.create(nothing);
    const first = Promise.withResolvers<void>();
    const order: string[] = [];
    const calls = [
      life.inTurn("first", () => first.promise).then(() => order.push("first")),
      life.inTurn("second", nothing).then(() => order.push("second")),
    ];
    await life.run("beside", async () => order.push("beside"));
    first.resolve();
    await Promise.all(calls);
    expect(order).toEqual(["beside", "first", "second"]);
  });

  it("ends for one who no longer waits, and goes on for the others", async () => {
    const life = createSessionLife();
    await life.create(nothing);
    const removal = Promise.withResolvers<void>();
    const patient = life.destroy(() => removal.promise);
    expect(await reasonOf(life.destroy(nothing, { signal: AbortSignal.abort() }))).toBe("CANCELLED");
    removal.resolve();
    await patient;
    expect(life.phase).toBe("destroyed");
  });
});
