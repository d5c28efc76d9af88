import type { Store } from "./store.ts";

/** An empty store for a suite, which disposes of it. */
export interface StoreUnderTest {
  readonly store: Store;
  /** Lets time pass, as the store tells it. */
  readonly passMs: (ms: number) => Promise<void>;
}
