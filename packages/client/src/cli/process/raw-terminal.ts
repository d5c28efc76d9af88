import { type InputStream, type OutputStream, writeTo } from "../surroundings.ts";

/** Leaves it all to the process behind the terminal, but for this key: Ctrl-]. */
export const DETACH_KEY = 0x1d;

const ESCAPE = "\u001b[";
/** No mouse reports, no bracketed paste, a visible cursor, plain text. */
const USUAL_MODES = ["?1000l", "?1002l", "?1003l", "?1006l", "?2004l", "?25h", "0m"]
  .map((mode) => ESCAPE + mode)
  .join("");
const LEAVE_OTHER_SCREEN = `${ESCAPE}?1049l`;
const OTHER_SCREEN = /\[\?1049([hl])/g;
const LONGEST_SEQUENCE = 8;

/** The terminal in front of the user, given over to a process. */
export interface RawTerminal {
  /** Shows the process's output. */
  write(bytes: Uint8Array): Promise<void>;
  /** Gives the terminal back as it was. What the process left switched on is switched off unless it ended by itself. */
  restore(end: "by itself" | "cut off"): Promise<void>;
}

/** From here on every key goes to the process. The owner restores the terminal whatever happens. */
export async function openRawTerminal(stdin: InputStream, stdout: OutputStream): Promise<RawTerminal> {
  let screen: "usual" | "other" = "usual";
  let tail = "";
  await stdin.setRawMode?.(true);
  return {
    write: async (bytes) => {
      const text = tail + Buffer.from(bytes).toString("latin1");
      for (const [, mode] of text.matchAll(OTHER_SCREEN)) screen = mode === "h" ? "other" : "usual";
      tail = text.slice(-LONGEST_SEQUENCE);
      await writeTo(stdout, bytes);
    },
    restore: async (end) => {
      await stdin.setRawMode?.(false);
      if (end === "by itself") return;
      await writeTo(stdout, `${screen === "other" ? LEAVE_OTHER_SCREEN : ""}${USUAL_MODES}\r\n`);
    },
  };
}

/** What is typed before the detach key, and whether it was among it. */
export function untilDetachKey(bytes: Uint8Array): { readonly bytes: Uint8Array; readonly last: boolean } {
  const at = bytes.indexOf(DETACH_KEY);
  return at < 0 ? { bytes, last: false } : { bytes: bytes.subarray(0, at), last: true };
}

const MAX_SIDE = 1000;
const USUAL_SIZE = { columns: 80, rows: 24 } as const;

/** The size that the process's terminal shall have. */
export function terminalSize({ columns, rows }: OutputStream): { readonly columns: number; readonly rows: number } {
  const clamp = (side: number | undefined, usual: number): number =>
    side === undefined || side < 1 ? usual : Math.min(side, MAX_SIDE);
  return { columns: clamp(columns, USUAL_SIZE.columns), rows: clamp(rows, USUAL_SIZE.rows) };
}
