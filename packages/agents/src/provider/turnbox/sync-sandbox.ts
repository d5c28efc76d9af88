import { isAbsolute } from "node:path";
import { invalidArgument } from "@turnbox/client/internal";
import type { Sandbox } from "@turnbox/client";
import type { SessionState, SyncOptions, SyncResult } from "../provider.ts";
import { createExcludes } from "../sync/excludes.ts";
import { packTree } from "../sync/pack-tree.ts";
import { watchSource } from "../sync/sync-failure.ts";
import { createSyncCounter, type SyncLimits } from "../sync/sync-counter.ts";
import { unpackTree } from "../sync/unpack-tree.ts";
import { parseTurnboxState } from "./turnbox-state.ts";

export interface SandboxSync {
  readonly sandbox: Sandbox;
  readonly state: SessionState;
  readonly options: SyncOptions;
  readonly limits: SyncLimits;
}

/** Sends the workspace and the further directories in. Files that are not here any more stay where they are inside. */
export async function syncIn({ sandbox, state, options, limits }: SandboxSync): Promise<SyncResult> {
  const { signal } = options;
  const excludes = createExcludes("to_runtime", options.excludePatterns);
  const counter = createSyncCounter(limits);
  for (const { local, runtime } of directoriesOf(state)) {
    const source = watchSource(packTree({ root: local, excludes, counter, signal }));
    await source.during(() => sandbox.files.upload(runtime, source.bytes, signal === undefined ? {} : { signal }));
  }
  return counter.result();
}

/** Brings the runtime's files out. What was removed inside stays here. */
export async function syncOut({ sandbox, state, options, limits }: SandboxSync): Promise<SyncResult> {
  const call = options.signal === undefined ? {} : { signal: options.signal };
  const excludes = createExcludes("from_runtime", options.excludePatterns);
  const counter = createSyncCounter(limits);
  for (const { local, runtime } of directoriesOf(state)) {
    const source = watchSource(sandbox.files.download(runtime, { excludes: excludes.patterns, ...call }));
    await source.during(() => unpackTree(source.bytes, { root: local, excludes, counter, ...call }));
  }
  return counter.result();
}

interface Pair {
  readonly local: string;
  readonly runtime: string;
}

function directoriesOf(state: SessionState): readonly Pair[] {
  const { localRootDir, localAdditionalDirs } = parseTurnboxState(state);
  const further = state.runtimeAdditionalDirs.map((runtime, at) => ({ local: localAdditionalDirs[at] ?? "", runtime }));
  const pairs = [{ local: localRootDir, runtime: state.runtimeRootDir }, ...further];
  for (const { local } of pairs) {
    if (!isAbsolute(local)) throw invalidArgument("localRootDir", "must be absolute, as each of localAdditionalDirs");
  }
  return pairs;
}
