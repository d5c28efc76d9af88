import type { CallOptions, CreateOptions, ListOptions, Sandbox, SandboxList } from "@turnbox/client";

/** What the provider needs of a `Turnbox`. */
export interface SandboxSource {
  create(options?: CreateOptions): Promise<Sandbox>;
  get(idOrName: string, options?: CallOptions): Promise<Sandbox>;
  list(options?: ListOptions): Promise<SandboxList>;
}

/** What a sandbox is made with, beyond what the profile says. */
export type SandboxDefaults = Pick<
  CreateOptions,
  "template" | "resources" | "quotaBytes" | "ttlMs" | "idleTimeoutMs" | "onTimeout"
>;
