import { dirname, join } from "node:path";

/** The directory of result files that belongs to a database. */
export function resultDirectory(databasePath: string): string {
  return join(dirname(databasePath), "tool-results");
}
