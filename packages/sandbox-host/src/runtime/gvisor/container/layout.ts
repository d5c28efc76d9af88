import { join } from "node:path";

/** The paths of a gVisor runtime's own files, all below one directory that no session can see. */
export interface Layout {
  /** runsc's `--root`: its state files, locks and control sockets. */
  readonly runscRoot: string;
  /** One directory per container: its bundle, the log of its boot, the process files of executions. */
  readonly containersDirectory: string;
  /** Bind-mounted read-only into every container. */
  readonly initDirectory: string;
  /** One directory per sandbox that was booted before there was a container for it: its bundle, the log of its boot. */
  readonly sparesDirectory: string;
  /** The files of such a sandbox itself, in an image. */
  readonly spareImagePath: string;
  /** What `open` has proven, and on what machine. */
  readonly proofPath: string;
}

export function createLayout(stateDirectory: string): Layout {
  return {
    runscRoot: join(stateDirectory, "runsc"),
    containersDirectory: join(stateDirectory, "containers"),
    initDirectory: join(stateDirectory, "init"),
    sparesDirectory: join(stateDirectory, "spares"),
    spareImagePath: join(stateDirectory, "spare.erofs"),
    proofPath: join(stateDirectory, "proof.json"),
  };
}

export interface ContainerLayout {
  readonly bundleDirectory: string;
  readonly specPath: string;
  readonly bootLogPath: string;
  readonly execDirectory: string;
  /** Empty directories; in the mount namespace of the boot they show the session's root and its `/tmp`. */
  readonly rootTarget: string;
  readonly tmpTarget: string;
}

export function containerLayout(layout: Layout, id: string): ContainerLayout {
  const bundleDirectory = join(layout.containersDirectory, id);
  return {
    bundleDirectory,
    specPath: join(bundleDirectory, "config.json"),
    bootLogPath: join(bundleDirectory, "boot.log"),
    execDirectory: join(bundleDirectory, "exec"),
    rootTarget: join(bundleDirectory, "root"),
    tmpTarget: join(bundleDirectory, "tmp"),
  };
}

/** Holds the name of the sandbox that a container is in, if that is not its own. */
export function sandboxNote(layout: Layout, id: string): string {
  return join(containerLayout(layout, id).bundleDirectory, "sandbox");
}

/** Says that host-side commands of spawned processes may have to be ended with the container. */
export function spawnMark(layout: Layout, id: string): string {
  return join(containerLayout(layout, id).bundleDirectory, "spawned");
}

/** The resolver of a container that has a network, outside of the session's own files. */
export function resolvConfPath(layout: Layout, id: string): string {
  return join(containerLayout(layout, id).bundleDirectory, "resolv.conf");
}
