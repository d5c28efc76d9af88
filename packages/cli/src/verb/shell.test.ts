import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createHarness, type Harness } from "../cli-harness.suite.ts";
import { createServices, type FakeSandbox, newSandbox, newWorld, routeSandbox, type World } from "@turnbox/client/fake";
import type { InputStream } from "../surroundings.ts";

let world: World;

let sandbox: FakeSandbox;

let harness: Harness;

beforeEach(async () => {
  world = newWorld();
  sandbox = newSandbox();
  const services = createServices(world);
  harness = await createHarness({
    ...services,
    host: (router) => {
      services.host(router);
      routeSandbox(router, sandbox);
    },
  });
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

/** A terminal on which these keys are typed, and then nothing more. */
function keyboard(keys: readonly string[]): InputStream & { readonly modes: boolean[] } {
  const modes: boolean[] = [];
  return {
    modes,
    isTTY: true,
    setRawMode: async (raw) => {
      modes.push(raw);
      await Promise.resolve();
    },
    async *[Symbol.asyncIterator]() {
      for (const key of keys) yield await Promise.resolve(Buffer.from(key));
      await new Promise(() => undefined);
    },
  };
}

describe("turnbox shell", () => {
  it("gives every key to a program on a terminal of this one's size, and the terminal back", async () => {
    sandbox.output = "$ ";
    sandbox.exitCode = 5;
    const stdin = keyboard(["ls\r", "\u0003", "exit\r"]);
    const stdout = { isTTY: true, columns: 100, rows: 30 } as const;
    const ran = await harness.run(["shell", "web"], { stdin, stdout, variables: { TERM: "screen" } });
    expect(ran).toMatchObject({ exitCode: 5, stdout: "$ ", stderr: "" });
    expect(sandbox.launched).toMatchObject([
      { binary: "bash", env: { TERM: "screen" }, terminal: { columns: 100, rows: 30 } },
    ]);
    expect(sandbox.typed).toBe("ls\r\u0003exit\r");
    expect(stdin.modes).toEqual([true, false]);
  });

  it("follows the terminal's size", async () => {
    const stdin = keyboard([]);
    const listeners = new Set<() => void>();
    const stdout = {
      isTTY: true as const,
      columns: 100,
      rows: 30,
      on: (_event: "resize", listener: () => void) => listeners.add(listener),
      off: (_event: "resize", listener: () => void) => listeners.delete(listener),
    };
    const running = harness.run(["shell", "web"], {
      stdin: {
        ...stdin,
        async *[Symbol.asyncIterator]() {
          for (const listener of listeners) listener();
          yield await Promise.resolve(Buffer.from("exit\r"));
        },
      },
      stdout,
    });
    expect((await running).exitCode).toBe(0);
    expect(sandbox.sizes.length).toBe(2);
    expect(listeners.size).toBe(0);
  });

  it("gives the terminal back in its usual modes when it is cut off, and hangs the program up", async () => {
    sandbox.output = "\u001b[?1049h";
    const stdin = keyboard([]);
    const onStdout = () => harness.interrupt("SIGTERM");
    const ran = await harness.run(["shell", "web"], { stdin, stdout: { isTTY: true }, onStdout });
    expect(ran.exitCode).toBe(130);
    expect(stdin.modes).toEqual([true, false]);
    expect(ran.stdout).toMatch(/\u001b\[\?1049h\u001b\[\?1049l.*\u001b\[\?25h/);
    expect(sandbox.signals).toEqual([1]);
  });

  it("leaves the program running on Ctrl-]", async () => {
    const stdin = keyboard(["ab\u001dcd"]);
    const ran = await harness.run(["shell", "web"], { stdin, stdout: { isTTY: true } });
    expect(ran.exitCode).toBe(0);
    expect(ran.stderr).toContain("turnbox attach web 1abc");
    expect([sandbox.typed, sandbox.signals, stdin.modes]).toEqual(["ab", [], [true, false]]);
  });

  it("fails with 125, as exec does, where there is no such sandbox", async () => {
    expect((await harness.run(["shell", "nope"])).exitCode).toBe(125);
  });
});
