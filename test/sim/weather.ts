/** How likely faults are at present. All are probabilities of one call unless they say otherwise. */
export interface Weather {
  /** A request to a host that never arrives, an answer that never does, and one that arrives twice. */
  readonly lostRequest: number;
  readonly lostAnswer: number;
  readonly duplicate: number;
  /** A message that takes seconds. */
  readonly slow: number;
  /** A create that the host begins and cannot finish, and says so. */
  readonly failedCreate: number;
  /** Calls to the cloud: refused at once, done without saying so, lists that are old, empty or lack some. */
  readonly cloudRefusal: number;
  readonly cloudUnknown: number;
  readonly staleList: number;
  readonly emptyList: number;
  readonly partialList: number;
  /** Machines: whose host never comes up, and that come up late. */
  readonly deadBoot: number;
  readonly slowBoot: number;
  /** Calls to the store: not done, and done without saying so. */
  readonly storeRefusal: number;
  readonly storeUnknown: number;
}

export const CALM: Weather = {
  lostRequest: 0,
  lostAnswer: 0,
  duplicate: 0,
  slow: 0,
  failedCreate: 0,
  cloudRefusal: 0,
  cloudUnknown: 0,
  staleList: 0,
  emptyList: 0,
  partialList: 0,
  deadBoot: 0,
  slowBoot: 0,
  storeRefusal: 0,
  storeUnknown: 0,
};
