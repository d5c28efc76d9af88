import { randomUUID } from "node:crypto";
import { basename, dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { archiveOf } from "./archive-of.ts";
import { createCanary } from "./canary.ts";
import { fileClient, uploadOf } from "./file-client.ts";
import type { Json, TestHost } from "./host.ts";
import { bash, completeTurn, createSession, destroy, fork, rollBack } from "./host-calls.ts";
import { sandboxPids } from "./sentry.ts";

/** What makes the host touch a session's root. */
export const OCCASIONS = ["boot", "rollback", "restore", "fork", "repair", "warm", "thaw", "network"] as const;
export type Occasion = (typeof OCCASIONS)[number];

/** How the link gets into its place. `bash` and `process` swap all the time, from inside; the others once, after a delay. */
export const WAYS = ["move", "archive", "bash", "process"] as const;
export type Way = (typeof WAYS)[number];

/** What is replaced by a link. */
export const PATHS = [
  ...["/tmp", "/run", "/run/turnbox", "/etc", "/etc/resolv.conf", "/proc", "/dev", "/workspace"],
] as const;
export type SwappedPath = (typeof PATHS)[number];

/** `near` leads up to the directory that holds the home, `far` up to the machine's root and down again. */
export const LINKS = ["near", "far"] as const;
export type LinkKind = (typeof LINKS)[number];

export interface Trial {
  readonly occasion: Occasion;
  readonly way: Way;
  readonly path: SwappedPath;
  readonly link: LinkKind;
  /** What the delay is counted from: all that the occasion does, or the command after it, which boots the sandbox. */
  readonly from: "occasion" | "command";
  readonly delayMs: number;
}

export interface Outcome {
  /** A directory of the machine was read or changed. */
  readonly escaped: boolean;
  /** The link was put into its place. */
  readonly swapped: boolean;
  /** The sandbox ran a command afterwards. */
  readonly booted: boolean;
}

/** Directories between the one that holds the home and the root of a session's files: home/hosts/local-1/mnt/TOKEN/g1. */
const LEVELS = 6;
const NETWORK: Json = { allowOutbound: true, allowList: ["192.31.196.73/32"] };
const OTHER_NETWORK: Json = { allowOutbound: true, allowList: ["192.31.196.74/32"] };
const LOOK = `for p in ${PATHS.join(" ")}; do cat "$p/secret" "$p/inner/secret"; echo x > "$p/pwned"; done 2>/dev/null; echo looked`;

/** Directories of the machine that a session tries to get at, one of them beside the home. */
export class Outside implements Disposable {
  readonly #near: string;
  readonly #far: string;
  #canaries: ReturnType<typeof createCanary>[];

  constructor(host: TestHost) {
    const name = `outside-${randomUUID().slice(0, 8)}`;
    this.#near = join(dirname(host.home), name);
    this.#far = join("/var/tmp", name);
    this.#canaries = this.#make();
  }

  /** What a link at `path` inside must say to lead to the directory on this machine. */
  target(kind: LinkKind, path: string): string {
    const depth = path.split("/").length - 2;
    if (kind === "near") return `${"../".repeat(LEVELS + depth)}${basename(this.#near)}`;
    return `${"../".repeat(24)}${this.#far.slice(1)}`;
  }

  /** Where the same link leads inside: mounts are resolved there, so it has to exist. */
  insidePath(kind: LinkKind): string {
    return kind === "near" ? basename(this.#near) : this.#far.slice(1);
  }

  /** Whether something read or changed them since the last call. */
  wasReached(output: string): boolean {
    const isReached = this.#canaries.some((canary) => !canary.isUntouched() || output.includes(canary.secret));
    if (isReached) {
      this[Symbol.dispose]();
      this.#canaries = this.#make();
    }
    return isReached;
  }

  [Symbol.dispose](): void {
    for (const canary of this.#canaries) canary[Symbol.dispose]();
  }

  #make(): ReturnType<typeof createCanary>[] {
    return [createCanary(this.#near), createCanary(this.#far)];
  }
}

/** How long a session of this host takes from its first command to the answer, in the middle of three. */
export async function measureBoot(host: TestHost): Promise<number> {
  const times: number[] = [];
  for (let boot = 0; boot < 3; boot += 1) {
    const sessionId = `boot-${randomUUID()}`;
    await createSession(host, sessionId);
    const begunMs = performance.now();
    await bash(host, sessionId, "true");
    times.push(performance.now() - begunMs);
    await destroy(host, sessionId);
  }
  return times.toSorted((a, b) => a - b)[1] ?? 0;
}

/** Does one trial with a session of its own, which it destroys. */
export async function runTrial(host: TestHost, outside: Outside, trial: Trial): Promise<Outcome> {
  const sessionId = `race-${randomUUID()}`;
  const childId = `${sessionId}-child`;
  const hasChild = trial.occasion === "fork" || trial.occasion === "restore";
  const target = hasChild ? childId : sessionId;
  try {
    const { occasion, look } = await prepare(host, outside, { trial, sessionId, childId });
    // Nothing can be swapped in a session that is only being made.
    const isMaking = hasChild || trial.occasion === "warm";
    if (isMaking || trial.from === "command") await occasion();
    let output = "";
    const triggered = (isMaking || trial.from === "command" ? look() : occasion().then(look)).then(
      (said) => (output = said),
      () => undefined,
    );
    await wait(trial.delayMs);
    const swapped = await swap(host, outside, target, trial);
    await triggered;
    return { escaped: outside.wasReached(output), swapped, booted: output.includes("looked") };
  } finally {
    for (const id of hasChild ? [childId, sessionId] : [sessionId]) await destroy(host, id);
  }
}

interface Scene {
  readonly trial: Trial;
  readonly sessionId: string;
  readonly childId: string;
}

interface Prepared {
  /** What the trial is about. */
  readonly occasion: () => Promise<void>;
  /** Runs a command that looks and writes through all the paths. */
  readonly look: () => Promise<string>;
}

/** Makes the session with all that is needed for the swap in it. */
async function prepare(host: TestHost, outside: Outside, { trial, sessionId, childId }: Scene): Promise<Prepared> {
  const { occasion } = trial;
  const isInside = trial.way === "bash" || trial.way === "process";
  const make = async (): Promise<void> => {
    // A network has the resolver's file prepared too, which takes longer. A sandbox gets its first one only while it is idle.
    const hasNetwork = occasion === "network" ? isInside : trial.path.startsWith("/etc");
    await createSession(host, sessionId, hasNetwork ? { networkPolicy: NETWORK } : {});
    await plant(host, outside, sessionId, trial);
  };
  const lookAt = (id: string) => async (): Promise<string> => (await bash(host, id, LOOK)).content;
  if (occasion === "warm") return { occasion: make, look: lookAt(sessionId) };
  await make();
  if (isInside || ["rollback", "repair", "thaw", "network"].includes(occasion)) await bash(host, sessionId, "true");
  const isSealed = occasion === "rollback" || occasion === "restore";
  const snapshotId = isSealed ? (await completeTurn(host, sessionId)).snapshotId : "";
  if (isInside) await swapInside(host, outside, sessionId, trial);
  const ofSession = { sessionId, snapshotId, childId };
  return {
    occasion: () => DOINGS[occasion](host, ofSession),
    look: lookAt(occasion === "fork" || occasion === "restore" ? childId : sessionId),
  };
}

type Doing = (
  host: TestHost,
  at: { readonly sessionId: string; readonly snapshotId: string; readonly childId: string },
) => Promise<void>;

const DOINGS: Readonly<Record<Exclude<Occasion, "warm">, Doing>> = {
  boot: () => Promise.resolve(),
  rollback: async (host, { sessionId, snapshotId }) => {
    await rollBack(host, sessionId, snapshotId);
  },
  restore: async (host, { sessionId, snapshotId, childId }) => {
    await host.call("SnapshotService/RestoreSnapshot", { sessionId, snapshotId, newSessionId: childId });
  },
  fork: async (host, { sessionId, childId }) => {
    await fork(host, sessionId, { childSessionIds: [childId], count: 1 });
  },
  repair: async (host, { sessionId }) => {
    process.kill(sandboxPids(host, sessionId).sentry, "SIGKILL");
    await host.call("SessionService/RepairSession", { sessionId }).catch(() => undefined);
  },
  thaw: async (host, { sessionId }) => {
    await host.call("SessionService/PauseSession", { sessionId });
    await host.call("SessionService/ResumeSession", { sessionId });
  },
  network: async (host, { sessionId }) => {
    await host.call("SessionService/UpdateNetworkPolicy", { sessionId, policy: OTHER_NETWORK });
  },
};

/** Puts the link `/evil` into the session's files, and the directory that it leads to inside. */
async function plant(host: TestHost, outside: Outside, sessionId: string, { link, path }: Trial): Promise<void> {
  const evil = { path: "evil", type: "SymbolicLink", linkpath: outside.target(link, path) } as const;
  const inside = { path: outside.insidePath(link), type: "Directory", mode: 0o755 } as const;
  await fileClient(host).uploadArchive(uploadOf({ sessionId, path: "/" }, archiveOf(inside, evil)));
}

/** Puts the link into its place; false where the host refuses that. */
async function swap(host: TestHost, outside: Outside, sessionId: string, { way, path, link }: Trial): Promise<boolean> {
  const move = (source: string, destination: string): Promise<Json> =>
    host.call("FileService/Move", { sessionId, source, destination });
  try {
    await move(path, `${path}0`);
    if (way === "archive") {
      const entry = { path: path.slice(1), type: "SymbolicLink", linkpath: outside.target(link, path) } as const;
      await fileClient(host).uploadArchive(uploadOf({ sessionId, path: "/" }, archiveOf(entry)));
    } else {
      await move("/evil", path);
    }
    return true;
  } catch {
    return false;
  }
}

/** Swaps the link and what it replaces all the time, by a process inside that nothing waits for. */
async function swapInside(
  host: TestHost,
  outside: Outside,
  sessionId: string,
  { way, path, link }: Trial,
): Promise<void> {
  const target = outside.target(link, path);
  const loop = `while :; do mv ${path} ${path}.0; ln -s ${target} ${path}; rm ${path}; mv ${path}.0 ${path}; done 2>/dev/null`;
  if (way === "bash") await bash(host, sessionId, `(${loop}) >/dev/null 2>&1 &`);
  else await host.call("ProcessService/LaunchProcess", { sessionId, binary: "/bin/sh", args: ["-c", loop] });
}
