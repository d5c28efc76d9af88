import { amount, type Decoder, fields, integer, list, nullable, oneOf, text, wrongField } from "../decode.ts";
import { objectRecord } from "../object/object-record.ts";
import type { ArchivedBase, ArchivedSnapshot, ArchivedStream, SandboxBody, TemplateBody } from "./manifest.ts";
import { calls, receipts } from "./ledger.ts";
import { session } from "./session-decoder.ts";

/** Snapshots of one sandbox, and of those that it was forked from. */
export const MAX_SNAPSHOTS = 100_000;
const MAX_BASES = 1000;
const MAX_ID = 256;
const MAX_KEY = 4096;

const id = text(MAX_ID);
const guid = text(64, /^[0-9a-z]+$/);

const stream = {
  guid,
  streamFormat: oneOf("zfs"),
  object: objectRecord,
} as const;
const parentGuid = nullable(guid);
const noParent: Decoder<null> = {
  decode: (value, field) => {
    if (value !== null) throw wrongField(field, "is not null, and a base is a full stream");
    return null;
  },
};

const base: Decoder<ArchivedBase> = fields<ArchivedBase>({
  name: text(MAX_ID),
  digest: text(128, /^[0-9a-f]+$/),
  ...stream,
  parentGuid: noParent,
});

const ancestor: Decoder<ArchivedStream> = fields<ArchivedStream>({ ...stream, parentGuid });

const snapshot: Decoder<ArchivedSnapshot> = fields<ArchivedSnapshot>({
  ...stream,
  parentGuid,
  id,
  kind: oneOf("turn", "named", "tool", "undo"),
  turnNumber: nullable(integer(1)),
  turnKey: nullable(text(MAX_KEY)),
  outcome: nullable(oneOf("succeeded", "failed")),
  title: nullable(text(MAX_KEY)),
  toolCallId: nullable(text(MAX_KEY)),
  createdAtMs: amount,
  parent: nullable(id),
  generation: integer(0),
});

export const sandboxBody: Decoder<SandboxBody> = fields<SandboxBody>({
  session,
  bases: list(base, MAX_BASES),
  ancestors: list(ancestor, MAX_SNAPSHOTS),
  snapshots: list(snapshot, MAX_SNAPSHOTS),
  calls,
  receipts,
  continuesFrom: nullable(id),
  archivedTurn: integer(0),
  archivedAtMs: amount,
});

export const templateBody: Decoder<TemplateBody> = fields<TemplateBody>({ base, createdAtMs: amount });
