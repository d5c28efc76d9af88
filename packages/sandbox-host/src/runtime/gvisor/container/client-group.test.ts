import { expect, it } from "@jest/globals";
import { clientLimits } from "./client-group.ts";

it("bounds what waits for processes by how many there may be", () => {
  expect(clientLimits(0)).toEqual({ cpus: 1, memoryBytes: 64 * 1024 ** 2, pids: 64 });
  expect(clientLimits(64)).toEqual({ cpus: 1, memoryBytes: 1088 * 1024 ** 2, pids: 2112 });
});
