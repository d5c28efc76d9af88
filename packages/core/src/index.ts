export { setAlarm } from "./async/alarm.ts";
export type { Call } from "./async/call.ts";
export { type Clock, systemClock } from "./async/clock.ts";
export { createDeadline, type Deadline, type DeadlineOptions } from "./async/deadline.ts";
export { KeyedMutex } from "./async/keyed-mutex.ts";
export { type LinkedSignal, linkSignals } from "./async/linked-signal.ts";
export { LruMap } from "./async/lru-map.ts";
export { mapConcurrent } from "./async/map-concurrent.ts";
export { Mutex } from "./async/mutex.ts";
export { poll, type PollOptions } from "./async/poll.ts";
export { raceSignal } from "./async/race-signal.ts";
export { raceTime, type RaceTimeOptions } from "./async/race-time.ts";
export { type Backoff, exponential, retry, type RetryOptions, type RetryPolicy, steps } from "./async/retry.ts";
export { runEvery, type RunEveryOptions } from "./async/run-every.ts";
export { type Permit, Semaphore } from "./async/semaphore.ts";
export { createChildCommandRunner } from "./command/child-command-runner.ts";
export type {
  CommandExit,
  CommandResult,
  CommandRunner,
  CommandSpec,
  RunningCommand,
  RunSpec,
} from "./command/command-runner.ts";
export { errnoOf, isNeverSent } from "./error/connection-errno.ts";
export { type Admitted, ERROR_TABLE, isReason, type Reason, type ReasonRow, type Retry } from "./error/reason.ts";
export {
  hasReason,
  invalidArgument,
  namingAborts,
  SandboxError,
  type SandboxErrorOptions,
} from "./error/sandbox-error.ts";
export { newSessionId, parseSessionId, type SessionId } from "./id/session-id.ts";
export { randomToken } from "./id/token.ts";
export {
  type ConfigEntry,
  type ConfigOf,
  type ConfigSources,
  type ConfigTable,
  describeConfig,
  parseConfig,
} from "./config/config.ts";
export { explainDuration, parseBytes, parseDurationMs } from "./config/quantity.ts";
export * as setting from "./config/setting.ts";
export type { RawValue, Setting, SettingSpec } from "./config/setting.ts";
export { createOnce, type NewFile, writeDraft } from "./file/create-once.ts";
export { hasErrno } from "./file/errno.ts";
export { readIfThere } from "./file/read-if-there.ts";
export { createLog, type Log, type LogOptions } from "./log/log.ts";
export { type Around, aroundMethods, type AsyncMethodOf } from "./object/around-methods.ts";
export { replaceMembers } from "./object/replace-members.ts";
export { acquireHomeLock, type HomeLock } from "./process/home-lock.ts";
export { type HomeInfo, openHome } from "./process/home-version.ts";
export { type ParentWatchOptions, parentDeath } from "./process/parent-watch.ts";
export { identifyProcess, isLiving, type ProcessIdentity } from "./process/process-identity.ts";
export { Secret } from "./secret/secret.ts";
export { editDistance } from "./text/edit-distance.ts";
export { escapeText } from "./text/escape-text.ts";
export { GlobError, type GlobPattern, parseGlob } from "./text/glob-pattern.ts";
export { authorize, authorizeMethod, type MethodFacts, type RequestSubject } from "./token/authorize.ts";
export { parseBearer } from "./token/bearer.ts";
export { parseClaims, type TokenClaims } from "./token/claims.ts";
export {
  type KeyFileOptions,
  loadOrCreateHomeToken,
  loadOrCreateSigningKeys,
  loadPublicKeys,
  type SigningKeys,
} from "./token/key-files.ts";
export {
  ACCESS_VERBS,
  type AccessVerb,
  ANY_TENANT,
  coversTenant,
  DEFAULT_TENANT,
  holdsVerb,
  type Principal,
} from "./token/principal.ts";
export {
  createTokenSigner,
  MAX_TOKEN_LIFETIME_MS,
  type SignedToken,
  type TokenGrant,
  type TokenSigner,
  type TokenSignerOptions,
} from "./token/token-signer.ts";
export {
  type CheckRation,
  createTokenVerifier,
  type TokenVerifier,
  type TokenVerifierOptions,
} from "./token/token-verifier.ts";
export {
  environmentBytes,
  parseEnum,
  parseKey,
  parseLabels,
  parseResources,
  parseSize,
  parseVariables,
  type Resources,
} from "./request/rules.ts";
