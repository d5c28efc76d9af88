import type { Row } from "./row.ts";
import { CHURN_ROWS } from "./row/churn-rows.ts";
import { CREATE_ROWS } from "./row/create-rows.ts";
import { EXEC_ROWS } from "./row/exec-rows.ts";
import { FILE_ROWS } from "./row/file-rows.ts";
import { GROWTH_ROWS } from "./row/growth-rows.ts";
import { MEMORY_ROWS } from "./row/memory-rows.ts";
import { PEER_ROWS } from "./row/peer-rows.ts";
import { PLACEMENT_ROWS } from "./row/placement-rows.ts";
import { RPC_ROWS } from "./row/rpc-rows.ts";
import { TURN_ROWS } from "./row/turn-rows.ts";

/** All rows there are, in the order of the table. */
export const CATALOG: readonly Row[] = [
  ...EXEC_ROWS,
  ...CREATE_ROWS,
  ...FILE_ROWS,
  ...TURN_ROWS,
  ...RPC_ROWS,
  ...CHURN_ROWS,
  ...PLACEMENT_ROWS,
  ...GROWTH_ROWS,
  // Hundreds of sessions, which take their time to go.
  ...MEMORY_ROWS,
  ...PEER_ROWS,
];
