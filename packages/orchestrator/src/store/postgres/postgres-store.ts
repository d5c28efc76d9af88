import { type Clock, SandboxError, systemClock } from "@turnbox/core";
import type { Store, StoreCall } from "../store.ts";
import { claimFleet, type FleetClaim, migrate } from "./schema.ts";
import { describeServer, parseConnectionUrl } from "./connection-settings.ts";
import { createConnections } from "./connections.ts";
import { createCreationOperations } from "./creation-operations.ts";
import { createFleetOperations } from "./fleet-operations.ts";
import { createIdempotencyOperations } from "./idempotency-operations.ts";
import { MIGRATIONS } from "./migrations.ts";
import { createSandboxOperations } from "./sandbox-operations.ts";
import { createTransactions, type Transactions } from "./transactions.ts";

export interface PostgresStoreOptions {
  /** `postgresql://user:password@host:port/database?sslmode=verify-full`; it holds a secret and is never repeated. */
  readonly url: string;
  /** Where the tables are; fleets that share a database have one each. */
  readonly schema?: string;
  /** Whose the store must be; one that has no owner yet becomes theirs. */
  readonly claim?: FleetClaim;
  readonly maxConnections?: number;
  readonly connectTimeoutMs?: number;
  readonly statementTimeoutMs?: number;
  /** How long an operation goes on trying while the server does not answer. */
  readonly patienceMs?: number;
  /** For pauses only: the time of leases is the server's. */
  readonly clock?: Clock;
}

const SCHEMA = /^[a-z_][a-z0-9_]{0,62}$/;

/**
 * Opens the store in a PostgreSQL database (version 13 or newer) and makes or upgrades its tables. A server that does not
 * answer is `STORE_UNAVAILABLE`, one that does not let us in, a url that breaks a rule or a store of another fleet is
 * `CONFIG_INVALID`, tables of a newer version are `HOME_VERSION_UNSUPPORTED`.
 */
export async function openPostgresStore(options: PostgresStoreOptions, call: StoreCall): Promise<Store> {
  const { schema = "turnbox", patienceMs = 10_000, clock = systemClock } = options;
  if (!SCHEMA.test(schema)) {
    throw new SandboxError("CONFIG_INVALID", "storeSchema: must be small letters, digits and _, at most 63");
  }
  const settings = parseConnectionUrl(options.url);
  await using stack = new AsyncDisposableStack();
  const connections = stack.use(
    createConnections(settings, schema, {
      maxConnections: options.maxConnections ?? 10,
      connectTimeoutMs: options.connectTimeoutMs ?? 5000,
      statementTimeoutMs: options.statementTimeoutMs ?? 5000,
    }),
  );
  const server = describeServer(settings);
  const open = untilClosed(createTransactions({ connections, server, clock, patienceMs }));
  stack.use(open);
  await open.writeRepeatable(async (query) => {
    await migrate(query, { schema, migrations: MIGRATIONS });
    if (options.claim !== undefined) await claimFleet(query, options.claim);
  }, call);
  const owned = stack.move();
  return {
    ...createFleetOperations(open),
    ...createSandboxOperations(open),
    ...createCreationOperations(open),
    ...createIdempotencyOperations(open),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The same transactions until disposal, which ends those under way and refuses further ones. */
function untilClosed({ read, write, writeRepeatable }: Transactions): Transactions & Disposable {
  const closing = new AbortController();
  const ofBoth = ({ signal }: StoreCall): StoreCall => ({ signal: AbortSignal.any([signal, closing.signal]) });
  return {
    read: (work, call) => read(work, ofBoth(call)),
    write: (work, call) => write(work, ofBoth(call)),
    writeRepeatable: (work, call) => writeRepeatable(work, ofBoth(call)),
    [Symbol.dispose]: () => {
      closing.abort(new SandboxError("SHUTTING_DOWN", "the store is closed"));
    },
  };
}
