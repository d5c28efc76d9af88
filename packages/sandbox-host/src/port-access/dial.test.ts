import { PassThrough } from "node:stream";
import { describe, expect, it } from "@jest/globals";
import type { Execution, Runtime } from "../runtime/runtime.ts";
import type { Session } from "../session/session.ts";
import { createDial } from "./dial.ts";

const CALL = { signal: new AbortController().signal };

function rig() {
  const ends: (() => void)[] = [];
  const exec = (): Promise<Execution> => {
    const exit = Promise.withResolvers<{ readonly kind: "killed" }>();
    const end = (): void => {
      exit.resolve({ kind: "killed" });
    };
    ends.push(end);
    const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() };
    const kill = (): Promise<void> => {
      end();
      return Promise.resolve();
    };
    return Promise.resolve({ ...streams, exit: exit.promise, kill } as unknown as Execution);
  };
  const dial = createDial({ runtime: { exec } as unknown as Runtime, relay: (port) => ["relay", String(port)] });
  const sessionOf = (token: string) =>
    ({ row: { token, container: token, phase: { kind: "active" } } }) as unknown as Session;
  /** How many of so many connections the session gets. */
  const connect = async (token: string, count: number): Promise<number> => {
    let made = 0;
    for (let at = 0; at < count; at += 1)
      await dial(sessionOf(token), 80, CALL).then(
        () => (made += 1),
        () => 0,
      );
    return made;
  };
  return { connect, ends };
}

describe("connections to ports", () => {
  it("are shared: two sessions that ask for all of them leave a third to others", async () => {
    const { connect, ends } = rig();
    expect(await connect("hog-a", 256)).toBe(128);
    expect(await connect("hog-b", 256)).toBe(64);
    expect(await connect("quiet", 20)).toBe(20);
    for (const end of ends) end();
    await new Promise((resolve) => setImmediate(resolve));
    expect(await connect("quiet", 200)).toBe(128);
  });
});
