import { mkdir, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { randomToken } from "@turnbox/core";
import { resultDirectory } from "./result-directory.ts";

/** The parts of a result that make it large. */
export interface LargeContent {
  readonly content: string;
  /** Each with what is said of it, and its text. */
  readonly blocks: readonly { readonly about: Readonly<Record<string, string>>; readonly text: string }[];
}

/** The first line of a file: how long each part is, in bytes. The parts follow as they are, without escapes. */
interface Head {
  readonly content: number;
  readonly blocks: readonly { readonly about: Readonly<Record<string, string>>; readonly bytes: number }[];
}

const NAME_CHARS = 20;
const NEWLINE = 0x0a;

/**
 * Large results, each in a file of its own. A file belongs to the row of its call and is removed by the database's thread
 * after that row has gone; one that no row ever had is removed at the next start.
 */
export class ResultFiles {
  readonly #directory: string;
  #made: Promise<unknown> | undefined;

  constructor(databasePath: string) {
    this.#directory = resultDirectory(databasePath);
  }

  /** Writes a file and brings it to the disk. Returns its name and its size. */
  async write(large: LargeContent): Promise<{ readonly name: string; readonly bytes: number }> {
    this.#made ??= mkdir(this.#directory, { recursive: true, mode: 0o700 });
    await this.#made;
    const name = randomToken(NAME_CHARS);
    const texts = [large.content, ...large.blocks.map(({ text }) => text)].map((text) => Buffer.from(text));
    const head: Head = {
      content: texts[0]?.length ?? 0,
      blocks: large.blocks.map(({ about }, index) => ({ about, bytes: texts[index + 1]?.length ?? 0 })),
    };
    const parts = [Buffer.from(`${JSON.stringify(head)}\n`), ...texts];
    await using file = await open(join(this.#directory, name), "wx", 0o600);
    await file.writev(parts);
    await file.datasync();
    return { name, bytes: parts.reduce((sum, { length }) => sum + length, 0) };
  }

  /** What the file holds; undefined if it is gone or not whole. */
  async read(name: string): Promise<LargeContent | undefined> {
    const whole = await readFile(join(this.#directory, name)).catch(() => undefined);
    const end = whole?.indexOf(NEWLINE) ?? -1;
    if (whole === undefined || end < 0) return undefined;
    const head = JSON.parse(whole.toString("utf8", 0, end)) as Head;
    let at = end + 1;
    const take = (bytes: number): string => {
      at += bytes;
      return whole.toString("utf8", at - bytes, at);
    };
    const content = take(head.content);
    const blocks = head.blocks.map(({ about, bytes }) => ({ about, text: take(bytes) }));
    return at === whole.length ? { content, blocks } : undefined;
  }
}
