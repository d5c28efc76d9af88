import { toSandbox } from "../rows.ts";
import type { Store } from "../store.ts";
import type { Transactions } from "./transactions.ts";

type SandboxOperations = Pick<
  Store,
  "getSandbox" | "findSandboxes" | "getSandboxes" | "listSandboxes" | "deleteSandbox"
>;

/** The index of sandboxes. */
export function createSandboxOperations({ read, write }: Transactions): SandboxOperations {
  return {
    getSandbox: (sessionId, call) =>
      read(async (query) => {
        const [row] = await query("SELECT * FROM sandboxes WHERE session_id = $1", [sessionId]);
        return row === undefined ? undefined : toSandbox(row);
      }, call),
    findSandboxes: ({ tenant, name }, call) =>
      read(async (query) => {
        const condition = "tenant = $1 AND (name = $2 OR session_id = $2)";
        const rows = await query(`SELECT * FROM sandboxes WHERE ${condition}`, [tenant, name]);
        return rows.map(toSandbox);
      }, call),
    getSandboxes: (sessionIds, call) =>
      read(async (query) => {
        const rows = await query("SELECT * FROM sandboxes WHERE session_id = ANY($1::text[])", [sessionIds]);
        return rows.map(toSandbox);
      }, call),
    listSandboxes: ({ tenant, after, instanceId, limit }, call) =>
      read(async (query) => {
        const condition = instanceId === undefined ? "" : "AND instance_id = $4";
        const rows = await query(
          `SELECT * FROM sandboxes WHERE tenant = $1 AND session_id > $2 ${condition} ORDER BY session_id LIMIT $3`,
          [tenant, after, limit, ...(instanceId === undefined ? [] : [instanceId])],
        );
        return rows.map(toSandbox);
      }, call),
    deleteSandbox: (sessionId, call) =>
      write(async (query) => {
        await query("DELETE FROM sandboxes WHERE session_id = $1", [sessionId]);
      }, call),
  };
}
