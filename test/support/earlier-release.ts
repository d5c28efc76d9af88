import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { brotliDecompressSync } from "node:zlib";
import { REPO } from "./process.ts";

const FOLDER = join(REPO, "test/upgrade-fixtures");
const ENDING = ".json.br";
/** What an earlier sandbox-host takes from this clone. */
const LINKED = "@lydell/node-pty";

/** The services of an earlier commit, unpacked. */
export interface EarlierRelease extends AsyncDisposable {
  readonly hostEntry: string;
  readonly orchestratorEntry: string;
}

/** The commits whose services are kept. */
export async function earlierReleases(): Promise<readonly string[]> {
  const names = await readdir(FOLDER);
  return names.filter((name) => name.endsWith(ENDING)).map((name) => name.slice(0, -ENDING.length));
}

export async function unpackRelease(commit: string): Promise<EarlierRelease> {
  const packed = brotliDecompressSync(await readFile(join(FOLDER, `${commit}${ENDING}`)));
  const files = JSON.parse(packed.toString()) as Readonly<Record<string, string>>;
  const directory = await mkdtemp(join(tmpdir(), `turnbox-${commit}-`));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(directory, dirname(name)), { recursive: true });
    await writeFile(join(directory, name), text);
  }
  const link = join(directory, "node_modules", LINKED);
  await mkdir(dirname(link), { recursive: true });
  await symlink(join(REPO, "packages/sandbox-host/node_modules", LINKED), link);
  return {
    hostEntry: join(directory, "sandbox-host/bin/turnbox-sandbox-host.mjs"),
    orchestratorEntry: join(directory, "orchestrator/bin/turnbox-orchestrator.mjs"),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}
