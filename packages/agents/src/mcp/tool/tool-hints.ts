import type { ToolAnnotations } from "@modelcontextprotocol/sdk/types.js";
import type { ToolDescription } from "@turnbox/client";

const LOOKS = { destructiveHint: false, idempotentHint: true, openWorldHint: false } as const;
const REACHES_OUT = { destructiveHint: false, idempotentHint: true, openWorldHint: true } as const;

/** What a host may want to know before it asks its user. Tools that are not named here may do anything. */
const HINTS: Readonly<Record<string, ToolAnnotations>> = {
  bash: { destructiveHint: true, idempotentHint: false, openWorldHint: true },
  write_file: { destructiveHint: true, idempotentHint: true, openWorldHint: false },
  edit_file: { destructiveHint: true, idempotentHint: false, openWorldHint: false },
  git_status: LOOKS,
  git_diff: LOOKS,
  git_log: LOOKS,
  git_show: LOOKS,
  git_add: { destructiveHint: false, idempotentHint: true, openWorldHint: false },
  git_commit: { destructiveHint: false, idempotentHint: false, openWorldHint: false },
  git_clone: REACHES_OUT,
  git_fetch: REACHES_OUT,
  git_pull: { destructiveHint: true, idempotentHint: true, openWorldHint: true },
  git_push: { destructiveHint: true, idempotentHint: true, openWorldHint: true },
};

export function hintsOf({ name, readOnly }: Pick<ToolDescription, "name" | "readOnly">): ToolAnnotations {
  return readOnly ? { readOnlyHint: true, openWorldHint: false } : { readOnlyHint: false, ...HINTS[name] };
}
