import type { Readable } from "node:stream";
import { once } from "node:events";
import { type CommandRunner, SandboxError } from "@turnbox/core";
import { createCollector } from "@turnbox/client/internal";

const TRANSFER_MS = 24 * 3_600_000;
const MAX_COMPLAINT_BYTES = 4096;
const PIECE_BYTES = 256 * 1024;

interface Local {
  readonly runner: CommandRunner;
  /** A directory that exists. */
  readonly path: string;
  readonly signal: AbortSignal;
}

/** The content of a local directory as a tar archive, in pieces that fit into a message. */
export async function* packDirectory({ runner, path, signal }: Local): AsyncGenerator<Uint8Array> {
  const args = ["--format=pax", "-C", path, "-cf", "-", "."];
  const tar = await runner.start({ command: "tar", args, deadlineMs: TRANSFER_MS }, { signal });
  const complaint = listen(tar.stderr);
  try {
    tar.stdin.end();
    for await (const chunk of tar.stdout as AsyncIterable<Buffer>) yield* split(chunk);
    const exit = await tar.exit;
    if (exit.kind !== "exited" || exit.exitCode !== 0) throw failure("packed", path, complaint());
  } finally {
    tar.kill("SIGKILL");
  }
}

/**
 * Unpacks an archive below a local directory. The archive is foreign: owners, set-id bits and paths that lead out
 * are not taken over, which is tar's own rule for the last and the options' for the others.
 */
export async function unpackDirectory(
  archive: AsyncIterable<Uint8Array>,
  { runner, path, signal }: Local,
): Promise<void> {
  const args = ["--no-same-owner", "--no-same-permissions", "-C", path, "-xf", "-"];
  const tar = await runner.start({ command: "tar", args, deadlineMs: TRANSFER_MS }, { signal });
  const complaint = listen(tar.stderr);
  tar.stdout.resume();
  // A tar that ends early says so by its exit code.
  tar.stdin.on("error", () => undefined);
  try {
    for await (const piece of archive) {
      if (tar.stdin.destroyed) break;
      if (!tar.stdin.write(piece)) await Promise.race([once(tar.stdin, "drain").catch(() => undefined), tar.ended]);
    }
    tar.stdin.end();
    const exit = await tar.exit;
    signal.throwIfAborted();
    if (exit.kind !== "exited" || exit.exitCode !== 0) throw failure("unpacked", path, complaint());
  } finally {
    tar.kill("SIGKILL");
  }
}

function listen(stream: Readable): () => string {
  const collector = createCollector(MAX_COMPLAINT_BYTES);
  stream.on("data", (chunk: Buffer) => {
    collector.add(chunk);
  });
  return () => collector.text().trim();
}

function* split(chunk: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < chunk.length; at += PIECE_BYTES) yield chunk.subarray(at, at + PIECE_BYTES);
}

const failure = (what: string, path: string, complaint: string): SandboxError =>
  new SandboxError("INTERNAL", `${path} was not ${what} whole: ${complaint === "" ? "tar was ended" : complaint}`, {
    metadata: { path },
  });
