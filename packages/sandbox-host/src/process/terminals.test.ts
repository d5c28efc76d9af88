import { describe, expect, it } from "@jest/globals";
import { startTestHost } from "../compose.suite.ts";
import { CALL, ended, launch, outputOf, until } from "./process.suite.ts";

describe("Terminals", () => {
  it("end with the service", async () => {
    await using first = await startTestHost();
    const session = await first.create({ sessionId: "s" });
    const terminal = { columns: 80, rows: 24 };
    const process = await launch(first, session, "cat", [], { terminal });
    expect(await first.host.terminals.type(process, { offset: 0, data: Buffer.from("ls") }, CALL)).toBe(2);
    expect(await first.host.terminals.type(process, { offset: 0, data: Buffer.from("ls -l") }, CALL)).toBe(5);
    await until(async () => (await process.journal.extent()).end === 5);
    const other = await launch(first, session, "sleep", [], { terminal });
    await first.host.killProcess(session, other, { signal: 2 }, CALL);
    expect(await ended(other)).toMatchObject({ reason: "signaled", signal: 2 });
    await using second = await first.restart();
    const again = second.host.registry.find("s");
    if (again === undefined) throw new Error("the session is gone");
    const found = second.host.processes.get(again, process.row.processId);
    expect(found.row.end).toMatchObject({ reason: "terminal_closed" });
    expect(await outputOf(second, found)).toBe("ls -l");
  });

  it("are bounded in number, and one that ends makes room", async () => {
    await using test = await startTestHost();
    const session = await test.create({ sessionId: "s" });
    const terminal = { columns: 80, rows: 24 };
    const processes = await Promise.all(
      Array.from({ length: 16 }, () => launch(test, session, "sleep", [], { terminal })),
    );
    await expect(launch(test, session, "sleep", [], { terminal })).rejects.toMatchObject({ reason: "OVERLOADED" });
    await launch(test, await test.create({ sessionId: "other" }), "sleep", [], { terminal });
    const [first] = processes;
    if (first === undefined) throw new Error("nothing was launched");
    await test.host.killProcess(session, first, { signal: 9 }, CALL);
    await ended(first);
    await launch(test, session, "sleep", [], { terminal });
  });
});
