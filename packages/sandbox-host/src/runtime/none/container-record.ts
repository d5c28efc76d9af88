import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** All that a container without isolation is: the path of its files, and whether it is paused. */
export interface ContainerRecord {
  readonly rootPath: string;
  readonly status: "running" | "paused";
  /** Processes do not outlive the machine, so neither does what they were started under. */
  readonly bootId: string;
}

export interface ContainerRecords {
  read(id: string): Promise<ContainerRecord | undefined>;
  write(id: string, record: ContainerRecord): Promise<void>;
  remove(id: string): Promise<void>;
  list(): Promise<readonly string[]>;
}

const SUFFIX = ".json";

export function createContainerRecords(directory: string): ContainerRecords {
  const pathOf = (id: string): string => join(directory, `${id}${SUFFIX}`);
  return {
    read: async (id) => {
      const text = await readFile(pathOf(id), "utf8").catch(() => undefined);
      return text === undefined ? undefined : (JSON.parse(text) as ContainerRecord);
    },
    write: async (id, record) => {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      await writeFile(`${pathOf(id)}.new`, JSON.stringify(record), { mode: 0o600 });
      await rename(`${pathOf(id)}.new`, pathOf(id));
    },
    remove: async (id) => {
      await rm(pathOf(id), { force: true });
    },
    list: async () => {
      const names = await readdir(directory).catch(() => []);
      return names
        .filter((name) => name.endsWith(SUFFIX))
        .map((name) => name.slice(0, -SUFFIX.length))
        .toSorted();
    },
  };
}
