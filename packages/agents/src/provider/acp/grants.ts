import type { PermissionDecision, PermissionOperation } from "../tool-host/permission.ts";

/** What an agent was allowed when it asked, until it makes use of it. */
export interface Grants {
  add(grant: GrantSpec): void;
  /** Whether a grant covers this; one that is good for once is used up by it. */
  use(wanted: { readonly sessionId: string; readonly operation: PermissionOperation; readonly path: string }): boolean;
  /** What was granted for once, and not used, ends with the turn that it was granted in. */
  endTurn(sessionId: string): void;
}

export interface GrantSpec {
  readonly sessionId: string;
  readonly decision: PermissionDecision;
  /** The tool call's kind. */
  readonly kind: string | null | undefined;
  /** Resolved; none means that the request named no place. */
  readonly paths: readonly string[];
}

/** Kinds of tool calls that write files. Allowing one that only looks, or thinks, allows no effect. */
const WRITES: ReadonlySet<string> = new Set(["edit", "delete", "move"]);
const RUNS = "execute";
const UNSPECIFIED = "other";

export function createGrants(): Grants {
  const grants = new Set<GrantSpec>();
  return {
    add: (grant) => {
      if (grant.decision.startsWith("allow-")) grants.add(grant);
    },
    use: (wanted) => {
      for (const grant of grants) {
        if (grant.sessionId !== wanted.sessionId || !covers(grant, wanted)) continue;
        if (grant.decision === "allow-once") grants.delete(grant);
        return true;
      }
      return false;
    },
    endTurn: (sessionId) => {
      for (const grant of grants)
        if (grant.sessionId === sessionId && grant.decision === "allow-once") grants.delete(grant);
    },
  };
}

/** A call of no particular kind may do either, but runs nothing if it names files. */
function covers(
  { kind, paths }: GrantSpec,
  { operation, path }: { readonly operation: PermissionOperation; readonly path: string },
): boolean {
  const what = kind ?? UNSPECIFIED;
  if (operation === "fs/write_text_file")
    return (WRITES.has(what) || what === UNSPECIFIED) && (paths.length === 0 || paths.includes(path));
  return operation === "terminal/create" && (what === RUNS || (what === UNSPECIFIED && paths.length === 0));
}
