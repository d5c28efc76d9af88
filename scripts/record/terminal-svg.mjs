/**
 * Pictures of terminals: the cells of an emulator as text in an SVG, whose lines come in one after the other. Where
 * nothing moves (no CSS, or a reader who prefers it so), all of them are there.
 */
const CELL = { width: 8.4, height: 19 };
const FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,DejaVu Sans Mono,monospace";
const FONT_PX = 14;
const PAD = 18;
const BAR_HEIGHT = 34;
const THEME = {
  background: "#14161b",
  frame: "#22252d",
  text: "#d7dae0",
  palette: [
    ...["#3b3f4a", "#ef7178", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d7dae0"],
    ...["#7d8491", "#ff8b92", "#b5e08d", "#ffd58a", "#7cc3ff", "#dd91f3", "#74d3df", "#ffffff"],
  ],
};

/** How fast it plays. */
const TYPED_MS = 32;
const BEFORE_OUTPUT_MS = 260;
const BETWEEN_LINES_MS = 45;
const AFTER_OUTPUT_MS = 900;

const escapeXml = (text) => text.replace(/[&<>]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[sign]);
const round = (value) => Math.round(value * 100) / 100;

function colorOf(isDefault, isRgb, value) {
  if (isDefault) return undefined;
  if (isRgb) return `#${value.toString(16).padStart(6, "0")}`;
  if (value < 16) return THEME.palette[value];
  if (value > 231) return `#${(8 + (value - 232) * 10).toString(16).padStart(2, "0").repeat(3)}`;
  const step = (level) => (level === 0 ? 0 : 55 + level * 40).toString(16).padStart(2, "0");
  const index = value - 16;
  return `#${step(Math.floor(index / 36))}${step(Math.floor(index / 6) % 6)}${step(index % 6)}`;
}

function styleOf(cell) {
  const color = colorOf(cell.isFgDefault(), cell.isFgRGB(), cell.getFgColor()) ?? THEME.text;
  const rules = [
    color === THEME.text ? "" : ` fill="${color}"`,
    cell.isBold() ? ' font-weight="600"' : "",
    cell.isItalic() ? ' font-style="italic"' : "",
    cell.isUnderline() ? ' text-decoration="underline"' : "",
    cell.isDim() ? ' opacity="0.6"' : "",
  ];
  return rules.join("");
}

/** The line as pieces of one style each: `{ column, text, style }`. */
export function readLine(line) {
  const runs = [];
  for (let column = 0; column < line.length; column += 1) {
    const cell = line.getCell(column);
    if (cell === undefined || cell.getWidth() === 0) continue;
    const style = styleOf(cell);
    const text = cell.getChars() || " ";
    const last = runs.at(-1);
    if (last?.style === style) last.text += text;
    else runs.push({ column, text, style });
  }
  const visible = runs.findLastIndex(({ text }) => text.trim() !== "");
  return runs
    .slice(0, visible + 1)
    .map((run, index) => (index === visible ? { ...run, text: run.text.trimEnd() } : run));
}

function drawRun({ column, text, style }, y) {
  const width = round(text.length * CELL.width);
  const x = round(PAD + column * CELL.width);
  return `<text x="${x}" y="${y}" textLength="${width}"${style}>${escapeXml(text)}</text>`;
}

/**
 * @param lines `{ runs, kind: "typed" | "printed" }` from top to bottom; typed ones are revealed letter by letter.
 * @param options `columns`, the width in cells, and `title`, for the frame and for those who cannot see it.
 */
export function drawTerminal(lines, { columns, title }) {
  const width = round(columns * CELL.width + 2 * PAD);
  const height = BAR_HEIGHT + lines.length * CELL.height + 2 * PAD;
  let atMs = 400;
  const drawn = lines.map(({ runs, kind }, index) => {
    const y = BAR_HEIGHT + PAD + index * CELL.height + FONT_PX;
    const letters = runs.reduce((sum, { text }) => sum + text.length, 0);
    const takesMs = kind === "typed" ? letters * TYPED_MS : 1;
    if (kind === "typed" && index > 0) atMs += AFTER_OUTPUT_MS;
    const steps = kind === "typed" ? ` steps(${Math.max(letters, 1)},end)` : "";
    const style = `animation:${kind} ${takesMs}ms${steps} ${atMs}ms both`;
    atMs += kind === "typed" ? takesMs + BEFORE_OUTPUT_MS : BETWEEN_LINES_MS;
    return `<g style="${style}">${runs.map((run) => drawRun(run, y)).join("")}</g>`;
  });
  const lights = ["#ef7178", "#e5c07b", "#98c379"].map(
    (color, index) => `<circle cx="${PAD + 4 + index * 20}" cy="${BAR_HEIGHT / 2}" r="6" fill="${color}"/>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>${escapeXml(title)}</title>
<style>
text{white-space:pre}
@keyframes typed{from{clip-path:inset(0 100% 0 0)}to{clip-path:inset(0 0 0 0)}}
@keyframes printed{from{opacity:0}to{opacity:1}}
@media (prefers-reduced-motion:reduce){g{animation:none!important}}
</style>
<rect width="100%" height="100%" rx="10" fill="${THEME.background}"/>
<path d="M0 ${BAR_HEIGHT}V10a10 10 0 0 1 10-10H${width - 10}a10 10 0 0 1 10 10v${BAR_HEIGHT - 10}z" fill="${THEME.frame}"/>
${lights.join("")}
<g font-family="${FONT}" font-size="${FONT_PX}" fill="${THEME.text}" xml:space="preserve">
<text x="${width / 2}" y="${BAR_HEIGHT / 2 + 5}" text-anchor="middle" fill="#7d8491">${escapeXml(title)}</text>
${drawn.join("\n")}
</g>
</svg>
`;
}
