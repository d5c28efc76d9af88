import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CreateSandboxRequestSchema } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { OnTimeout } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { toWirePolicy } from "../sandbox/network/network-policy.ts";
import { toWireCount, toWireUint32 } from "../sandbox/wire/number.ts";
import { toWireDuration } from "../sandbox/wire/time.ts";
import type { CreateOptions } from "./turnbox-types.ts";

const ON_TIMEOUT = { pause: OnTimeout.PAUSE, destroy: OnTimeout.DESTROY } as const;

export function toCreateRequest(
  options: CreateOptions,
  { idempotencyKey, discardIfAbandoned }: { readonly idempotencyKey: string; readonly discardIfAbandoned: boolean },
): MessageInitShape<typeof CreateSandboxRequestSchema> {
  const { name = "", template = "", labels = {}, env = {}, resources, quotaBytes, network } = options;
  return {
    idempotencyKey,
    discardIfAbandoned,
    name,
    template,
    labels: { ...labels },
    env: { ...env },
    quotaBytes: toWireCount("quotaBytes", quotaBytes),
    ...toWireLifetime(options),
    ...(resources === undefined ? {} : { resources: toWireResources(resources) }),
    ...(network === undefined ? {} : { networkPolicy: toWirePolicy(network) }),
  };
}

const toWireLifetime = ({ ttlMs, idleTimeoutMs, onTimeout }: CreateOptions) => ({
  ...(ttlMs === undefined ? {} : { ttl: toWireDuration("ttlMs", ttlMs) }),
  ...(idleTimeoutMs === undefined ? {} : { idleTimeout: toWireDuration("idleTimeoutMs", idleTimeoutMs) }),
  ...(onTimeout === undefined ? {} : { onTimeout: ON_TIMEOUT[onTimeout] }),
});

const toWireResources = ({ cpus = 0, memoryBytes, pids = 0 }: NonNullable<CreateOptions["resources"]>) => ({
  cpus,
  memoryBytes: toWireCount("resources.memoryBytes", memoryBytes),
  pids: toWireUint32("resources.pids", pids),
});
