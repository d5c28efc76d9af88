import { describe, expect, it } from "@jest/globals";
import { createLog } from "@turnbox/core";
import { logMembarrier } from "./log-membarrier.ts";

const CALL = { signal: AbortSignal.timeout(10_000) };

async function logged(stdout: string): Promise<string> {
  let text = "";
  const log = createLog({ name: "test", level: "info", to: { write: (line: string) => void (text += line) } });
  const answer = { exitCode: 0, stdout, stderr: "", droppedBytes: 0 };
  const runner = { run: () => Promise.resolve(answer), start: () => Promise.reject(new Error("not used")) };
  await logMembarrier({ runner, log }, CALL);
  return text;
}

describe("a host that starts", () => {
  it("logs that runsc starts slower if the kernel does not mask membarrier", async () => {
    expect(await logged("0")).toContain("membarrier is not masked");
  });

  it("logs nothing if it is masked", async () => {
    expect(await logged("38")).toBe("");
  });
});
