import type { HostConnection, HostReport } from "../host-connection.ts";
import { createFakeSandboxControl, type FakeControlOptions, type FakeSandboxControl } from "./fake-sandbox-control.ts";

/** A host in memory: what a fleet talks to in tests. */
export interface FakeHost extends HostConnection, FakeSandboxControl {
  /** Overrides parts of what it says about itself; a session count is its own unless overridden. */
  setReport(changes: Partial<HostReport>): void;
  /** How often it was disposed of. */
  readonly disposals: number;
}

export function createFakeHost(options: FakeControlOptions & { readonly report?: Partial<HostReport> }): FakeHost {
  const control = createFakeSandboxControl(options);
  let changes: Partial<HostReport> = options.report ?? {};
  let disposals = 0;
  return {
    ...control,
    get disposals() {
      return disposals;
    },
    setReport: (more) => {
      changes = { ...changes, ...more };
    },
    report: async ({ signal }) => {
      signal.throwIfAborted();
      await Promise.resolve();
      return {
        health: "healthy",
        sessionCount: control.sandboxIds().length,
        maxSessions: 100,
        cpus: 8,
        memoryBytes: 16e9,
        memoryAvailableBytes: 12e9,
        poolBytes: 100e9,
        poolAvailableBytes: 90e9,
        templates: control.templates,
        problems: [],
        ...changes,
      };
    },
    [Symbol.asyncDispose]: () => {
      disposals += 1;
      return Promise.resolve();
    },
  };
}
