import type { BareRunsc } from "../floor/bare-runsc.ts";
import type { BareZfs } from "../floor/bare-zfs.ts";
import type { BenchServer } from "../server/bench-server.ts";

/** What rows measure with. */
export interface Bench {
  readonly size: "full" | "quick";
  /** Ends with Ctrl-C: loops look at it between samples. */
  readonly signal: AbortSignal;
  /** The server of the row's kind; a row that asked for none has none. */
  readonly server: () => BenchServer;
  /** The bare tools, in the pool of that server. */
  readonly runsc: () => Promise<BareRunsc>;
  readonly zfs: () => Promise<BareZfs>;
  /** How many, in a full and in a quick run. */
  count(full: number, quick: number): number;
}
