import { describe, expect, it } from "@jest/globals";
import { createChildCommandRunner } from "@turnbox/core";
import { readMembarrier } from "./read-membarrier.ts";

const runner = createChildCommandRunner();
const call = { signal: AbortSignal.timeout(20_000) };

describe("readMembarrier", () => {
  it("knows whether membarrier(2) is masked", async () => {
    // This process may itself have been started without it.
    expect(await readMembarrier(runner, call)).not.toBe("unknown");
  });

  it("reads the error of the system call as masked, and everything else as open", async () => {
    const printing = (stdout: string) => ({
      start: () => Promise.reject(new Error("not used")),
      run: () => Promise.resolve({ exitCode: 0, stdout, stderr: "", droppedBytes: 0 }),
    });
    expect(await readMembarrier(printing("38"), call)).toBe("masked");
    expect(await readMembarrier(printing("0"), call)).toBe("open");
  });

  it("does not know when nothing can ask", async () => {
    const failing = { ...runner, run: () => Promise.reject(new Error("no perl")) };
    expect(await readMembarrier(failing, call)).toBe("unknown");
  });
});
