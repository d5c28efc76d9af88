import { connect } from "node:net";

/** The sentry has answered that it does not do what was asked for; its own words. */
export class SentryRefusal extends Error {}

/** The sentry cannot be reached, or went away before it answered. */
export class SentryGone extends Error {}

/** A question to the sentry, by its internal protocol: one JSON value each way, and one question at a time on a line. */
export interface SentryCall {
  readonly socketPath: string;
  readonly method: "WaitPID" | "Signal" | "Processes";
  readonly arg: unknown;
}

/** Asks on a line of its own, which closes with the answer or the signal. */
export async function callSentry({ socketPath, method, arg }: SentryCall, signal: AbortSignal): Promise<unknown> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const line = connect(socketPath);
  const onAbort = (): void => {
    reject(signal.reason as Error);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  let text = "";
  line.setEncoding("utf8");
  line.on("data", (chunk: string) => {
    text += chunk;
    const answer = readAnswer(text);
    if (answer?.kind === "result") resolve(answer.result);
    if (answer?.kind === "refusal") reject(new SentryRefusal(answer.why));
  });
  line.once("error", (cause) => {
    reject(new SentryGone("the sentry cannot be reached", { cause }));
  });
  line.once("close", () => {
    reject(new SentryGone("the sentry went away"));
  });
  line.write(JSON.stringify({ method: `containerManager.${method}`, arg }));
  try {
    return await promise;
  } finally {
    signal.removeEventListener("abort", onAbort);
    line.destroy();
  }
}

export type SentryAnswer =
  | { readonly kind: "result"; readonly result: unknown }
  | { readonly kind: "refusal"; readonly why: string };

/** What the sentry has said; undefined where it has not said all of it yet. */
export function readAnswer(text: string): SentryAnswer | undefined {
  try {
    const { success, err, result } = JSON.parse(text) as { success?: unknown; err?: unknown; result?: unknown };
    return success === true ? { kind: "result", result } : { kind: "refusal", why: String(err) };
  } catch {
    return undefined;
  }
}
