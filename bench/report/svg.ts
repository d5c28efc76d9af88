/** Elements of a drawing made of text, small enough to be read in a diff. */

export interface TextStyle {
  readonly anchor?: "start" | "middle" | "end";
  readonly className?: string;
}

const escape = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const at = (value: number): string => String(Math.round(value * 10) / 10);

export function text(
  x: number,
  y: number,
  content: string,
  { anchor = "start", className = "t" }: TextStyle = {},
): string {
  return `<text x="${at(x)}" y="${at(y)}" text-anchor="${anchor}" class="${className}">${escape(content)}</text>`;
}

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export function box({ x, y, width, height }: Box, className: string): string {
  return `<rect x="${at(x)}" y="${at(y)}" width="${at(Math.max(0.5, width))}" height="${at(height)}" class="${className}"/>`;
}

export function line(from: readonly [number, number], to: readonly [number, number], className: string): string {
  return `<line x1="${at(from[0])}" y1="${at(from[1])}" x2="${at(to[0])}" y2="${at(to[1])}" class="${className}"/>`;
}

export function path(points: readonly (readonly [number, number])[], className: string): string {
  return `<polyline points="${points.map(([x, y]) => `${at(x)},${at(y)}`).join(" ")}" class="${className}"/>`;
}

const STYLE = `svg{background:#fff}.t{font:12px sans-serif;fill:#222}.s{font:11px sans-serif;fill:#666}.h{font:bold 14px sans-serif;fill:#222}
.pass{fill:#2e7d32}.fail{fill:#c62828}.none{fill:#607d8b}.bar{stroke:#222;stroke-width:2}.floor{stroke:#999;stroke-dasharray:4 3}
.axis{stroke:#bbb}.curve{fill:none;stroke:#1565c0;stroke-width:2}.limit{fill:none;stroke:#999;stroke-dasharray:4 3}`;

export function drawing(width: number, height: number, elements: readonly string[]): string {
  const size = `width="${at(width)}" height="${at(height)}" viewBox="0 0 ${at(width)} ${at(height)}"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size}>`,
    `<style>${STYLE}</style>`,
    ...elements,
    "</svg>",
    "",
  ].join("\n");
}
