import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "@jest/globals";
import type { MetricTable } from "@turnbox/rpc/metrics";
import { FLEET_METRICS } from "../../packages/orchestrator/src/metrics/fleet-metrics.ts";
import { HOST_METRICS } from "../../packages/sandbox-host/src/rpc/metrics/host-metrics.ts";
import { root } from "../../scripts/bootstrap/layout.mjs";

const tables: readonly MetricTable[] = [FLEET_METRICS, HOST_METRICS];
const specs = [...new Map(tables.flatMap((table) => Object.values(table)).map((spec) => [spec.name, spec])).values()];

/** The rows of docs/OPERATIONS.md that describe a metric: name, type, labels. */
function documented(): readonly (readonly [string, string, string])[] {
  const text = readFileSync(path.join(root, "docs/OPERATIONS.md"), "utf8");
  return text
    .split("\n")
    .filter((line) => line.startsWith("| `turnbox_"))
    .map((line) => line.split("|").map((cell) => cell.trim()))
    .map(([, name = "", kind = "", labels = ""]) => [name.replaceAll("`", ""), kind, labels.replaceAll("`", "")]);
}

describe("metrics", () => {
  it("are documented, all that exist and none that does not, with their labels", () => {
    const registered = specs.map(({ name, kind, labels }) => [name, kind, labels.join(", ")]);
    expect([...documented()].sort()).toEqual(registered.sort());
  });

  it.each(specs)("$name says its unit in its name and what it means", ({ name, kind, help, labels }) => {
    expect(name).toMatch(/^turnbox_(rpc|host|fleet)_[a-z_]+$/);
    expect(help).toMatch(/\.$/);
    if (kind === "counter") expect(name).toMatch(/_total$/);
    if (kind === "histogram") expect(name).toMatch(/_seconds$/);
    // What would make a series for each sandbox, caller or call.
    expect(labels.filter((label) => /(^|_)(id|session|sandbox|tenant|user|name|url)$/.test(label))).toEqual([]);
  });
});
