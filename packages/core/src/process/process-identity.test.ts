import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "@jest/globals";
import { identifyProcess, isLiving } from "./process-identity.ts";

const self = () => identifyProcess(process.pid) ?? { pid: 0, startTicks: "", bootId: "" };

describe("identifyProcess", () => {
  it("names a living process and none that has ended", async () => {
    const child = spawn("sleep", ["60"]);
    const identity = identifyProcess(child.pid ?? 0);
    expect(identity !== undefined && isLiving(identity)).toBe(true);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(identity === undefined || isLiving(identity)).toBe(false);
  });

  it("does not take a reused pid, or the same one after a reboot, for the same process", () => {
    expect(isLiving({ ...self(), startTicks: "1" })).toBe(false);
    expect(isLiving({ ...self(), bootId: "another" })).toBe(false);
  });
});
