import { PLAIN, type Style } from "../style.ts";

export type PartStatus = "found" | "missing" | "broken";

/** One thing that Turnbox needs or can use, and how it stands with it. */
export interface Part {
  readonly name: string;
  readonly status: PartStatus;
  /** Empty if it is not known. */
  readonly version: string;
  /** Whether nothing works without it. */
  readonly required: boolean;
  /** What was tried and seen, if it is not simply there. */
  readonly detail: string;
  /** What you do without as long as it is not there. */
  readonly without: string;
  /** How to get it. */
  readonly remedy: string;
}

/** Whether everything that is required is there. */
export const isHealthy = (parts: readonly Part[]): boolean =>
  parts.every((part) => part.status === "found" || !part.required);

/** One line for each part, and under what is not there: what it costs and how to get it. */
export function formatParts(parts: readonly Part[], style: Style = PLAIN): string {
  const width = Math.max(0, ...parts.map(({ name }) => name.length));
  return parts
    .map(({ name, status, version, required, detail, without, remedy }) => {
      const remark = status === "found" && detail !== "" ? `(${detail})` : "";
      const color = status === "found" ? "green" : required ? "red" : "yellow";
      const verdict = `${style.paint(color, status)}${" ".repeat("missing".length - status.length)}`;
      const lines = [[name.padEnd(width), verdict, version, remark].join("  ").trimEnd()];
      if (status === "found") return lines;
      const indent = " ".repeat(width + 2);
      if (detail !== "") lines.push(`${indent}${detail}`);
      if (without !== "") lines.push(`${indent}without it: ${without}${required ? " (required)" : ""}`);
      if (remedy !== "") lines.push(`${indent}remedy: ${remedy}`);
      return lines;
    })
    .flat()
    .map((line) => `${line}\n`)
    .join("");
}
