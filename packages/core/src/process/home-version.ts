import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { SandboxError } from "../error/sandbox-error.ts";
import { createOnce } from "../file/create-once.ts";
import { readIfThere } from "../file/read-if-there.ts";
import { randomToken } from "../id/token.ts";

/** What a home says about itself. */
export interface HomeInfo {
  readonly version: 1;
  /** Random, made once; names derived from it tell this home's resources from others'. */
  readonly id: string;
}

const FILE = "home.json";

/**
 * Opens a home, making it where there is nothing yet. Nobody but its owner may look into it: one that is open to others
 * is closed to them (mode 0700), also where it was there before. A home of another version is `HOME_VERSION_UNSUPPORTED`. A folder that holds other things is `CONFIG_INVALID`: it is never adopted.
 */
export function openHome(folder: string): HomeInfo {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = path.join(folder, FILE);
  if (readIfThere(file) === undefined) {
    if (readdirSync(folder).some((name) => !name.startsWith(`${FILE}.draft-`) && name !== FILE)) {
      throw new SandboxError(
        "CONFIG_INVALID",
        `${folder} is not empty and not a Turnbox home; choose another TURNBOX_HOME`,
      );
    }
    createOnce(file, { content: `${JSON.stringify({ version: 1, id: randomToken(16) })}\n`, mode: 0o600 });
  }
  const home = parseHome(folder, readFileSync(file, "utf8"));
  closeToOthers(folder);
  return home;
}

/** Only the owner and root can; a folder of somebody else stays as that one has made it. */
function closeToOthers(folder: string): void {
  const { mode, uid } = statSync(folder);
  const self = process.geteuid?.();
  if ((mode & 0o077) !== 0 && (self === 0 || self === uid)) chmodSync(folder, 0o700);
}

function parseHome(folder: string, text: string): HomeInfo {
  let json: Partial<Record<keyof HomeInfo, unknown>> | undefined;
  try {
    json = JSON.parse(text) as Partial<Record<keyof HomeInfo, unknown>>;
  } catch {
    json = undefined;
  }
  const { version, id } = json ?? {};
  if (version !== 1 || typeof id !== "string" || !/^[a-z][0-9a-z]{7,31}$/.test(id)) {
    const found = version === undefined ? "no version" : `version ${JSON.stringify(version)}`;
    throw new SandboxError(
      "HOME_VERSION_UNSUPPORTED",
      `${folder} has ${found}; this is Turnbox for homes of version 1`,
    );
  }
  return { version, id };
}
