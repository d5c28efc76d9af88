import type { Template as WireTemplate } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { toNumber } from "../sandbox/wire/number.ts";
import { toDateOrEpoch } from "../sandbox/wire/time.ts";
import type { Template } from "./turnbox-types.ts";

export const toTemplate = ({ name, digest, createdAt, sizeBytes, latest }: WireTemplate): Template => ({
  name,
  digest,
  createdAt: toDateOrEpoch(createdAt),
  sizeBytes: toNumber(sizeBytes),
  latest,
});
