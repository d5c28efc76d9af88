// Characters that take two columns: East Asian wide and fullwidth ones, and what is drawn as a picture.
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1b000}-\u{1b2ff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u;
// What stands on the character before it, or is not seen at all.
const NOTHING = /^[\p{Mn}\p{Me}\p{Cf}]+$/u;
const PLAIN = /^[\u0020-\u007e]*$/;

let segmenter: Intl.Segmenter | undefined;

/** What people take for one character each. */
function clustersOf(text: string): Iterable<{ readonly segment: string }> {
  segmenter ??= new Intl.Segmenter("en", { granularity: "grapheme" });
  return segmenter.segment(text);
}

const clusterWidth = (cluster: string): number => {
  if (NOTHING.test(cluster)) return 0;
  return WIDE.test(cluster) ? 2 : 1;
};

/** How many columns of a terminal a text takes. The text has no control characters, see `printable`. */
export function displayWidth(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const { segment } of clustersOf(text)) width += clusterWidth(segment);
  return width;
}

/** Filled with spaces up to a width on the terminal. */
export const padToWidth = (text: string, width: number): string =>
  text + " ".repeat(Math.max(0, width - displayWidth(text)));

/** As much of the text as fits; what is cut is marked at the end. */
export function cutToWidth(text: string, { width, mark }: { readonly width: number; readonly mark: string }): string {
  if (displayWidth(text) <= width) return text;
  let kept = "";
  let used = displayWidth(mark);
  for (const { segment } of clustersOf(text)) {
    used += clusterWidth(segment);
    if (used > width) break;
    kept += segment;
  }
  return kept + mark;
}
