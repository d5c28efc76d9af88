import type { NetworkPolicy } from "../../network-policy/policy.ts";
import type { Timing } from "../../record/row.ts";
import type { ContainerLimits } from "../../runtime/runtime.ts";
import {
  amount,
  type Decoder,
  fields,
  flag,
  integer,
  list,
  nullable,
  oneOf,
  optional,
  text,
  texts,
} from "../decode.ts";
import type { ArchivedSession } from "./manifest.ts";

const MAX_NAME = 256;
const MAX_TEXT = 1024 * 1024;
const MAX_ENTRIES = 10_000;

const base: Decoder<ArchivedSession["base"]> = fields<ArchivedSession["base"]>({
  name: text(MAX_NAME),
  digest: text(128, /^[0-9a-f]+$/),
});

const limits: Decoder<ContainerLimits> = fields<ContainerLimits>({
  cpus: optional(amount),
  memoryBytes: optional(amount),
  pids: optional(integer(0)),
});

const timing: Decoder<Timing> = fields<Timing>({
  ttlMs: nullable(amount),
  expiresAtMs: nullable(amount),
  idleTimeoutMs: nullable(amount),
  onTimeout: oneOf("pause", "destroy"),
});

const networkPolicy: Decoder<NetworkPolicy> = fields<NetworkPolicy>({
  allowPublicIngress: flag,
  allowOutbound: flag,
  allowList: list(text(MAX_NAME), MAX_ENTRIES),
  denyList: list(text(MAX_NAME), MAX_ENTRIES),
  required: flag,
});

/** What a session is beyond its files. */
export const session: Decoder<ArchivedSession> = fields<ArchivedSession>({
  base,
  createdAtMs: amount,
  labels: texts(MAX_ENTRIES, MAX_TEXT),
  env: texts(MAX_ENTRIES, MAX_TEXT),
  limits,
  timing,
  ports: list(integer(1, 65_535), 65_535),
  networkPolicy: nullable(networkPolicy),
  forkedFrom: nullable(
    fields<NonNullable<ArchivedSession["forkedFrom"]>>({ sessionId: text(MAX_NAME), snapshotId: text(MAX_NAME) }),
  ),
  quotaBytes: nullable(amount),
  refquotaBytes: nullable(amount),
  turnCounter: integer(0),
  generation: integer(0),
});
