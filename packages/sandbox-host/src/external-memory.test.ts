import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";

/** Holds as much as a host does and lets 2 GiB of blocks go by, as output does; tells how often everything was collected. */
const SCRIPT = `
  import { constants, PerformanceObserver } from "node:perf_hooks";
  const { countExternalMemory } = await import(process.env.MODULE);
  if (process.argv[1] === "counted") countExternalMemory();
  const held = Array.from({ length: 200_000 }, (_, index) => ({ index, text: "held " + index }));
  let collections = 0;
  new PerformanceObserver((list) => {
    collections += list.getEntries().filter(({ detail }) => detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR).length;
  }).observe({ entryTypes: ["gc"] });
  const recent = [];
  for (let count = 0; count < 4096; count += 1) {
    recent[count % 16] = Buffer.allocUnsafeSlow(512 * 1024);
    await new Promise(setImmediate);
  }
  process.stdout.write(JSON.stringify({ collections, held: held.length }), () => process.exit(0));
`;

async function countCollections(how: "counted" | "as it is"): Promise<number> {
  const env = { ...process.env, MODULE: new URL("./external-memory.ts", import.meta.url).href };
  const args = ["--input-type=module", "-e", SCRIPT, how];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env, timeout: 30_000 });
  return (JSON.parse(stdout) as { readonly collections: number }).collections;
}

describe("buffers that come and go", () => {
  it("have everything collected less often where they are counted to all that is held", async () => {
    const [before, after] = [await countCollections("as it is"), await countCollections("counted")];
    expect(before).toBeGreaterThan(8);
    expect(after).toBeLessThan(before / 2);
  }, 70_000);
});
