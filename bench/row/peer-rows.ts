import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { command } from "../run/command.ts";
import { interleave, timed } from "../run/sample.ts";
import { type Row, Skipped } from "../row.ts";

const isInstalled = (program: string): boolean =>
  (process.env["PATH"] ?? "").split(delimiter).some((directory) => existsSync(join(directory, program)));

const UNIFIED = "/sys/fs/cgroup/unified";
const LEAVE_UNIFIED = `umount ${UNIFIED} && exec "$0" "$@"`;

/** Calls podman with a runtime and what this runtime needs to work at all. */
async function podmanWith(runtime: "runsc" | "crun", args: readonly string[]): Promise<string> {
  // runsc cannot be told by podman to have no network.
  const flags = runtime === "runsc" ? ["--runtime-flag", "network=none", "--runtime-flag", "platform=systrap"] : [];
  const whole = ["--runtime", runtime, ...flags, ...args];
  // crun refuses to work where both versions of cgroups are mounted: it is not shown the second one.
  if (runtime === "runsc" || !existsSync(UNIFIED)) return await command("podman", whole);
  const apart = ["--mount", "--propagation", "slave", "sh", "-c", LEAVE_UNIFIED, "podman"];
  return await command("unshare", [...apart, ...whole]);
}

/** Run to first command done by podman with some runtime, in a directory with the same programs. */
function podman(runtime: "runsc" | "crun"): Row {
  return {
    id: `peer.podman-${runtime}`,
    title: `podman with ${runtime}: run to first command done`,
    unit: "ms",
    server: "cold",
    floor: "runsc run + runsc exec",
    measure: async (bench) => {
      for (const program of ["podman", runtime])
        if (!isInstalled(program)) throw new Skipped(`${program} is not installed`);
      const runsc = await bench.runsc();
      const ours = async (): Promise<number> => {
        let id = "";
        const ms = await timed(async () => {
          // Its own default limits may be above what this process may set.
          const limits = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096"];
          const run = ["run", "--detach", "--network=none", ...limits, "--rootfs", runsc.rootPath];
          id = (await podmanWith(runtime, [...run, "/bin/sleep", "1000000"])).trim();
          await podmanWith(runtime, ["exec", id, "/bin/sh", "-c", "echo hi"]);
        });
        await podmanWith(runtime, ["rm", "--force", "--time=0", id]);
        return ms;
      };
      const floor = async (): Promise<number> => {
        const id = await runsc.bundle();
        const ms = await timed(() => runsc.run(id).then(() => runsc.exec(id, "echo hi")));
        await runsc.end(id);
        return ms;
      };
      return await interleave({ ours, floor }, { count: bench.count(30, 3), signal: bench.signal });
    },
  };
}

export const PEER_ROWS = [podman("runsc"), podman("crun")] as const;
