import { Duplex } from "node:stream";
import { type Call, SandboxError } from "@turnbox/core";
import type { Runtime } from "../runtime/runtime.ts";
import { type Session, shareKeyOf } from "../session/session.ts";
import { Shares } from "../share/shares.ts";

/** Opens a connection to a port inside a session, at its loopback. If nothing listens on the port, it ends at once. */
export type Dial = (session: Session, port: number, call: Call) => Promise<Duplex>;

/** The most connections of a host at once, which sessions share. Each is a process on the host. */
const MAX_CONNECTIONS = 256;
/** A connection ends after a day at most; its client can connect again. */
const CONNECTION_MS = 86_400_000;

/**
 * Connects by a small program in the sandbox, not through its network: it works under every policy and for servers that listen
 * on loopback only, and no packet can go from the machine to a sandbox.
 */
export function createDial(deps: {
  readonly runtime: Runtime;
  readonly relay: (port: number) => readonly [string, ...string[]];
}): Dial {
  const connections = new Shares(MAX_CONNECTIONS);
  return async (session, port, call) => {
    const { container, phase } = session.row;
    if (container === null || phase.kind !== "active") {
      throw new SandboxError("SANDBOX_LOST", "nothing runs in the session", { admitted: "no" });
    }
    const ended = connections.enter(shareKeyOf(session));
    if (ended === undefined)
      throw new SandboxError("OVERLOADED", "the session has its share of the host's connections to sandboxes");
    const spec = { argv: deps.relay(port), env: {}, cwd: "/", deadlineMs: CONNECTION_MS };
    const execution = await deps.runtime.exec(container, spec, call).catch((thrown: unknown) => {
      ended();
      throw thrown;
    });
    execution.exit.then(ended, ended);
    execution.stderr.resume();
    const stream = Duplex.from({ writable: execution.stdin, readable: execution.stdout });
    stream.on("error", () => undefined);
    execution.stdin.on("error", () => undefined);
    stream.on("close", () => void execution.kill().catch(() => undefined));
    return stream;
  };
}
