import type { Environment } from "@turnbox/client/internal";
import type { OutputStream } from "./surroundings.ts";

const COLORS = { red: 31, green: 32, yellow: 33, magenta: 35, cyan: 36 } as const;
export type Color = keyof typeof COLORS;

/** How words are set off on a stream; if it may not be coloured, each returns the text as it is. */
export interface Style {
  bold(text: string): string;
  /** For what matters less than the rest. */
  dim(text: string): string;
  paint(color: Color, text: string): string;
}

const wrap = (on: number, off: number, text: string): string => `\u001b[${String(on)}m${text}\u001b[${String(off)}m`;

export const PLAIN: Style = { bold: (text) => text, dim: (text) => text, paint: (_, text) => text };

const STYLED: Style = {
  bold: (text) => wrap(1, 22, text),
  dim: (text) => wrap(2, 22, text),
  paint: (color, text) => wrap(COLORS[color], 39, text),
};

/** Styled on a terminal unless the environment refuses it, and elsewhere only if the environment forces it. */
export function createStyle(stream: Pick<OutputStream, "isTTY">, { color }: Pick<Environment, "color">): Style {
  if (color === "allowed") return stream.isTTY === true ? STYLED : PLAIN;
  return color === "forced" ? STYLED : PLAIN;
}
