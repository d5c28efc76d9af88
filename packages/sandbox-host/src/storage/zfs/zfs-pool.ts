import type { Clock } from "@turnbox/core";
import type { Leases } from "../leases.ts";
import type { Origin } from "../storage.ts";
import type { Datasets } from "./datasets.ts";
import type { Flavor } from "./flavor.ts";
import type { Layout } from "./layout.ts";
import type { Mounts } from "./mounts.ts";
import type { ZfsCommand } from "./zfs-command.ts";

/** What is known of a session's dataset without a look. */
export interface SessionDataset {
  /** The outer quota; 0 is no bound. Only this home's storage changes it. */
  readonly quotaBytes: number;
}

/** The snapshot that an origin names, and how much it refers to if that was read. */
export interface ResolvedOrigin {
  readonly snapshot: string;
  readonly referencedBytes: number | undefined;
}

/** Origins whose snapshot was seen in the pool. Names are never used twice, so what is found there is what was meant. */
export interface KnownOrigins {
  find(origin: Origin): ResolvedOrigin | undefined;
  note(origin: Origin, resolved: ResolvedOrigin): void;
}

/** What works on any pool. */
export interface ZfsTools {
  readonly zfs: ZfsCommand;
  readonly mounts: Mounts;
  readonly clock: Clock;
  readonly limits: ZfsLimits;
  /** Snapshots that are being sent, by their names in the pool. zfs-fuse hangs when it destroys one of them. */
  readonly leases: Leases;
}

/** An opened pool and what works on it: what the nouns of the storage share. */
export interface ZfsPool extends ZfsTools {
  readonly layout: Layout;
  readonly datasets: Datasets;
  readonly flavor: Flavor;
  /** Sessions that were seen to be this home's, by token. */
  readonly sessionDatasets: Map<string, SessionDataset>;
  readonly origins: KnownOrigins;
  /** The size of the pool when it was opened. */
  readonly poolBytes: number;
}

export interface ZfsLimits {
  /** The outer quota of a session, as a multiple of its first head's refquota. */
  readonly quotaFactor: number;
  /** How long what zfs-fuse calls busy is tried again. */
  readonly busyPatienceMs: number;
  /** The same, while a session is destroyed. */
  readonly destroyPatienceMs: number;
  /** The same, while everything is destroyed, for which no caller waits. */
  readonly resetPatienceMs: number;
  /** How long flushing a head may take before a seal gives up. */
  readonly flushDeadlineMs: number;
  /** How long a stream may stand still, whichever side it waits for. */
  readonly streamPatienceMs: number;
}

/** How long undoing may take. It runs on its own clock: the caller may be gone. */
export const UNDO_DEADLINE_MS = 30_000;

/** What every dataset that holds an agent's or a template's files is made with. A clone inherits none of it from its origin. */
export const FILE_PROPERTIES = ["canmount=noauto", "atime=off", "setuid=off", "devices=off"] as const;
