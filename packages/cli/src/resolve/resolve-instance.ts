import { SandboxError } from "@turnbox/core";
import type { Fleet, Instance } from "@turnbox/client";
import { ambiguous } from "@turnbox/client/internal";

/** The one instance that a full id, or a unique prefix of one, means. */
export async function resolveInstance(
  fleet: Fleet,
  reference: string,
  call: { readonly signal: AbortSignal },
): Promise<Instance> {
  const instances = await fleet.instances(call);
  const exact = instances.find(({ id }) => id === reference);
  if (exact !== undefined) return exact;
  const matches = reference === "" ? [] : instances.filter(({ id }) => id.startsWith(reference));
  const [first, ...others] = matches;
  if (first === undefined) {
    throw new SandboxError("INSTANCE_NOT_FOUND", `no instance is called ${JSON.stringify(reference)}`, {
      metadata: { reference },
    });
  }
  if (others.length === 0) return first;
  throw ambiguous(
    "instance",
    reference,
    matches.map(({ id }) => id),
  );
}
