import { type InputStream, type OutputStream, writeTo } from "../surroundings.ts";

/** Leaves it all to the process behind the terminal, but for this key: Ctrl-]. */
export const DETACH_KEY = 0x1d;

const ESCAPE = "\u001b[";
/** Other keys of the cursor, mouse reports, bracketed paste: off. The cursor: shown. */
const USUAL_MODES: readonly string[] = ["?1l", "?1000l", "?1002l", "?1003l", "?1006l", "?2004l", "?25h"];
const USUAL_SCREEN = "?1049l";
const PLAIN_TEXT = "0m";
const MODE_CHANGE = /\u001b\[\?([\d;]+)([hl])/g;
const LONGEST_SEQUENCE = 32;

/** The terminal in front of the user, given over to a process. */
export interface RawTerminal {
  /** Shows the process's output. */
  write(bytes: Uint8Array): Promise<void>;
  /** Gives the terminal back as it was: what the process left switched on is switched off. */
  restore(end: "by itself" | "cut off"): Promise<void>;
}

/** From here on every key goes to the process. The owner restores the terminal whatever happens. */
export async function openRawTerminal(stdin: InputStream, stdout: OutputStream): Promise<RawTerminal> {
  /** What brings the modes back that the process has changed. */
  const changed = new Set<string>();
  let tail = "";
  await stdin.setRawMode?.(true);
  return {
    write: async (bytes) => {
      const text = tail + Buffer.from(bytes).toString("latin1");
      for (const [, modes = "", state] of text.matchAll(MODE_CHANGE)) noteModes(changed, modes.split(";"), state);
      tail = text.slice(-LONGEST_SEQUENCE);
      await writeTo(stdout, bytes);
    },
    restore: async (end) => {
      await stdin.setRawMode?.(false);
      // One that was joined late may have changed more, and one that was cut off was somewhere in a line.
      if (end === "cut off") for (const mode of [...USUAL_MODES, PLAIN_TEXT]) changed.add(mode);
      const text = [...changed].map((mode) => ESCAPE + mode).join("");
      if (text !== "") await writeTo(stdout, end === "cut off" ? `${text}\r\n` : text);
    },
  };
}

function noteModes(changed: Set<string>, modes: readonly string[], state: string | undefined): void {
  for (const usual of [USUAL_SCREEN, ...USUAL_MODES]) {
    if (!modes.includes(usual.slice(1, -1))) continue;
    if (usual.endsWith(state ?? "")) changed.delete(usual);
    else changed.add(usual);
  }
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
