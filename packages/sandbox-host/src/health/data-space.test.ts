import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import { DataSpace } from "./data-space.ts";

const MIB = 1024 * 1024;

describe("DataSpace", () => {
  it("refuses when the reserve is touched, warns before, and is healthy again when there is room", async () => {
    let free = 300 * MIB;
    const space = new DataSpace({
      directory: "/",
      clock: createManualClock(),
      reserveBytes: 100 * MIB,
      look: () => Promise.resolve(free),
    });
    const grade = async (bytes: number): Promise<string> => {
      free = bytes;
      await space.look();
      return space.judge().grade;
    };
    expect(await grade(300 * MIB)).toBe("healthy");
    expect(await grade(150 * MIB)).toBe("degraded");
    expect(() => {
      space.assertRoom();
    }).not.toThrow();
    expect(await grade(99 * MIB)).toBe("unhealthy");
    expect(space.judge().error).toBe(
      "the disk of the data directory has 99 MiB left, and 100 MiB are reserved for the records",
    );
    expect(() => {
      space.assertRoom();
    }).toThrow(expect.objectContaining({ reason: "DATA_DISK_FULL", admitted: "no" }));
    expect(await grade(300 * MIB)).toBe("healthy");
  });

  it("refuses nothing if the disk cannot be read", async () => {
    const space = new DataSpace({ directory: "/does/not/exist", clock: createManualClock(), reserveBytes: MIB });
    await space.look();
    expect(space.judge()).toEqual({ grade: "healthy", error: null });
  });
});
