import { SandboxError } from "@turnbox/core";
import type { Verb } from "@turnbox/protocol/turnbox/common/v1/access_pb";
import { type Access, createLink, type LinkOptions, type SandboxLink } from "./sandbox-link.ts";

/** The links of one `Turnbox`: handles of the same sandbox share one, with its connection and its token. */
export interface LinkPool extends Disposable {
  /** A share of the link to a sandbox; the last one that is disposed of closes it. */
  lease(sandboxId: string, access?: Access): SandboxLink;
  /** A link of the caller's own, with tokens that allow these verbs. Its user disposes of it. */
  open(sandboxId: string, verbs: readonly Verb[]): SandboxLink;
}

export function createLinkPool(options: Omit<LinkOptions, "sandboxId" | "access" | "verbs">): LinkPool {
  const links = new Map<string, { readonly link: SandboxLink; shares: number }>();
  return {
    lease: (sandboxId, access) => {
      const shared = links.get(sandboxId) ?? { link: createLink({ ...options, sandboxId, access }), shares: 0 };
      links.set(sandboxId, shared);
      shared.shares += 1;
      const over = new AbortController();
      return {
        sandboxId,
        signal: over.signal,
        use: async (call, options) => {
          over.signal.throwIfAborted();
          return await shared.link.use(call, options);
        },
        [Symbol.dispose]: () => {
          if (over.signal.aborted) return;
          over.abort(new SandboxError("CANCELLED", "the sandbox's handle was closed"));
          shared.shares -= 1;
          if (shared.shares > 0) return;
          if (links.get(sandboxId) === shared) links.delete(sandboxId);
          shared.link[Symbol.dispose]();
        },
      };
    },
    open: (sandboxId, verbs) => createLink({ ...options, sandboxId, verbs }),
    [Symbol.dispose]: () => {
      for (const { link } of links.values()) link[Symbol.dispose]();
      links.clear();
    },
  };
}
