import { type Clock, newSessionId, parseSessionId, randomToken, SandboxError } from "@turnbox/core";
import type { Records } from "../record/records.ts";
import type { SessionRow } from "../record/row.ts";
import type { ContainerLimits } from "../runtime/runtime.ts";
import type { Storage } from "../storage/storage.ts";
import type { Templates } from "../template/templates.ts";
import type { DestroySession } from "./destroy.ts";
import type { Receipts } from "./receipts.ts";
import type { Registry } from "./registry.ts";
import { createSession, type Session } from "./session.ts";

export interface CreateRequest {
  readonly tenant: string;
  readonly idempotencyKey: string;
  /** The whole request in a canonical form, for the idempotency key. */
  readonly payload: string;
  /** Empty lets the host choose. */
  readonly sessionId: string;
  /** `template` or `template@version`. */
  readonly base: string;
  readonly quotaBytes: number | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  readonly limits: ContainerLimits;
}

/**
 * Makes a session. Id and capacity are taken in one step before anything is made; the row is durable as `creating` before
 * the files are; any failure unwinds everything in reverse. A crash in between is undone at the next start.
 */
export type CreateSession = (request: CreateRequest, call: { readonly signal: AbortSignal }) => Promise<Session>;

export function createCreateSession(deps: {
  readonly registry: Registry;
  readonly records: Records;
  readonly receipts: Receipts;
  readonly storage: Storage;
  readonly templates: Templates;
  readonly clock: Clock;
  readonly destroySession: DestroySession;
  /** Throws `POOL_FULL` where the pool takes no new sessions. */
  readonly assertRoom: (call: { readonly signal: AbortSignal }) => Promise<void>;
}): CreateSession {
  const { registry, records, receipts, storage, templates, clock } = deps;

  return async (request, call) => {
    const keyed = { scope: `${request.tenant}/CreateSession`, key: request.idempotencyKey, payload: request.payload };
    const made = await receipts.once<Made>(keyed, async (receipt) => {
      const id = request.sessionId === "" ? newSessionId() : parseSessionId(request.sessionId);
      const base = await templates.resolve(request.base, call);
      await deps.assertRoom(call);
      using _place = registry.reserve(id);
      const row: SessionRow = {
        id,
        tenant: request.tenant,
        token: randomToken(12),
        phase: { kind: "creating" },
        generation: 1,
        headGeneration: 1,
        base: { name: base.name, digest: base.digest },
        createdAtMs: clock.nowMs(),
        labels: request.labels,
        env: request.env,
        limits: request.limits,
        quotaBytes: request.quotaBytes,
        refquotaBytes: null,
        container: null,
        turnCounter: 0,
        parentSnapshot: null,
      };
      const session = createSession(row, records);
      await records.call("insertSession", row);
      try {
        const head = await storage.createSession(
          {
            token: row.token,
            origin: { kind: "base", base: row.base },
            marks: {
              session_id: id,
              tenant: row.tenant,
              base: `${base.name}@${base.digest}`,
              created_at_ms: String(row.createdAtMs),
            },
            ...(row.quotaBytes === null ? {} : { quotaBytes: row.quotaBytes }),
          },
          call,
        );
        const done = receipt({ id, token: row.token });
        await session.commit(
          (creating) => ({ ...creating, phase: { kind: "active" }, refquotaBytes: head.refquotaBytes ?? null }),
          done === undefined ? {} : { receipt: done },
        );
      } catch (thrown) {
        await undo(session);
        throw thrown;
      }
      registry.add(session);
      return { id, token: row.token };
    });
    const session = registry.find(made.id);
    // The id may belong to another session by now, even of another tenant.
    if (session?.row.token === made.token) return session;
    throw new SandboxError("SESSION_NOT_FOUND", `session ${made.id} of this idempotency key was destroyed`, {
      metadata: { sessionId: made.id },
    });
  };

  /** Cleanup is not the caller's: its signal may be what made the create fail. What cannot be undone now is removed later. */
  async function undo(session: Session): Promise<void> {
    try {
      await storage.destroySession(session.row.token, { signal: AbortSignal.timeout(UNDO_TIMEOUT_MS) });
      await records.call("deleteSession", session.row.token);
    } catch {
      registry.add(session);
      await deps.destroySession(session);
    }
  }
}

/** What a create's receipt remembers. */
interface Made {
  readonly id: string;
  readonly token: string;
}

const UNDO_TIMEOUT_MS = 30_000;
