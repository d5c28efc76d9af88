import { describe, expect, it } from "@jest/globals";
import { createLayout } from "./layout.ts";

const options = { homeId: "0123456789abcdef", poolDirectory: "/h/pool", mountRoot: "/h/mnt" };

describe("createLayout", () => {
  it("derives the pool's name from the home, unless an operator has chosen names", () => {
    expect(createLayout(options)).toMatchObject({ pool: "tbx0123456789", sessions: "tbx0123456789/sessions" });
    const chosen = createLayout({
      ...options,
      poolName: "tank-1",
      basesDataset: "images",
      sessionsDataset: "agents_2.x",
    });
    expect(chosen).toMatchObject({ pool: "tank-1", bases: "tank-1/images", sessions: "tank-1/agents_2.x" });
    expect(chosen.head({ token: "t", generation: 3 })).toBe("tank-1/agents_2.x/t/g3");
  });

  it.each([
    [{ poolName: "a/b" }, "poolName"],
    [{ poolName: "Tank" }, "poolName"],
    [{ poolName: "" }, "poolName"],
    [{ poolName: "1tank" }, "poolName"],
    [{ poolName: "mirror" }, "poolName"],
    [{ poolName: "x".repeat(64) }, "poolName"],
    [{ basesDataset: "a b" }, "basesDataset"],
    [{ basesDataset: "-r" }, "basesDataset"],
    [{ basesDataset: "views" }, "basesDataset"],
    [{ basesDataset: "sessions" }, "sessionsDataset"],
    [{ sessionsDataset: "journals" }, "sessionsDataset"],
    [{ sessionsDataset: "reserved" }, "sessionsDataset"],
    [{ sessionsDataset: "a@b" }, "sessionsDataset"],
  ])("refuses %j", (names, field) => {
    expect(() => createLayout({ ...options, ...names })).toThrow(
      expect.objectContaining({ reason: "INVALID_ARGUMENT", metadata: expect.objectContaining({ field }) }),
    );
  });
});
