import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";

/** The file that a command is, or undefined where PATH has none that may be run. */
export async function findCommand(command: string, path: string): Promise<string | undefined> {
  for (const folder of path.split(delimiter)) {
    const file = join(folder, command);
    if (folder !== "" && (await isThere(file, constants.X_OK))) return file;
  }
  return undefined;
}

export async function isThere(path: string, mode = constants.F_OK): Promise<boolean> {
  return await access(path, mode).then(
    () => true,
    () => false,
  );
}
