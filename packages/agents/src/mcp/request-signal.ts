/**
 * A signal that ends with the other one, as an abort. The protocol hands over the client's own words as the reason, which
 * are no error, and could not be told from a failure.
 */
export function requestSignal(signal: AbortSignal): AbortSignal {
  const controller = new AbortController();
  const abort = (): void => {
    controller.abort(new DOMException("the client cancelled the request", "AbortError"));
  };
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  return controller.signal;
}
