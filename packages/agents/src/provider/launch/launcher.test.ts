import { describe, expect, it } from "@jest/globals";
import { createDirectorySandbox } from "./directory-sandbox.suite.ts";
import { createLocalLauncher } from "./local-launcher.ts";
import { describeLauncher } from "./launcher.suite.ts";
import { createTurnboxLauncher } from "./turnbox-launcher.ts";

describeLauncher("createLocalLauncher", (root, clock) => createLocalLauncher({ root, clock }));
describeLauncher("createTurnboxLauncher", (root, clock) =>
  createTurnboxLauncher(createDirectorySandbox(), { root, clock }),
);

describe("createLocalLauncher", () => {
  it("has a pid, and says what cannot be started", async () => {
    const launcher = createLocalLauncher({ root: "/" });
    await using handle = await launcher.launch({ command: "sleep", args: ["1000"] });
    expect(handle.pid).toBeGreaterThan(0);
    await expect(launcher.launch({ command: "no-such-program" })).rejects.toMatchObject({ reason: "COMMAND_MISSING" });
    await expect(launcher.launch({ command: "true", args: ["a\0b"] })).rejects.toMatchObject({
      reason: "INVALID_ARGUMENT",
    });
    await expect(launcher.launch({ command: "true" }, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      reason: "CANCELLED",
    });
  });
});
