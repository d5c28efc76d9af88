import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Header, type HeaderData } from "tar";
import { FileFailure } from "../failure.ts";
import { createWalk } from "../walk.ts";
import { packArchive } from "./pack-archive.ts";
import { unpackArchive, type UnpackOutput } from "./unpack-archive.ts";

export const LIMITS = { maxBytes: 1024 ** 3, maxEntries: 1000 };

/** The root of a session, and beside it a directory that no archive may reach. */
export class ArchiveFixture implements Disposable {
  readonly base = mkdtempSync(join(tmpdir(), "turnbox-tar-"));
  readonly root = join(this.base, "root");

  constructor() {
    mkdirSync(join(this.root, "workspace"), { recursive: true });
    mkdirSync(join(this.base, "outside"));
    writeFileSync(join(this.base, "outside/canary"), "secret");
  }

  outside(): readonly string[] {
    return readdirSync(join(this.base, "outside"));
  }

  unpack(archive: Buffer, path = "to"): UnpackOutput {
    using walk = createWalk(this.root);
    function* pieces(): Generator<Buffer> {
      // Pieces that end anywhere.
      for (let start = 0; start < archive.length; start += 1000) yield archive.subarray(start, start + 1000);
    }
    return unpackArchive({ walk, send: () => undefined, body: pieces }, { path, ...LIMITS });
  }

  pack(path: string, excludes: readonly string[] = []): Buffer {
    using walk = createWalk(this.root);
    const pieces: Buffer[] = [];
    packArchive({ walk, send: (bytes) => void pieces.push(Buffer.from(bytes)), body: () => [] }, { path, excludes });
    return Buffer.concat(pieces);
  }

  [Symbol.dispose](): void {
    rmSync(this.base, { recursive: true });
  }
}

/** An archive that no tar program would write. */
export function craft(...entries: readonly (HeaderData & { readonly text?: string })[]): Buffer {
  const blocks = entries.flatMap(({ text = "", ...data }) => {
    const block = Buffer.alloc(512);
    new Header({ mode: 0o644, uid: 0, gid: 0, mtime: new Date(0), size: text.length, ...data }).encode(block);
    return [block, Buffer.concat([Buffer.from(text), Buffer.alloc((512 - (text.length % 512)) % 512)])];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

export function refusalOf(work: () => unknown): string {
  try {
    work();
    return "none";
  } catch (thrown) {
    return thrown instanceof FileFailure ? `${thrown.reason} ${thrown.message}` : String(thrown);
  }
}
