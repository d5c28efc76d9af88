/** A signal that ends with others, and by itself. Its owner disposes of it when the work is over. */
export interface LinkedSignal extends Disposable {
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
}

/** Who ends with a signal. One listener serves them all, so that many on one signal cost no more each. */
const followers = new WeakMap<AbortSignal, Set<AbortController>>();

/**
 * A signal that ends with the first of some others, for its reason, until it is disposed of. For what is done with every
 * call: `AbortSignal.any` needs no owner, and costs many times as much.
 */
export function linkSignals(signals: readonly AbortSignal[]): LinkedSignal {
  const controller = new AbortController();
  const ended = signals.find(({ aborted }) => aborted);
  if (ended !== undefined) controller.abort(ended.reason);
  const followed = ended === undefined ? signals.map(followersOf) : [];
  for (const all of followed) all.add(controller);
  return {
    signal: controller.signal,
    abort: (reason) => {
      controller.abort(reason);
    },
    [Symbol.dispose]: () => {
      for (const all of followed) all.delete(controller);
    },
  };
}

function followersOf(signal: AbortSignal): Set<AbortController> {
  const known = followers.get(signal);
  if (known !== undefined) return known;
  const all = new Set<AbortController>();
  followers.set(signal, all);
  signal.addEventListener(
    "abort",
    () => {
      for (const one of all) one.abort(signal.reason);
    },
    { once: true },
  );
  return all;
}
