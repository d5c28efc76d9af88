import { SandboxError } from "@turnbox/core";
import type { FencedHostCall, HostConnection, HostReport } from "../host-connection.ts";
import { createFakeSandboxControl, type FakeControlOptions, type FakeSandboxControl } from "./fake-sandbox-control.ts";

/** A host in memory: what a fleet talks to in tests. */
export interface FakeHost extends HostConnection, FakeSandboxControl {
  /** Overrides parts of what it says about itself; a session count is its own unless overridden. */
  setReport(changes: Partial<HostReport>): void;
  /** Whether it answers at all. */
  setReachable(reachable: "reachable" | "silent"): void;
  readonly admission: "open" | "closed";
  /** How often it was disposed of. */
  readonly disposals: number;
}

export function createFakeHost(options: FakeControlOptions & { readonly report?: Partial<HostReport> }): FakeHost {
  let reachable: "reachable" | "silent" = "reachable";
  let admission: "open" | "closed" = "open";
  let highestEpoch = 0;
  let changes: Partial<HostReport> = options.report ?? {};
  let disposals = 0;

  const answer = async (call: { readonly signal: AbortSignal }): Promise<void> => {
    call.signal.throwIfAborted();
    await Promise.resolve();
    if (reachable === "silent") throw new SandboxError("HOST_UNREACHABLE", "no route", { admitted: "no" });
  };
  const obey = async (call: FencedHostCall): Promise<void> => {
    await answer(call);
    if (call.epoch < highestEpoch) throw new SandboxError("EPOCH_STALE", `epoch ${call.epoch} is over`);
    highestEpoch = call.epoch;
  };
  const control = createFakeSandboxControl({
    ...options,
    before: async (operation, call) => {
      await answer(call);
      await options.before?.(operation, call);
      if (operation === "createSandbox" && admission === "closed") {
        throw new SandboxError("HOST_CORDONED", "the host takes no new sessions");
      }
    },
  });

  return {
    ...control,
    get disposals() {
      return disposals;
    },
    get admission() {
      return admission;
    },
    setReport: (more) => {
      changes = { ...changes, ...more };
    },
    setReachable: (next) => {
      reachable = next;
    },
    report: async (call) => {
      await answer(call);
      return {
        health: "healthy",
        sessionCount: control.sandboxIds().length,
        maxSessions: 100,
        cpus: 8,
        memoryBytes: 16e9,
        memoryAvailableBytes: 12e9,
        poolBytes: 100e9,
        poolAvailableBytes: 90e9,
        admission,
        templates: [...control.templates],
        problems: [],
        ...changes,
      };
    },
    sessions: async (call) => {
      await answer(call);
      return control
        .sandboxes()
        .map(({ sandbox, tenant }) => ({ sessionId: sandbox.sandboxId, tenant, state: sandbox.session.state }));
    },
    setAdmission: async (next, call) => {
      await obey(call);
      admission = next;
    },
    pauseSession: async ({ sessionId, tenant }, call) => {
      await obey(call);
      await control.pauseSandbox(
        { sandboxId: sessionId, idempotencyKey: "", tools: "kill" },
        { signal: call.signal, tenant },
      );
    },
    [Symbol.asyncDispose]: () => {
      disposals += 1;
      return Promise.resolve();
    },
  };
}
