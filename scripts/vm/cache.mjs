import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";

/** Everything that the virtual machine is made of; safe to delete. */
export const cacheFolder = (env) => path.resolve(env.TURNBOX_VM_CACHE ?? path.join(os.homedir(), ".cache/turnbox-vm"));

/**
 * A step that makes one file or folder of the cache, unless it is there. `make` works on a draft, which gets its name when
 * it is whole: a run that is cut off begins again at the step that it was cut off in.
 */
export function cachedStep({ name, target, remedy, make }) {
  const draft = `${target}.draft`;
  return {
    name,
    remedy,
    stamp: {
      isFresh: () => existsSync(target),
      clear: () => rmSync(draft, { recursive: true, force: true }),
      write: () => renameSync(draft, target),
    },
    work: () => {
      mkdirSync(path.dirname(target), { recursive: true });
      return make(draft);
    },
  };
}
