import { SandboxError } from "@turnbox/core";
import type { HostConnection, HostReport } from "../../packages/orchestrator/src/control/host-connection.ts";
import { CAPABILITIES, type HostModel } from "./host-model.ts";
import type { SimProcess } from "./sim-process.ts";
import { send, unreachable } from "./wire.ts";
import type { SimWorld } from "./world.ts";

/** Is told of what an orchestrator asks of hosts and learns from them. */
export interface LineWatch {
  /** At the moment of the call, before anything is sent. */
  createSent(process: SimProcess, host: HostModel, sessionId: string): void;
  createAnswered(process: SimProcess, host: HostModel, sessionId: string): void;
  destroySent(process: SimProcess, host: HostModel, sessionId: string): void;
  /** A report that was made at `madeAtMs` has come in. */
  reportArrived(process: SimProcess, host: HostModel, report: HostReport, madeAtMs: number): void;
}

export interface HostLineOptions {
  readonly world: SimWorld;
  readonly process: SimProcess;
  readonly host: HostModel;
  /** Where the host answers now; a line to an older url reaches nobody. */
  readonly isThere: () => boolean;
  readonly cut: () => "open" | "refused" | "silent";
  readonly watch: LineWatch;
}

/** A line that says nothing for this long is broken: pings find it out. */
const PING_MS = 20_000;
const READ_MS = 10_000;

/** The line of one orchestrator to one modelled host. */
export function createHostLine(options: HostLineOptions): HostConnection {
  const { world, process, host, watch } = options;
  const disposal = new AbortController();

  const ask = async <T>(signal: AbortSignal, patienceMs: number, serve: () => Promise<T> | T): Promise<T> => {
    if (disposal.signal.aborted) throw unreachable("no");
    const ended = new AbortController();
    const end = (by: AbortSignal) => () => {
      ended.abort(by.reason);
    };
    const onLeave = end(signal);
    const onDispose = end(disposal.signal);
    signal.throwIfAborted();
    signal.addEventListener("abort", onLeave, { once: true });
    disposal.signal.addEventListener("abort", onDispose, { once: true });
    try {
      return await send(world, {
        process,
        signal: ended.signal,
        patienceMs,
        cut: () => {
          if (!options.isThere()) return "silent";
          const cut = options.cut();
          return cut === "open" && !host.isUp ? "refused" : cut;
        },
        // What the host throws is its answer.
        serve: async () => await serve(),
      });
    } finally {
      signal.removeEventListener("abort", onLeave);
      disposal.signal.removeEventListener("abort", onDispose);
    }
  };
  const unimplemented = (): Promise<never> =>
    Promise.reject(new SandboxError("UNIMPLEMENTED", "the model has no such operation"));

  return {
    createSandbox: async (request, { signal, tenant }) => {
      const sessionId = request.sessionId ?? "";
      watch.createSent(process, host, sessionId);
      try {
        return await ask(signal, PING_MS, () => host.create(request, { tenant, from: process.name }));
      } finally {
        watch.createAnswered(process, host, sessionId);
      }
    },
    getSandbox: ({ sandboxId }, { signal }) => ask(signal, READ_MS, () => host.get(sandboxId)),
    listSandboxes: async (_request, { signal }) => ({
      sandboxes: await ask(signal, READ_MS, () => host.list()),
      nextPageToken: "",
      unreachableInstances: [],
    }),
    destroySandbox: ({ sandboxId }, { signal }) => {
      watch.destroySent(process, host, sandboxId);
      return ask(signal, PING_MS, () => host.destroy(sandboxId));
    },
    connectSandbox: async ({ sandboxId }, { signal }) => {
      await ask(signal, READ_MS, () => host.get(sandboxId));
      return { sandboxId, sessionId: sandboxId, url: `http://${host.instanceId}.sim:9100` };
    },
    pauseSandbox: ({ sandboxId }, { signal }) => ask(signal, PING_MS, () => host.setState(sandboxId, "paused")),
    resumeSandbox: ({ sandboxId }, { signal }) => ask(signal, PING_MS, () => host.setState(sandboxId, "active")),
    forkSandbox: unimplemented,
    launchProcess: unimplemented,
    killProcess: unimplemented,
    getProcessStatus: unimplemented,
    importTemplate: unimplemented,
    listTemplates: () => Promise.resolve([]),
    capabilities: () => Promise.resolve(CAPABILITIES),
    report: async ({ signal }) => {
      let madeAtMs = 0;
      const report = await ask(signal, READ_MS, () => {
        madeAtMs = world.timeline.nowMs;
        return host.report();
      });
      watch.reportArrived(process, host, report, madeAtMs);
      return report;
    },
    sessions: ({ signal }) => ask(signal, READ_MS, () => host.all()),
    setAdmission: (admission, { signal, epoch }) =>
      ask(signal, READ_MS, () => {
        host.setAdmission(admission, epoch);
      }),
    pauseSession: ({ sessionId }, { signal, epoch }) => ask(signal, PING_MS, () => host.pause(sessionId, epoch)),
    [Symbol.asyncDispose]: () => {
      disposal.abort(unreachable("unknown"));
      return Promise.resolve();
    },
  };
}
