import type { FencedHostCall, HostConnection, HostSession } from "../../control/host-connection.ts";

const AT_ONCE = 8;

/** Closes the host and answers what it still holds: after that nothing can come in behind the answer's back. */
export async function closeAndList(host: HostConnection, call: FencedHostCall): Promise<readonly HostSession[]> {
  await host.setAdmission("closed", call);
  return (await host.sessions(call)).filter(({ state }) => state !== "destroying");
}

/** Pauses all that runs on a host that was closed before. Throws if one could not be paused, when all were tried. */
export async function pauseAll(host: HostConnection, call: FencedHostCall): Promise<void> {
  const left = (await closeAndList(host, call)).filter(({ state }) => state === "active" || state === "creating");
  const failures: unknown[] = [];
  const work = async (): Promise<void> => {
    for (let session = left.shift(); session !== undefined; session = left.shift()) {
      await host.pauseSession(session, call).catch((error: unknown) => failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  if (failures.length > 0) throw failures[0];
}
