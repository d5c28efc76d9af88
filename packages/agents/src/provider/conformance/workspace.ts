import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { hasErrno } from "@turnbox/client/internal";

/** A directory of files for a session, removed when disposed. */
export interface Workspace extends AsyncDisposable {
  readonly root: string;
  write(path: string, content: string): Promise<void>;
  /** Undefined if there is none. */
  read(path: string): Promise<string | undefined>;
}

export async function createWorkspace(): Promise<Workspace> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "turnbox-conformance-")));
  return {
    root,
    write: async (path, content) => {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), content);
    },
    read: async (path) => {
      try {
        return await readFile(join(root, path), "utf8");
      } catch (thrown) {
        if (hasErrno(thrown, "ENOENT")) return undefined;
        throw thrown;
      }
    },
    [Symbol.asyncDispose]: async () => {
      await rm(root, { recursive: true, force: true });
    },
  };
}
