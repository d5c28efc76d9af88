import type { Logger } from "pino";
import type { Records } from "../record/records.ts";
import type { IntentRow, SessionRow } from "../record/row.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { SessionInventory, Storage } from "../storage/storage.ts";
import type { Reaper } from "./reaper.ts";
import type { Registry } from "./registry.ts";
import { createSession, type Session } from "./session.ts";

/** How an operation that was cut off is brought to an end: finished or undone, as its kind demands. */
export type SettleIntent = (session: Session, intent: IntentRow) => Promise<void>;

/**
 * What a start does before it serves: joins what is there (datasets, containers) with the records, finishes or undoes
 * what was cut off, ends containers that belong to nobody, and takes up removals again. Containers of living sessions are
 * left as they are; the first call that needs one adopts it. Datasets without a record are reported, never destroyed.
 */
export async function recoverSessions(
  deps: {
    readonly registry: Registry;
    readonly records: Records;
    readonly storage: Storage;
    readonly runtime: Runtime;
    readonly reaper: Reaper;
    readonly settle: SettleIntent;
    readonly log: Logger;
  },
  call: { readonly signal: AbortSignal },
): Promise<void> {
  const { registry, records, storage, runtime, reaper, settle, log } = deps;
  const [rows, intents, inventory] = await Promise.all([
    records.call("listSessions", null),
    records.call("listIntents", null),
    storage.inventory(call),
  ]);
  const found = new Map(inventory.map((entry) => [entry.token, entry]));

  for (const row of rows) {
    const session = createSession(row, records);
    registry.add(session);
    if (row.phase.kind === "creating") await undoCreate(session);
    else if (row.phase.kind === "destroying") reaper.remove(session);
    else await bringBack(session, found.get(row.token));
  }
  await endStrayContainers();
  for (const { token } of inventory) {
    if (!rows.some((row) => row.token === token))
      log.warn({ token }, "files of a session that has no record are left alone");
  }

  async function undoCreate(session: Session): Promise<void> {
    await storage.destroySession(session.row.token, call);
    await records.call("deleteSession", session.row.token);
    registry.remove(session);
  }

  async function bringBack(session: Session, entry: SessionInventory | undefined): Promise<void> {
    const intent = intents.find(({ token }) => token === session.row.token);
    if (intent !== undefined) await settle(session, intent);
    const live = entry?.heads.find(({ generation }) => generation === session.row.headGeneration);
    if (live === undefined) {
      await session.commit((row) => ({
        ...row,
        phase: { kind: "failed", message: "the session's files are not in the storage" },
      }));
      log.error({ sessionId: session.row.id }, "the files of a session are missing");
    }
  }

  async function endStrayContainers(): Promise<void> {
    const owned = new Set(registry.all().map(({ row }: { readonly row: SessionRow }) => row.container));
    for (const id of await runtime.list(call)) {
      if (!owned.has(id)) await runtime.stop(id, call);
    }
  }
}
