import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ProcessIdentity } from "@turnbox/core";

/** An execution that a service looks after. */
export interface ExecRecord {
  readonly marker: string;
  /** `starting`: it was not seen to run yet. `ended`: it was gone before it could be identified. */
  readonly leader: ProcessIdentity | "starting" | "ended";
}

/** What is recorded here was not seen to its end by the service that started it. */
export interface ExecRecords {
  write(id: string, record: ExecRecord): Promise<void>;
  remove(id: string, marker: string): Promise<void>;
  list(id: string): Promise<readonly ExecRecord[]>;
  removeAll(id: string): Promise<void>;
}

const SUFFIX = ".json";

export function createExecRecords(directory: string): ExecRecords {
  const pathOf = (id: string, marker: string): string => join(directory, id, `${marker}${SUFFIX}`);
  const read = async (id: string, marker: string): Promise<readonly ExecRecord[]> => {
    const text = await readFile(pathOf(id, marker), "utf8").catch(() => undefined);
    return text === undefined ? [] : [JSON.parse(text) as ExecRecord];
  };
  return {
    write: async (id, record) => {
      const path = pathOf(id, record.marker);
      await mkdir(join(directory, id), { recursive: true, mode: 0o700 });
      await writeFile(`${path}.new`, JSON.stringify(record), { mode: 0o600 });
      await rename(`${path}.new`, path);
    },
    remove: async (id, marker) => {
      await rm(pathOf(id, marker), { force: true });
    },
    list: async (id) => {
      const names = await readdir(join(directory, id)).catch(() => []);
      const markers = names.filter((name) => name.endsWith(SUFFIX)).map((name) => name.slice(0, -SUFFIX.length));
      return (await Promise.all(markers.map((marker) => read(id, marker)))).flat();
    },
    removeAll: async (id) => {
      await rm(join(directory, id), { recursive: true, force: true });
    },
  };
}
