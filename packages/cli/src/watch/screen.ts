import { cutToWidth } from "../format/display-width.ts";
import { type OutputStream, writeTo } from "../surroundings.ts";

/** The terminal's other screen, so that what was on it is there again afterwards; without a cursor. */
const ENTER_SCREEN = "\u001b[?1049h\u001b[?25l";
const LEAVE_SCREEN = "\u001b[?25h\u001b[?1049l";
const FROM_THE_TOP = "\u001b[H";
const CLEAR_LINE_END = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";

/** Lets `work` draw on the terminal's other screen and leaves it, however the work ends. */
export async function onScreen(
  stdout: OutputStream,
  work: (paint: (text: string) => Promise<void>) => Promise<void>,
): Promise<void> {
  await writeTo(stdout, ENTER_SCREEN);
  try {
    await work((text) => writeTo(stdout, paintScreen(text, stdout)));
  } finally {
    await writeTo(stdout, LEAVE_SCREEN);
  }
}

/**
 * Over what is there, without a flash. What does not fit below is counted in the last line, what does not fit to the right
 * is cut: a line that wraps would push the others down. 0 is what no terminal says of its size.
 */
export function paintScreen(text: string, size: Pick<OutputStream, "rows" | "columns"> = {}): string {
  const { rows = 0, columns = 0 } = size;
  const lines = text.trimEnd().split("\n");
  const shown = rows === 0 || lines.length < rows ? lines : lines.slice(0, Math.max(1, rows - 2));
  const hidden = lines.length - shown.length;
  const all = hidden === 0 ? shown : [...shown, `and ${String(hidden)} more`];
  const cut = (line: string): string => (columns === 0 ? line : cutToWidth(line, { width: columns, mark: "" }));
  return `${FROM_THE_TOP}${all.map((line) => `${cut(line)}${CLEAR_LINE_END}\n`).join("")}${CLEAR_BELOW}`;
}
