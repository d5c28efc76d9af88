import { describe, expect, it } from "@jest/globals";
import { startTestHost } from "../compose.suite.ts";
import { CALL, ended, launch } from "./process.suite.ts";

describe("killProcess", () => {
  it("sends a signal, and none to a process that has ended", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const process = await launch(test, session, "sleep");
    await test.host.killProcess(session, process, { signal: 15 }, CALL);
    expect(await ended(process)).toMatchObject({ reason: "signaled", signal: 15, exitCode: null });
    await test.host.killProcess(session, process, { signal: 9 }, CALL);
    expect(process.row.end).toMatchObject({ signal: 15 });
  });
});
