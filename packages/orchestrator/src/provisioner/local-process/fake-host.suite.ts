import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, createLog, systemClock } from "@turnbox/core";
import type { Provisioner } from "../provisioner.ts";
import { createLocalProcessProvisioner } from "./local-process-provisioner.ts";

/** What a stand-in for the sandbox-host does; it speaks the protocol of the real one on stdin, stdout and signals. */
export type FakeHostBehaviour = "serves" | "freezes" | "fails" | "silent" | "dies" | "stubborn" | "babbles";

const SCRIPT = `
import { appendFileSync, existsSync, readFileSync } from "node:fs";
const args = process.argv.slice(2);
const option = (name) => args[args.indexOf(name) + 1];
const home = option("--home");
const behaviour = readFileSync(home + "/behaviour", "utf8");
const say = (event) => process.stdout.write(JSON.stringify(event) + "\\n");
appendFileSync(home + "/starts", JSON.stringify({ args, env: Object.keys(process.env).sort(), pid: process.pid }) + "\\n");
process.stderr.write("hello from " + option("--instance") + "\\n");
process.stdin.on("end", () => { appendFileSync(home + "/orphaned", ""); process.exit(0); });
process.stdin.resume();
if (behaviour !== "stubborn") process.on("SIGTERM", () => { appendFileSync(home + "/asked", ""); process.exit(0); });
else process.on("SIGTERM", () => appendFileSync(home + "/asked", ""));
if (behaviour === "freezes") setTimeout(() => { appendFileSync(home + "/frozen", ""); for (;;); }, 100);
const heartbeat = behaviour === "freezes" ? { heartbeat: "given" } : {};
const ready = { ...heartbeat, event: "ready", url: "http://127.0.0.1:" + (20000 + process.pid % 30000), pid: process.pid };
if (behaviour === "fails") {
  say({ event: "failed", reason: "RUNTIME_UNAVAILABLE", message: "no runsc", remedy: "install runsc" });
  process.exitCode = 3;
  process.stdin.destroy();
} else if (behaviour === "dies") {
  process.exit(7);
} else if (behaviour === "babbles") {
  say({ event: "ready" });
} else if (behaviour !== "silent") {
  say(ready);
}
`;

/** A provisioner over stand-ins, in a home of its own that goes with it. */
export interface LocalTestbed extends AsyncDisposable {
  readonly provisioner: Provisioner;
  readonly home: string;
  behave(behaviour: FakeHostBehaviour): Promise<void>;
}

export async function createLocalTestbed(
  options: {
    readonly clock?: Clock;
    readonly readyTimeoutMs?: number;
    readonly stopTimeoutMs?: number;
    readonly onChange?: () => void;
  } = {},
): Promise<LocalTestbed> {
  const home = await mkdtemp(join(tmpdir(), "turnbox-local-"));
  const hostEntry = join(home, "host.mjs");
  await writeFile(hostEntry, SCRIPT);
  const behave = (behaviour: FakeHostBehaviour): Promise<void> => writeFile(join(home, "behaviour"), behaviour);
  await behave("serves");
  const provisioner = createLocalProcessProvisioner({
    nodePath: process.execPath,
    hostEntry,
    home,
    env: { PATH: process.env["PATH"] ?? "", TURNBOX_POOL_SIZE: "1GiB" },
    readyTimeoutMs: options.readyTimeoutMs ?? 10_000,
    stopTimeoutMs: options.stopTimeoutMs ?? 5000,
    clock: options.clock ?? systemClock,
    logger: createLog({ name: "test", level: "silent", to: { write: () => undefined } }),
    ...(options.onChange === undefined ? {} : { onChange: options.onChange }),
  });
  return {
    provisioner,
    home,
    behave,
    [Symbol.asyncDispose]: async () => {
      await provisioner[Symbol.asyncDispose]();
      await rm(home, { recursive: true });
    },
  };
}
