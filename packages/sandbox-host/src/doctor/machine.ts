import { readFile } from "node:fs/promises";
import type { SystemPart } from "./system-parts.ts";

/** The machine and the user of this process, as far as remedies depend on them. */
export interface Machine {
  readonly user: "root" | "other";
  /** The name of its Debian release; empty on other systems. */
  readonly codename: string;
}

export const ROOT_REMEDY =
  "start the server as root (for example with sudo -E), or set TURNBOX_STORAGE_BACKEND=local-disk and " +
  "TURNBOX_CONTAINER_RUNTIME=none, which has no snapshots and isolates nothing";

export async function readMachine(): Promise<Machine> {
  const text = await readFile("/etc/os-release", "utf8").catch(() => "");
  return { user: process.geteuid?.() === 0 ? "root" : "other", codename: codenameOf(text) };
}

/** The codename in an os-release file, if it is of a system with apt; empty otherwise. */
export function codenameOf(osRelease: string): string {
  const valueOf = (key: string): string => new RegExp(`^${key}=(["']?)(.*)\\1$`, "m").exec(osRelease)?.[2] ?? "";
  const family = [valueOf("ID"), ...valueOf("ID_LIKE").split(" ")];
  return family.includes("debian") ? valueOf("VERSION_CODENAME") : "";
}

/** The command that installs a part's package on this machine. */
export function packageRemedy(part: SystemPart, { user, codename }: Machine): string {
  if (codename === "") return `install the system's own package that brings ${part.commands.join(", ")}`;
  const backports = part.suite === "backports" ? ["-t", `${codename}-backports`] : [];
  const command = ["apt-get", "install", "--no-install-recommends", ...backports, part.package].join(" ");
  return user === "root" ? command : `sudo ${command}`;
}
