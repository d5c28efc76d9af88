import type { CommandRunner, Log } from "@turnbox/core";
import type { PartHook } from "./assembly.ts";
import type { BackendOptions, Backends } from "./compose-backends.ts";
import type { CrashPointHook } from "./session/crash-point.ts";
import type { MiniSources } from "./template/mini.ts";

/** What a host is made with. */
export interface HostOptions extends BackendOptions {
  readonly log: Log;
  /** Makes the backends with the host's command runner; those that the configuration names unless given. The host disposes of them. */
  readonly backends?: (runner: CommandRunner) => Backends | Promise<Backends>;
  /** The paths of the programs of template mini; Debian's unless given. */
  readonly miniSources?: MiniSources;
  /** Which boot of the machine this is; the kernel's word unless given. */
  readonly bootId?: string;
  /** Is called at the crash points of operations; does nothing unless given. */
  readonly crashPoint?: CrashPointHook;
  /** Is called as parts of the host are made and released; does nothing unless given. */
  readonly onPart?: PartHook;
}
