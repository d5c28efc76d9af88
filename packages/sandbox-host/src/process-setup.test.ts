import { execFile, execFileSync } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";

/** Which of the descriptors 100 and 200 a child of a process has that was started with them. */
function childHas(before: string): readonly string[] {
  const module = join(import.meta.dirname, "process-setup.ts");
  const list = 'execFileSync("/bin/ls", ["/proc/self/fd"], { encoding: "utf8" })';
  const script = `import { execFileSync } from "node:child_process"; import { closeInherited } from ${JSON.stringify(module)};
    ${before}; process.stdout.write(${list});`;
  const command = 'exec 100</etc/passwd 200</etc/passwd; exec "$@"';
  const node = [process.execPath, "--no-warnings", "--experimental-strip-types", "--input-type=module", "-e", script];
  const output = execFileSync("/bin/bash", ["--norc", "-c", command, "bash", ...node], { encoding: "utf8", env: {} });
  return output.split("\n").filter((fd) => fd === "100" || fd === "200");
}

describe("closeInherited", () => {
  it("leaves nothing that children would inherit but the standard streams", () => {
    expect(childHas("closeInherited()")).toEqual([]);
    expect(childHas("")).toEqual(["100", "200"]);
  });
});

/** Holds as much as a host does while 2 GiB of blocks come and go, as output does; prints how often everything was collected. */
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
  const env = { ...process.env, MODULE: new URL("./process-setup.ts", import.meta.url).href };
  const args = ["--input-type=module", "-e", SCRIPT, how];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env, timeout: 30_000 });
  return (JSON.parse(stdout) as { readonly collections: number }).collections;
}

describe("countExternalMemory", () => {
  it("has everything collected less often while buffers come and go", async () => {
    const [before, after] = [await countCollections("as it is"), await countCollections("counted")];
    expect(before).toBeGreaterThan(8);
    expect(after).toBeLessThan(before / 2);
  }, 70_000);
});
