import { invalidArgument } from "@turnbox/core";

/** Names that an operator may choose. */
export interface LayoutNames {
  /** Default: derived from the home's real path. */
  readonly poolName?: string | undefined;
  /** The dataset below the pool that holds the templates. Default `bases`. */
  readonly basesDataset?: string | undefined;
  /** The dataset below the pool that holds the sessions. Default `sessions`. */
  readonly sessionsDataset?: string | undefined;
}

const NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/;
const RULE = "must begin with a lower-case letter or digit, then those, dot, underscore or hyphen, at most 63";
/** zpool keeps names that begin with these for the parts of a pool. */
const NO_POOL = /^([^a-z]|mirror|raidz|draid|spare|log$|c[0-9])/;
/** Datasets below the pool that are always called so. */
const TAKEN: readonly string[] = ["views", "journals", "reserved"];

export function checkLayoutNames({ poolName, basesDataset, sessionsDataset }: LayoutNames): void {
  if (poolName !== undefined && (!NAME.test(poolName) || NO_POOL.test(poolName))) {
    throw invalidArgument("poolName", `${RULE}; it begins with a letter, and with none of zpool's own words`);
  }
  checkDataset("basesDataset", basesDataset);
  checkDataset("sessionsDataset", sessionsDataset);
  if ((basesDataset ?? "bases") === (sessionsDataset ?? "sessions"))
    throw invalidArgument("sessionsDataset", "must differ from the dataset of the templates");
}

function checkDataset(field: keyof LayoutNames, name: string | undefined): void {
  if (name === undefined) return;
  if (!NAME.test(name)) throw invalidArgument(field, RULE);
  if (TAKEN.includes(name)) throw invalidArgument(field, `must not be one of ${TAKEN.join(", ")}`);
}
