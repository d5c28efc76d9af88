/**
 * One entry for each version; an entry never changes once a database may have been written with it. Text compares by
 * code point (`C`), as in every other store, so that pages come in the same order whatever the database's locale.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE marks (
    mark    uuid PRIMARY KEY,
    made_at timestamptz NOT NULL DEFAULT clock_timestamp()
  );
  CREATE TABLE lease (
    only_row      boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    epoch         bigint NOT NULL,
    holder        text,
    ttl_ms        bigint NOT NULL,
    expires_at_ms bigint NOT NULL
  );
  INSERT INTO lease (epoch, holder, ttl_ms, expires_at_ms) VALUES (0, NULL, 0, 0);
  CREATE TABLE demands (
    holder          text PRIMARY KEY,
    waiting_creates integer NOT NULL,
    expires_at_ms   bigint NOT NULL
  );
  CREATE TABLE instances (
    instance_id   text COLLATE "C" PRIMARY KEY,
    admission     text NOT NULL,
    labels        text NOT NULL,
    created_at_ms bigint NOT NULL,
    image         text NOT NULL,
    drain         text,
    goal          text NOT NULL,
    ever_answered text NOT NULL,
    version       bigint NOT NULL
  );
  CREATE TABLE sandboxes (
    session_id    text COLLATE "C" PRIMARY KEY,
    tenant        text COLLATE "C" NOT NULL,
    name          text COLLATE "C",
    labels        text NOT NULL,
    instance_id   text COLLATE "C",
    phase         text NOT NULL,
    created_at_ms bigint NOT NULL
  );
  CREATE UNIQUE INDEX sandboxes_by_name ON sandboxes (tenant, name) WHERE name IS NOT NULL;
  CREATE INDEX sandboxes_by_tenant ON sandboxes (tenant, session_id);
  CREATE INDEX sandboxes_by_instance ON sandboxes (tenant, instance_id, session_id);
  CREATE TABLE idempotency (
    tenant        text COLLATE "C" NOT NULL,
    method        text COLLATE "C" NOT NULL,
    key           text COLLATE "C" NOT NULL,
    payload_hash  text NOT NULL,
    plan          text NOT NULL,
    result        text,
    begun_at_ms   bigint NOT NULL,
    PRIMARY KEY (tenant, method, key)
  );
  CREATE INDEX idempotency_by_time ON idempotency (begun_at_ms);
  `,
  `
  CREATE TABLE fleet (
    only_row        boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    fleet_id        text NOT NULL,
    key_fingerprint text NOT NULL
  );
  `,
];
