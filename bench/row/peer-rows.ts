import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { command } from "../run/command.ts";
import { interleave, timed } from "../run/sample.ts";
import { type Row, Skipped } from "../row.ts";

const isInstalled = (program: string): boolean =>
  (process.env["PATH"] ?? "").split(delimiter).some((directory) => existsSync(join(directory, program)));

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
          const run = ["--runtime", runtime, "run", "--detach", "--network=none", "--rootfs", runsc.rootPath];
          id = (await command("podman", [...run, "/bin/sleep", "1000000"])).trim();
          await command("podman", ["exec", id, "/bin/sh", "-c", "echo hi"]);
        });
        await command("podman", ["rm", "--force", "--time=0", id]);
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
