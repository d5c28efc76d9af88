import type { HostSessionOptions } from "@turnbox/client";
import { invalidArgument } from "@turnbox/client/internal";
import { z } from "zod";

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

/** What `options` say about a session. */
export function toSessionOptions(raw: Readonly<Record<string, unknown>>): HostSessionOptions {
  const parsed = SESSION_OPTIONS.safeParse(raw);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw invalidArgument(["options", ...(issue?.path ?? [])].join("."), issue?.message ?? "is not valid");
  }
  // What is left out is not there, which its type does not say.
  return parsed.data as HostSessionOptions;
}
