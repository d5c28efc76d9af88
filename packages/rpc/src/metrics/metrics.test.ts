import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { createManualClock } from "@turnbox/core/testing";
import { createMetrics } from "./metrics.ts";
import { measure } from "./outcome.ts";

const TABLE = {
  calls: { kind: "counter", name: "t_calls_total", help: "Calls.", labels: ["outcome"] },
  plain: { kind: "counter", name: "t_plain_total", help: "Without labels.", labels: [] },
  seconds: { kind: "histogram", name: "t_seconds", help: "Time.", labels: ["kind"], bucketsSeconds: [0.5, 1] },
  open: { kind: "gauge", name: "t_open", help: "Open.", labels: ["state"] },
  broken: { kind: "gauge", name: "t_broken", help: "Broken.", labels: [] },
} as const;

const linesOf = async (metrics: { render(): Promise<{ text: string }> }): Promise<readonly string[]> =>
  (await metrics.render()).text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));

describe("createMetrics", () => {
  it("counts, times and reads gauges at each scrape", async () => {
    const metrics = createMetrics(TABLE);
    metrics.add("calls", { outcome: "ok" });
    metrics.add("calls", { outcome: "ok" }, 2);
    metrics.observe("seconds", { kind: "a" }, 0.75);
    let open = 1;
    metrics.collect("open", () => [{ labels: { state: "x" }, value: (open += 1) }]);
    const lines = await linesOf(metrics);
    expect(lines).toEqual(
      expect.arrayContaining([
        't_calls_total{outcome="ok"} 3',
        "t_plain_total 0",
        't_seconds_bucket{le="0.5",kind="a"} 0',
        't_seconds_bucket{le="1",kind="a"} 1',
        't_seconds_sum{kind="a"} 0.75',
        't_open{state="x"} 2',
      ]),
    );
    expect(await linesOf(metrics)).toContain('t_open{state="x"} 3');
  });

  it("drops label values that a gauge no longer has", async () => {
    const metrics = createMetrics(TABLE);
    let state = "old";
    metrics.collect("open", () => [{ labels: { state }, value: 1 }]);
    expect(await linesOf(metrics)).toContain('t_open{state="old"} 1');
    state = "new";
    const lines = await linesOf(metrics);
    expect(lines).toContain('t_open{state="new"} 1');
    expect(lines.join()).not.toContain("old");
  });

  it("leaves out a gauge that fails and shows the rest", async () => {
    const metrics = createMetrics(TABLE);
    metrics.collect("broken", () => Promise.reject(new Error("no")));
    metrics.collect("open", () => [{ labels: { state: "x" }, value: 1 }]);
    const lines = await linesOf(metrics);
    expect(lines).toContain('t_open{state="x"} 1');
    expect(lines.join()).not.toContain("t_broken");
  });

  it("keeps two services apart, and shows the process where asked to", async () => {
    const one = createMetrics(TABLE);
    const other = createMetrics(TABLE, { process: "shown" });
    one.add("plain", {});
    expect(await linesOf(other)).toContain("t_plain_total 0");
    expect((await linesOf(other)).join()).toContain("process_cpu_seconds_total");
    expect((await linesOf(one)).join()).not.toContain("process_cpu_seconds_total");
  });
});

describe("measure", () => {
  it("tells how it ended and how long it took", async () => {
    const clock = createManualClock();
    const told: unknown[] = [];
    const tell = (one: unknown): void => void told.push(one);
    const slow = measure(clock, () => clock.sleep(1500), tell);
    await clock.advance(1500);
    await slow;
    const failing = measure(clock, () => Promise.reject(new SandboxError("POOL_FULL", "full")), tell);
    await expect(failing).rejects.toThrow("full");
    expect(told).toEqual([
      { outcome: "ok", seconds: 1.5 },
      { outcome: "POOL_FULL", seconds: 0 },
    ]);
  });
});
