/** The text as a part of a regular expression that matches exactly it. */
export function escapeText(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
