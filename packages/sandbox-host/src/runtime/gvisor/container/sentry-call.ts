import { connect } from "node:net";
import { JsonText } from "../../../system/helper/json-text.ts";

/** The sentry refused the call, in its own words, or sent something that is no answer. */
export class SentryRefusal extends Error {}

/** The sentry cannot be reached, or went away before it answered. */
export class SentryGone extends Error {}

/** A question to the sentry, by its internal protocol: one JSON value each way, and one question at a time on a line. */
export interface SentryCall {
  readonly socketPath: string;
  readonly method: "WaitPID" | "Signal" | "Processes";
  readonly arg: unknown;
}

/** Asks on a connection of its own, which closes with the answer or the signal. */
export async function callSentry({ socketPath, method, arg }: SentryCall, signal: AbortSignal): Promise<unknown> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const line = connect(socketPath);
  const onAbort = (): void => {
    reject(signal.reason as Error);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  const text = new JsonText();
  let isAnswered = false;
  line.on("data", (piece: Buffer) => {
    try {
      if (!text.add(piece)) return;
      isAnswered = true;
      const answer = readAnswer(text.text());
      if (answer?.kind === "result") resolve(answer.result);
      else reject(new SentryRefusal(answer?.why ?? "the answer cannot be read"));
    } catch (cause) {
      reject(new SentryRefusal("the answer cannot be read", { cause }));
    }
    line.destroy();
  });
  line.once("error", (cause) => {
    reject(new SentryGone("the sentry cannot be reached", { cause }));
  });
  line.once("close", () => {
    if (!isAnswered) reject(new SentryGone("the sentry went away"));
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

const MAX_WHY_CHARACTERS = 4096;

/** What the sentry has said; undefined if it is no answer, or not all of one. */
export function readAnswer(text: string): SentryAnswer | undefined {
  try {
    const { success, err, result } = JSON.parse(text) as { success?: unknown; err?: unknown; result?: unknown };
    if (success === true) return { kind: "result", result };
    return { kind: "refusal", why: typeof err === "string" ? err.slice(0, MAX_WHY_CHARACTERS) : "no reason given" };
  } catch {
    return undefined;
  }
}
