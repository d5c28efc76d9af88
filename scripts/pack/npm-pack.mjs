import path from "node:path";
import { requireCommand } from "../bootstrap/command.mjs";

/** Has npm make the tarball of a package that lies in a folder; answers with the tarball's path. */
export async function npmPack(folder, into) {
  const destination = path.resolve(into);
  const argv = ["npm", "pack", "--ignore-scripts", "--json", "--pack-destination", destination];
  const { stdout } = await requireCommand(argv, { cwd: folder, env: process.env, timeoutMs: 120_000 });
  const [{ filename }] = Object.values(JSON.parse(stdout));
  return path.join(destination, filename);
}
