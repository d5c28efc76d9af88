const TYPES = {
  File: "0",
  Link: "1",
  SymbolicLink: "2",
  CharacterDevice: "3",
  BlockDevice: "4",
  Directory: "5",
  FIFO: "6",
} as const;
const BLOCK_BYTES = 512;

/** An entry of an archive, as nobody's tar would write it. */
export interface CraftedEntry {
  /** At most 100 bytes. */
  readonly path: string;
  readonly text?: string | Buffer;
  readonly type?: keyof typeof TYPES;
  readonly linkpath?: string;
  readonly mode?: number;
  /** What the header claims; default the text's length. */
  readonly sizeBytes?: number;
}

export function archiveOf(...entries: readonly CraftedEntry[]): Buffer {
  return Buffer.concat([...entries.flatMap(blocksOf), Buffer.alloc(2 * BLOCK_BYTES)]);
}

function blocksOf({ path, text = "", type = "File", linkpath = "", mode = 0o644, sizeBytes }: CraftedEntry): Buffer[] {
  const body = Buffer.from(text);
  const header = Buffer.alloc(BLOCK_BYTES);
  const octal = (value: number, digits: number): string => value.toString(8).padStart(digits, "0");
  header.write(path, 0);
  header.write(`${octal(mode, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0${octal(sizeBytes ?? body.length, 11)}\0`, 100);
  header.write(`${octal(0, 11)}\0        ${TYPES[type]}`, 136);
  header.write(linkpath, 157);
  header.write("ustar\x0000", 257, "latin1");
  header.write(
    `${octal(
      header.reduce((sum, byte) => sum + byte, 0),
      6,
    )}\0 `,
    148,
  );
  return [header, body, Buffer.alloc((BLOCK_BYTES - (body.length % BLOCK_BYTES)) % BLOCK_BYTES)];
}
