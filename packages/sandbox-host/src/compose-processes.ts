import { join } from "node:path";
import { loadOrCreateHomeToken } from "@turnbox/core";
import type { Assembly } from "./assembly.ts";
import type { BaseParts } from "./compose-base.ts";
import type { SessionParts } from "./compose-sessions.ts";
import { createDial } from "./port-access/dial.ts";
import { Ports } from "./port-access/ports.ts";
import { readTls } from "./port-access/read-tls.ts";
import { startProcessParts } from "./process/process-parts.ts";
import type { ProcessParts } from "./process/process-parts.ts";
import { INIT_PROGRAM } from "./runtime/gvisor/container/oci-spec.ts";

/** Launched processes, and the ports that they serve. */
export async function composeProcesses(
  parts: BaseParts & SessionParts,
  assembly: Assembly,
  call: { readonly signal: AbortSignal },
) {
  const { config, dataDirectory, runtime, dataSpace } = parts;
  const program: readonly [string, ...string[]] = runtime.kind === "gvisor" ? [INIT_PROGRAM] : ["busybox"];
  const relay = (port: number): readonly [string, ...string[]] => [...program, "nc", "127.0.0.1", String(port)];
  const { bindAddress, advertiseAddr } = config;
  const key = loadOrCreateHomeToken(join(dataDirectory, "port-key"));
  const reached = { dial: createDial({ runtime, relay }), key, bindAddress, advertiseAddr, tls: await readTls(config) };
  const ports = assembly.use("ports", new Ports({ ...parts, ...reached }));
  await ports.load();
  const running = await startProcessParts(
    {
      ...parts,
      directory: join(dataDirectory, "processes"),
      journalQuotaBytes: config.processJournalSession,
      maxRunning: config.maxProcessesPerSession,
      ports,
      relay,
    },
    call,
  );
  assembly.defer("processes", (ending) => (ending === "stopped" ? running.close() : running.abandon()));
  const launchProcess: ProcessParts["launchProcess"] = async (...launch) => {
    dataSpace.assertRoom();
    return await running.parts.launchProcess(...launch);
  };
  return { ...running.parts, launchProcess, ports };
}
