import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";

/** Which of the descriptors 100 and 200 a child of a process has that was started with them. */
function childHas(before: string): readonly string[] {
  const module = join(import.meta.dirname, "close-inherited.ts");
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
