/**
 * What the packages of this repository share with the client. It may change with every version: what builds on the client from
 * outside uses what `index.ts` exports.
 */
export {
  type CommandExit,
  type CommandRunner,
  createChildCommandRunner,
  createDeadline,
  errnoOf,
  GlobError,
  hasErrno,
  invalidArgument,
  parseBearer,
  parseDurationMs,
  parseGlob,
  parseSessionId,
  parseVariables,
  raceSignal,
  randomToken,
  readIfThere,
  systemClock,
  writeDraft,
} from "@turnbox/core";
export { Code } from "@connectrpc/connect";
export {
  type Charset,
  DEFAULT_PORT,
  type Environment,
  isLoopback,
  parseEnvironment,
  parsePort,
  resolveServer,
  resolveUrl,
  type ServerFlags,
} from "../config.ts";
export { createHttp2ConnectionWith } from "../connection.ts";
export {
  findHosts,
  HOME_MARK,
  listHostHomes,
  readLockHolder,
  readServerRecord,
  readTokenFile,
  SERVER_LOCK,
  serverLockPath,
  tokenPath,
} from "../home.ts";
export { nearestWords } from "../nearest-words.ts";
export { ambiguous, isFullId, matchSandbox, sessionPart } from "../sandbox/sandbox-reference.ts";
export { createCollector } from "../sandbox/stream/collector.ts";
export { newestUndo } from "../sandbox/turn/newest-undo.ts";
export { createBell } from "../turnbox/bell.ts";
