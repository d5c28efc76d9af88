import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, it } from "@jest/globals";
import { Secret } from "../secret/secret.ts";
import { createLog, type LogOptions } from "./log.ts";

function createRecordedLog(level: LogOptions["level"] = "info") {
  const lines: string[] = [];
  const log = createLog({ name: "host", level, to: { write: (line) => void lines.push(line) } });
  return { log, lines };
}

describe("createLog", () => {
  it("writes one JSON object per line with name, level and time", () => {
    const { log, lines } = createRecordedLog();
    log.info({ sessionId: "s1" }, "session created");
    log.debug("not at this level");
    expect(lines).toHaveLength(1);
    const line = JSON.parse(lines[0] ?? "") as Record<string, unknown>;
    expect(line).toMatchObject({ name: "host", level: "info", sessionId: "s1", msg: "session created" });
    expect(Date.parse(String(line["time"]))).not.toBeNaN();
  });

  it("redacts secrets by type and credentials by name (attack 60)", () => {
    const { log, lines } = createRecordedLog();
    log.info({ home: new Secret("abc123"), headers: { authorization: "Bearer abc123" }, token: "abc123" }, "call");
    expect(lines.join("")).not.toContain("abc123");
    expect(lines.join("")).toContain("[redacted]");
  });

  it("keeps hostile text inside its line (attack 67)", () => {
    const { log, lines } = createRecordedLog();
    log.warn({ path: 'a\n{"level":"fatal"}\u001b[31m' }, "refused");
    expect(lines).toHaveLength(1);
    expect(lines[0]?.trimEnd()).not.toMatch(/[\n\u001b]/);
  });

  it("appends to a file of mode 0600, making its folder", () => {
    const folder = mkdtempSync(path.join(tmpdir(), "log-test-"));
    try {
      const file = path.join(folder, "logs", "host.log");
      createLog({ name: "host", level: "info", to: { path: file } }).info("first");
      createLog({ name: "host", level: "info", to: { path: file } }).info("second");
      expect(readFileSync(file, "utf8").trimEnd().split("\n")).toHaveLength(2);
      expect(statSync(file).mode & 0o777).toBe(0o600);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
