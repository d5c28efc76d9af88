/** What an asynchronous operation takes beside its arguments. It ends soon after the signal aborts, with the signal's reason. */
export interface Call {
  readonly signal: AbortSignal;
}
