import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inMountTurn, MOUNT_LOCK_PATH } from "../../packages/sandbox-host/src/storage/zfs/mount-lock.ts";
import { command } from "../run/command.ts";
import { until } from "../run/sample.ts";
import { fillBareRoot } from "./bare-root.ts";

const BUSY_MS = 20_000;

/** A clone, mounted. */
export interface BareClone {
  readonly name: string;
  readonly path: string;
}

/** `zfs` as a person calls it, on a dataset of its own in the pool of the server that is measured. */
export class BareZfs implements AsyncDisposable {
  readonly #dataset: string;
  readonly #directory: string;
  #serial = 0;

  private constructor(dataset: string, directory: string) {
    this.#dataset = dataset;
    this.#directory = directory;
  }

  static async open(pool: string): Promise<BareZfs> {
    const directory = await mkdtemp(join(tmpdir(), "turnbox-bench-zfs-"));
    const zfs = new BareZfs(`${pool}/bench`, directory);
    await mkdir(zfs.path);
    await mounting(["create", "-o", `mountpoint=${zfs.path}`, zfs.#dataset]);
    await fillBareRoot(zfs.path);
    return zfs;
  }

  /** Where it is mounted; it holds a root that runsc can run. */
  get path(): string {
    return join(this.#directory, "files");
  }

  /** A small change, so that a snapshot has something to hold. */
  async change(): Promise<void> {
    this.#serial += 1;
    await writeFile(join(this.path, "workspace/change.txt"), `${String(this.#serial)}\n`);
  }

  newName(): string {
    this.#serial += 1;
    return `s${String(this.#serial)}`;
  }

  /** `zfs snapshot`. */
  async snapshot(name: string): Promise<void> {
    await command("zfs", ["snapshot", `${this.#dataset}@${name}`]);
  }

  /** `zfs clone`, which mounts. On zfs-fuse only one may mount at a time on the whole machine, this one too. */
  async clone(snapshot: string): Promise<BareClone> {
    this.#serial += 1;
    const name = `${this.#dataset}-clone${String(this.#serial)}`;
    const path = join(this.#directory, `clone${String(this.#serial)}`);
    await mounting(["clone", "-o", `mountpoint=${path}`, `${this.#dataset}@${snapshot}`, name]);
    return { name, path };
  }

  async destroyClone({ name, path }: BareClone): Promise<void> {
    await destroy([name]);
    await rm(path, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await destroy(["-R", this.#dataset]);
    await rm(this.#directory, { recursive: true, force: true });
  }
}

/** zfs-fuse finishes an unmount after it has answered, and calls the dataset busy until then. */
async function destroy(args: readonly string[]): Promise<void> {
  let refusal: unknown;
  const attempt = async (): Promise<boolean> => {
    try {
      await command("zfs", ["destroy", ...args]);
      return true;
    } catch (thrown) {
      refusal = thrown;
      return false;
    }
  };
  await until(`zfs destroy ${args.join(" ")}`, attempt, BUSY_MS).catch((cause: unknown) => {
    throw new Error(String(refusal), { cause });
  });
}

async function mounting(args: readonly string[]): Promise<void> {
  const [program, turnArgs] = inMountTurn({ program: "zfs", args }, MOUNT_LOCK_PATH);
  await command(program, turnArgs);
}
