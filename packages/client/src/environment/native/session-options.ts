import { invalidArgument } from "@turnbox/core";
import { OnTimeout } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { z } from "zod";
import { toWirePolicy } from "../../sandbox/network/network-policy.ts";
import type { SandboxNetworkPolicy } from "../../sandbox/network/sandbox-network.ts";
import { toWireCount } from "../../sandbox/wire/number.ts";
import { toWireDuration } from "../../sandbox/wire/time.ts";

const count = z.int().min(0);
const ms = z.number().positive();

/** The `options` of a native sandbox's session; all may be left out. */
const SESSION_OPTIONS = z.strictObject({
  /** The agent's allowance on top of the base image. */
  quotaBytes: count.optional(),
  ttlMs: ms.optional(),
  idleTimeoutMs: ms.optional(),
  onTimeout: z.enum(["pause", "destroy"]).optional(),
  env: z.record(z.string(), z.string()).default({}),
  /** That it will serve. */
  ports: z.array(z.int().min(1).max(65_535)).default([]),
  resources: z
    .strictObject({ cpus: z.number().optional(), memoryBytes: count.optional(), pids: count.optional() })
    .optional(),
  network: z
    .strictObject({
      allowPublicIngress: z.boolean(),
      allowOutbound: z.boolean(),
      allowList: z.array(z.string()),
      denyList: z.array(z.string()),
      required: z.boolean(),
    })
    .partial()
    .optional(),
});

/** The part of a request for a session that `options` says. */
export function toSessionOptions(raw: Readonly<Record<string, unknown>>) {
  const parsed = SESSION_OPTIONS.safeParse(raw);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw invalidArgument(["options", ...(issue?.path ?? [])].join("."), issue?.message ?? "is not valid");
  }
  const { quotaBytes, ttlMs, idleTimeoutMs, onTimeout, env, ports, resources, network } = parsed.data;
  return {
    env,
    ports,
    quotaBytes: toWireCount("options.quotaBytes", quotaBytes),
    onTimeout: onTimeout === "pause" ? OnTimeout.PAUSE : OnTimeout.DESTROY,
    ...(ttlMs === undefined ? {} : { ttl: toWireDuration("options.ttlMs", ttlMs) }),
    ...(idleTimeoutMs === undefined ? {} : { idleTimeout: toWireDuration("options.idleTimeoutMs", idleTimeoutMs) }),
    ...(resources === undefined ? {} : { resources: toWireResources(resources) }),
    ...(network === undefined ? {} : { networkPolicy: toWirePolicy(network as SandboxNetworkPolicy) }),
  };
}

const toWireResources = ({
  cpus = 0,
  memoryBytes,
  pids = 0,
}: NonNullable<z.output<typeof SESSION_OPTIONS>["resources"]>) => ({
  cpus,
  memoryBytes: toWireCount("options.resources.memoryBytes", memoryBytes),
  pids,
});
