import { type SandboxView, shortTemplate } from "../sandbox-view.ts";
import { formatAge } from "./duration.ts";
import { formatSize } from "./size.ts";
import { formatTable, type TableLook } from "./table.ts";

/** How it is with a sandbox, at a glance. */
const STATE_COLORS = { active: "green", paused: "yellow", failed: "red" } as const;

export function formatSandboxes(sandboxes: readonly SandboxView[], nowMs: number, look: TableLook = {}): string {
  return formatTable(
    ["ID", "NAME", "STATE", "TEMPLATE", "TURNS", "SIZE", "AGE"],
    sandboxes.map((sandbox) => [
      sandbox.sandboxId,
      sandbox.name,
      sandbox.state,
      shortTemplate(sandbox.template),
      String(sandbox.turnCount),
      formatSize(sandbox.spaceUsedBytes),
      sandbox.createdAt === null ? "" : formatAge(nowMs - Date.parse(sandbox.createdAt)),
    ]),
    { ...look, colors: STATE_COLORS },
  );
}
