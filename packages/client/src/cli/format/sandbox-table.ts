import { printable } from "../printable.ts";
import { type SandboxView, shortTemplate } from "../sandbox-view.ts";
import { formatAge } from "./duration.ts";
import { formatSize } from "./size.ts";
import { formatTable } from "./table.ts";

export function formatSandboxes(sandboxes: readonly SandboxView[], nowMs: number): string {
  return formatTable(
    ["ID", "NAME", "STATE", "TEMPLATE", "TURNS", "SIZE", "AGE"],
    sandboxes.map((sandbox) => [
      sandbox.sandboxId,
      printable(sandbox.name),
      sandbox.state,
      shortTemplate(sandbox.template),
      String(sandbox.turnCount),
      formatSize(sandbox.spaceUsedBytes),
      sandbox.createdAt === null ? "" : formatAge(nowMs - Date.parse(sandbox.createdAt)),
    ]),
  );
}
