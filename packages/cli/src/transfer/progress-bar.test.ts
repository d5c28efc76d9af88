import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import { createProgressBar, formatProgress } from "./progress-bar.ts";

describe("a progress bar", () => {
  it("shows how much of it is done and how fast, and only the amount where the whole is not known", () => {
    const half = { doneBytes: 1024, totalBytes: 2048, elapsedMs: 500 };
    expect(formatProgress(half)).toBe(`[${"#".repeat(12)}${"-".repeat(12)}]  50%  1.0 KiB of 2.0 KiB  2.0 KiB/s`);
    expect(formatProgress({ ...half, totalBytes: undefined })).toBe("1.0 KiB  2.0 KiB/s");
  });

  it("stays on one line of a narrow terminal, clears it at its end, and is drawn nowhere else", () => {
    const draw = (stream: { readonly isTTY: boolean; readonly columns: number }): string => {
      let written = "";
      const write = (bytes: string | Uint8Array): void => void (written += String(bytes));
      const clock = createManualClock();
      {
        using bar = createProgressBar({ stream: { ...stream, write }, clock, show: "on terminals" });
        bar.expect(4096);
        bar.add(1024);
      }
      return written;
    };
    expect(draw({ isTTY: true, columns: 20 })).toBe(`\r[${"#".repeat(6)}${"-".repeat(12)}\u001b[K\r\u001b[K`);
    expect(draw({ isTTY: false, columns: 20 })).toBe("");
  });
});
