/** What every call takes. */
export interface CallOptions {
  /** Ends the waiting. What the call does about its effect then is said at the call. */
  readonly signal?: AbortSignal;
  /** How long to wait for the answer; without it the default of the call, `DEFAULT_TIMEOUT_MS` for most. */
  readonly timeoutMs?: number;
}

/** What a call with an effect takes. Attempts under the same key are one call, also those of another process. */
export interface KeyedOptions extends CallOptions {
  /** Made by the client unless given. */
  readonly idempotencyKey?: string;
}
