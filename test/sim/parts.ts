import type { Fleet } from "../../packages/orchestrator/src/fleet/fleet.ts";
import type { Phases } from "../../packages/orchestrator/src/fleet/loop/phase.ts";
import { PHASES } from "../../packages/orchestrator/src/fleet/loop/phase-table.ts";
import type { HostConnection } from "../../packages/orchestrator/src/control/host-connection.ts";
import type { Provisioner } from "../../packages/orchestrator/src/provisioner/provisioner.ts";

/** The parts of an orchestrator that a test may swap for faulty ones, to see that the simulator notices. */
export interface Parts {
  readonly phases: Phases;
  connection(line: HostConnection): HostConnection;
  provisioner(line: Provisioner): Provisioner;
  /** Spoils a fleet that has just been put together. */
  spoil(fleet: Fleet): void;
}

/** The product as it is. */
export const REAL_PARTS: Parts = {
  phases: PHASES,
  connection: (line) => line,
  provisioner: (line) => line,
  spoil: () => undefined,
};
