import { create } from "@bufbuild/protobuf";
import { invalidArgument, parseKey, parseLabels } from "@turnbox/core";
import {
  type ForkSandboxRequest as WireForkRequest,
  type ForkSandboxResult as WireForkResult,
  ForkSandboxResultSchema,
} from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import type { ForkResult, ForkSandboxRequest } from "../control/sandbox-control.ts";
import { toWireSandbox } from "./convert.ts";

const MAX_CHILDREN = 100;
const MAX_SNAPSHOT_ID_BYTES = 128;

/** The request in the domain's words; each field that breaks its rule is named. */
export function fromForkRequest(request: WireForkRequest): ForkSandboxRequest {
  if (request.count > MAX_CHILDREN) throw invalidArgument("count", `must be at most ${String(MAX_CHILDREN)}`);
  if (Buffer.byteLength(request.snapshotId) > MAX_SNAPSHOT_ID_BYTES)
    throw invalidArgument("snapshot_id", "is longer than any id of a snapshot");
  return {
    sandboxId: request.sandboxId,
    idempotencyKey: parseKey("idempotency_key", request.idempotencyKey),
    snapshotId: request.snapshotId,
    count: request.count === 0 ? 1 : request.count,
    labels: parseLabels("labels", request.labels),
  };
}

export function toWireForkResult(result: ForkResult): WireForkResult {
  return create(
    ForkSandboxResultSchema,
    result.kind === "forked"
      ? { result: { case: "sandbox", value: toWireSandbox(result.sandbox) } }
      : { result: { case: "reason", value: result.error.reason }, message: result.error.message },
  );
}
