import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HostCommandRunner } from "../../system/command/host-command-runner.ts";
import { storageSuite } from "../storage.suite.ts";
import { removePool } from "./remove-pool.suite.ts";
import { ZfsStorage } from "./zfs-storage.ts";

const call = { signal: new AbortController().signal };

storageSuite(
  "zfs",
  async () => {
    const home = await realpath(await mkdtemp(join(tmpdir(), "turnbox-zfs-")));
    // With fifos, which the kernel's zfs wants for streams.
    const runner = new HostCommandRunner();
    const restarted = () =>
      new ZfsStorage({
        runner,
        home,
        poolSizeBytes: 2 * 1024 ** 3,
        limits: { busyPatienceMs: 1500, destroyPatienceMs: 3000, resetPatienceMs: 15_000, streamPatienceMs: 3000 },
      });
    const storage = restarted();
    await storage.open(call);
    return {
      storage,
      restarted,
      [Symbol.asyncDispose]: async () => {
        await removePool({ runner, home });
        await runner[Symbol.asyncDispose]();
        await rm(home, { recursive: true, force: true });
      },
    };
  },
  { quota: "enforced", mounts: "real", streams: "offered" },
);
