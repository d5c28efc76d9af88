import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createLog, openHome, systemClock } from "@turnbox/core";
import { composeOrchestrator } from "./compose.ts";
import { loadConfig } from "./config.ts";
import type { Orchestrator } from "./running-orchestrator.ts";

const CALL = { signal: new AbortController().signal };
const STATIC = { TURNBOX_PROVISIONER: "static", TURNBOX_STATIC_HOSTS: "h1=http://127.0.0.1:9", TURNBOX_PORT: "0" };

let home = "";
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "turnbox-compose-"));
});
afterEach(() => {
  rmSync(home, { recursive: true });
});

const compose = (env: Readonly<Record<string, string>>): Promise<Orchestrator> =>
  composeOrchestrator(
    {
      config: loadConfig(home, env),
      home,
      homeInfo: openHome(home),
      hostEntry: "/nowhere",
      hostEnv: {},
      clock: systemClock,
      log: createLog({ name: "test", level: "silent", to: { write: () => undefined } }),
    },
    CALL,
  );

/** The threads, sockets and servers of this process; its pipes are those of the test runner. */
const open = (): readonly string[] =>
  process
    .getActiveResourcesInfo()
    .filter((kind) => /^(MessagePort|TCP)/.test(kind))
    .sort();

async function expectNothingMore(before: readonly string[]): Promise<void> {
  const giveUpAt = performance.now() + 10_000;
  while (open().length > before.length && performance.now() < giveUpAt) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(open()).toEqual(before);
}

describe("composeOrchestrator", () => {
  it("leaves nothing open when it is disposed of", async () => {
    const before = open();
    const orchestrator = await compose(STATIC);
    expect(open()).toEqual([...before, "MessagePort", "TCPServerWrap"].sort());
    await orchestrator.launchHosts(CALL);
    await orchestrator[Symbol.asyncDispose]();
    await expectNothingMore(before);
  });

  it("leaves nothing open if its store cannot be opened", async () => {
    openHome(home);
    mkdirSync(join(home, "fleet.db"));
    const before = open();
    await expect(compose(STATIC)).rejects.toThrow();
    await expectNothingMore(before);
  });

  it("closes its store if its provisioner cannot be made", async () => {
    const before = open();
    await expect(compose({ TURNBOX_PROVISIONER: "ec2" })).rejects.toMatchObject({ reason: "CONFIG_INVALID" });
    await expectNothingMore(before);
  });

  it("ends its fleet, its background and its store if it cannot listen", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const port = typeof address === "object" ? String(address?.port) : "";
    try {
      const before = open();
      await expect(compose({ ...STATIC, TURNBOX_PORT: port })).rejects.toThrow();
      await expectNothingMore(before);
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });
});
