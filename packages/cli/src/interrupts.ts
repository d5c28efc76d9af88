/** The signals that ask this program to end. */
export const INTERRUPT_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
export type InterruptSignal = (typeof INTERRUPT_SIGNALS)[number];

/**
 * What happens when the program is asked to end. By default the first signal aborts `signal`, so that the verb can
 * clean up, and a second one ends the program at once.
 */
export interface Interrupts extends Disposable {
  readonly signal: AbortSignal;
  /** Hands every signal to `listener` instead, until disposed: for a verb that runs a child in the foreground. */
  redirect(listener: (name: InterruptSignal) => void): Disposable;
}

export interface SignalSource {
  on(name: InterruptSignal, listener: () => void): unknown;
  off(name: InterruptSignal, listener: () => void): unknown;
}

/** Listens on `source` until disposed. `exit` ends the program. */
export function createInterrupts(source: SignalSource, exit: (exitCode: number) => void): Interrupts {
  const controller = new AbortController();
  let redirected: ((name: InterruptSignal) => void) | undefined;
  const receive = (name: InterruptSignal): void => {
    if (redirected !== undefined) redirected(name);
    else if (controller.signal.aborted) exit(130);
    else controller.abort(new DOMException(`interrupted by ${name}`, "AbortError"));
  };
  const listeners = INTERRUPT_SIGNALS.map((name) => ({
    name,
    listener: () => {
      receive(name);
    },
  }));
  for (const { name, listener } of listeners) source.on(name, listener);
  return {
    signal: controller.signal,
    redirect: (listener) => {
      redirected = listener;
      return {
        [Symbol.dispose]: () => {
          redirected = undefined;
        },
      };
    },
    [Symbol.dispose]: () => {
      for (const { name, listener } of listeners) source.off(name, listener);
    },
  };
}
