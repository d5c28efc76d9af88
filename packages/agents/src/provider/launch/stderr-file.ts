import { type CallOptions, hasReason, SandboxError, type SandboxFiles } from "@turnbox/client";
import { STDERR_TAIL_BYTES } from "./launcher.ts";
import { createOutputTail } from "./output-tail.ts";

/** The file in a sandbox that a program's standard error goes to. */
export interface StderrFile {
  readonly path: string;
  /** The last of it. */
  tail(options?: CallOptions): Promise<string>;
  /** Keeps the last of it here and removes the file. Never throws: a sandbox that is gone has taken it along. */
  settle(): Promise<void>;
}

export function createStderrFile(files: Pick<SandboxFiles, "stat" | "read" | "remove">, path: string): StderrFile {
  let last: Promise<string> | undefined;

  const read = async (options?: CallOptions): Promise<string> => {
    try {
      const { sizeBytes } = await files.stat(path, options);
      // One byte more than is shown says whether the beginning is cut.
      const offset = Math.max(0, sizeBytes - STDERR_TAIL_BYTES - 1);
      const tail = createOutputTail(STDERR_TAIL_BYTES);
      tail.add(await files.read(path, { ...options, offset, limitBytes: STDERR_TAIL_BYTES + 1 }));
      return tail.text();
    } catch (thrown) {
      if (hasReason(thrown, "FILE_NOT_FOUND")) return "";
      throw SandboxError.from(thrown);
    }
  };

  return {
    path,
    tail: async (options) => {
      const seen = last ?? read(options);
      const text = await seen.catch((thrown: unknown) => {
        if (last === undefined) throw thrown;
      });
      // What was kept meanwhile may be all there is: the file goes right after it.
      return await (last ?? text ?? "");
    },
    settle: async () => {
      last ??= read().catch(() => "");
      await last;
      await files.remove(path).catch(() => undefined);
    },
  };
}
