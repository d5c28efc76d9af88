import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "@jest/globals";
import { removeFile } from "./exec-files.ts";

const RACES = 2000;

it("removes a file without an error while another process removes it", async () => {
  const directory = await mkdtemp(join(tmpdir(), "turnbox-exec-files-"));
  const path = join(directory, "file");
  const other = spawn("perl", ["-e", "$| = 1; print 'begun'; while (1) { unlink $ARGV[0] }", path]);
  try {
    await once(other.stdout, "data");
    let removedByOther = 0;
    for (let race = 0; race < RACES; race += 1) {
      writeFileSync(path, "");
      if (!existsSync(path)) removedByOther += 1;
      removeFile(path);
    }
    expect(existsSync(path)).toBe(false);
    expect(removedByOther).toBeGreaterThan(0);
  } finally {
    other.kill("SIGKILL");
    await rm(directory, { recursive: true, force: true });
  }
});
