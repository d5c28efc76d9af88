import { counted, done, refused, type ToolOutcome } from "./outcome.ts";
import type { ToolParams } from "./tool-schemas.ts";

/** A part of a text with line numbers, and where to go on. */
export function showLines(
  name: string,
  text: string,
  { offset, limit }: Pick<ToolParams<"read_file">, "offset" | "limit">,
): ToolOutcome {
  if (text === "") return done(`${name} is empty.`);
  const lines = text.replace(/\n$/, "").split("\n");
  const window = lines.slice(offset - 1, offset - 1 + limit);
  const total = counted(lines.length, "line");
  if (window.length === 0) return refused(`${name} has ${total}; there is no line ${String(offset)}.`);
  const shown = window.map((line, index) => `${String(offset + index).padStart(6)}\t${line}`).join("\n");
  const last = offset + window.length - 1;
  if (offset === 1 && last === lines.length) return done(shown);
  const next = last < lines.length ? `; go on with offset ${String(last + 1)}` : "";
  return done(`${shown}\n[lines ${String(offset)} to ${String(last)} of ${total} of ${name}${next}]`);
}

/** The text after an edit, or why it is not done. */
export function editText(
  name: string,
  text: string,
  { old_string: before, new_string: after, replace_all: all }: ToolParams<"edit_file">,
): { readonly text?: string; readonly outcome: ToolOutcome } {
  if (before === after)
    return { outcome: refused("old_string and new_string are the same: there is nothing to change.") };
  const parts = text.split(before);
  const count = parts.length - 1;
  if (count === 0) return { outcome: refused(`old_string is not found in ${name}.`) };
  if (count > 1 && !all) {
    const advice = "Add lines around it until it is unique, or set replace_all.";
    return { outcome: refused(`old_string is found ${String(count)} times in ${name}. ${advice}`) };
  }
  return { text: parts.join(after), outcome: done(`Replaced ${counted(count, "occurrence")} in ${name}.`) };
}
