import { describe, expect, it } from "@jest/globals";
import { HOME, startTestHost } from "../compose.suite.ts";

describe("a storage that died", () => {
  it("costs a session its container, and its files go on under a new generation", async () => {
    const before = await startTestHost();
    const session = await before.create();
    await before.bash(session, "write /workspace/a kept");
    const { container } = session.row;
    before.storage.loseMounts([session.head]);
    await using after = await before.restart();
    const again = after.host.registry.get(session.row.id, HOME);
    expect(again.row.generation).toBe(2);
    expect((await after.bash(again, "cat /workspace/a")).content).toBe("kept");
    expect(again.row.container).not.toBe(container);
  });
});
