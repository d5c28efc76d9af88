import { once } from "node:events";
import { createReadStream } from "node:fs";
import { Parser, type ReadEntry } from "tar";
import { type ArchiveLimits, type ArchiveCounter, countEntry } from "./archive.ts";
import { invalidImage } from "./oci-document.ts";

/**
 * Reads every header of a layer (a tar archive, plain or gzip) and refuses what the import of an archive refuses; the
 * counter runs over all layers of an image. Sparse files are refused too: the unpacking program fills their holes, so that
 * a small layer could fill the disk.
 */
export async function inspectLayer(
  file: string,
  counter: ArchiveCounter,
  { signal, ...limits }: ArchiveLimits & { readonly signal: AbortSignal },
): Promise<void> {
  const stop = new AbortController();
  const refuse = (why: string | null): void => {
    if (why !== null) stop.abort(invalidImage(why));
  };
  const onReadEntry = (entry: ReadEntry): void => {
    entry.resume();
    refuse(countEntry(entry, counter, limits));
  };
  const parser = new Parser({ strict: true, onReadEntry });
  parser.on("meta", (text: unknown) => {
    if (String(text).includes("GNU.sparse.")) refuse("it has a sparse file");
  });
  const fail = (cause: Error): void => {
    stop.abort(invalidImage(cause.message, cause));
  };
  const either = AbortSignal.any([signal, stop.signal]);
  const ended = once(parser, "end", { signal: either });
  const source = createReadStream(file, { signal: either });
  source.on("error", fail);
  parser.on("error", fail);
  source.pipe(parser);
  try {
    await ended;
  } catch (thrown) {
    signal.throwIfAborted();
    throw stop.signal.aborted ? stop.signal.reason : thrown;
  } finally {
    source.destroy();
  }
}
