import { readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";

const HIERARCHIES = "/sys/fs/cgroup";

/** A cgroup in every hierarchy of the machine, of either version. */
export class BareCgroup {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  pids(): readonly number[] {
    const lists = this.#directories().map((directory) =>
      tryTo(() => readFileSync(join(directory, "cgroup.procs"), "utf8")),
    );
    return [...new Set(lists.flatMap((text) => (text ?? "").split("\n").filter((line) => line !== "")))].map(Number);
  }

  /** Whether nothing of it is left: the kernel removes none that has members. */
  remove(): boolean {
    for (const directory of this.#directories()) tryTo(() => rmdirSync(directory));
    return this.#directories().every((directory) => tryTo(() => readdirSync(directory)) === undefined);
  }

  #directories(): readonly string[] {
    return ["", ...readdirSync(HIERARCHIES)].map((name) => join(HIERARCHIES, name, this.#path));
  }
}

function tryTo<Answer>(work: () => Answer): Answer | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
