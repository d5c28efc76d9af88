import { describe, expect, it } from "@jest/globals";
import { createLog, SandboxError } from "@turnbox/core";
import { SIGNAL, startTestHost, type TestHost } from "../compose.suite.ts";
import type { Session } from "../session/session.ts";
import { freezeSessions } from "./shutdown.ts";

/** The result of the same call again: where it comes from, or why there is none. */
const again = (test: TestHost, session: Session): Promise<string> =>
  test.host
    .executeTool(found(test, session), {
      callId: "late",
      toolName: "bash",
      parameters: { cmd: "append /workspace/log late" },
      stdin: new Uint8Array(),
      expectedGeneration: undefined,
      kill: SIGNAL,
    })
    .then(
      ({ from }) => from,
      (thrown: unknown) => SandboxError.from(thrown).reason,
    );

function found(test: TestHost, session: Session): Session {
  const seen = test.host.registry.find(session.row.id);
  if (seen === undefined) throw new Error("the session is gone");
  return seen;
}

/** A host in boot `one` with a session whose call finished after its last snapshot. */
async function startWithCall(): Promise<{ readonly test: TestHost; readonly session: Session }> {
  const test = await startTestHost({}, { bootId: "one" });
  const session = await test.create();
  expect(await again(test, session)).toBe("run");
  return { test, session };
}

describe("a boot of the machine", () => {
  it("after a clean stop leaves every session its generation and every call its result", async () => {
    const { test, session } = await startWithCall();
    await using after = await test.stopAndStart({ bootId: "two" });
    expect(found(after, session).row.generation).toBe(1);
    expect(await again(after, session)).toBe("store");
  });

  it("puts calls in doubt where the service was started again after the clean stop, and crashed", async () => {
    const { test, session } = await startWithCall();
    const again1 = await test.stopAndStart({ bootId: "one" });
    await using after = await again1.restart({ bootId: "two" });
    expect(found(after, session).row.generation).toBe(2);
    expect(await again(after, session)).toBe("OUTCOME_UNKNOWN");
  });

  it("differs from an earlier one: a clean stop counts for the boot that follows it and for no later one", async () => {
    const { test, session } = await startWithCall();
    const second = await test.stopAndStart({ bootId: "two" });
    await using third = await second.restart({ bootId: "three" });
    expect(found(third, session).row.generation).toBe(2);
    expect(await again(third, session)).toBe("OUTCOME_UNKNOWN");
  });

  it("puts calls in doubt if the stop could not bring everything to the disk", async () => {
    const { test, session } = await startWithCall();
    test.storage.faults.failNext("flush", { error: new SandboxError("STORAGE_UNAVAILABLE", "no answer") });
    await using after = await test.stopAndStart({ bootId: "two" });
    expect(await again(after, session)).toBe("OUTCOME_UNKNOWN");
  });

  it("cannot follow a clean stop if a sandbox runs on", async () => {
    const { test } = await startWithCall();
    await using _test = test;
    const { registry } = test.host;
    const log = createLog({ name: "test", level: "silent", to: "stderr" });
    const pause = () => Promise.reject(new SandboxError("RUNTIME_UNAVAILABLE", "no answer"));
    expect(await freezeSessions({ registry, log, runtime: { ...test.runtime, pause } })).toBe("some_run");
    expect(await freezeSessions({ registry, log, runtime: test.runtime })).toBe("all_frozen");
  });
});
