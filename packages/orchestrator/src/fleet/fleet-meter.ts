/** Goes around what a fleet does by itself, to measure it. */
export interface FleetMeter {
  /** The search for a slot, waiting for room included. A look that finds none is not counted, but the wait after it. */
  placement<T>(work: () => Promise<T>): Promise<T>;
  /** One round of the control loop. */
  tick<T>(work: () => Promise<T>): Promise<T>;
}

export const NO_METER: FleetMeter = { placement: (work) => work(), tick: (work) => work() };
