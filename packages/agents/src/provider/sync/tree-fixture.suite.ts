import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Header, type HeaderData } from "tar";

/** A workspace with a neighbour that nothing may reach. */
export interface TreeFixture extends Disposable {
  readonly root: string;
  readonly outside: string;
}

export function createTreeFixture(): TreeFixture {
  const base = mkdtempSync(join(tmpdir(), "turnbox-sync-"));
  const root = join(base, "workspace");
  const outside = join(base, "outside");
  mkdirSync(root);
  mkdirSync(outside);
  writeFileSync(join(outside, "canary"), "secret");
  return {
    root,
    outside,
    [Symbol.dispose]: () => {
      rmSync(base, { recursive: true });
    },
  };
}

export type CraftedEntry = HeaderData & { readonly text?: string };

/** An archive such as no tar writes. */
export function craft(...entries: readonly CraftedEntry[]): Buffer {
  const blocks = entries.flatMap(({ text = "", ...data }) => {
    const block = Buffer.alloc(512);
    new Header({ mode: 0o644, uid: 0, gid: 0, mtime: new Date(0), size: text.length, type: "File", ...data }).encode(
      block,
    );
    return [block, Buffer.from(text), Buffer.alloc((512 - (text.length % 512)) % 512)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

/** In pieces that end anywhere. */
export async function* pieces(archive: Buffer, size = 700): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < archive.length; at += size) yield archive.subarray(at, at + size);
}

export async function collect(archive: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = [];
  for await (const piece of archive) all.push(piece);
  return Buffer.concat(all);
}
