import { createDeadline, raceSignal } from "@turnbox/core";
import { type Helper, HelperRefusal } from "../../../system/helper/helper.ts";
import { type Stdio } from "@turnbox/core/command";
import { takeStdio } from "../../../system/fifo/fifo-stdio.ts";

import type { GvisorContext } from "../context.ts";
import type { ProcessRequest } from "../container/oci-spec.ts";
import { executeRequest } from "./execute-request.ts";
import { readAnswer } from "../container/sentry-call.ts";

/** Fits into the empty buffer of a socket as a whole. */
const MAX_MESSAGE_BYTES = 100 * 1024;

/** What came of asking the sentry to start a process. */
export type SentryStart =
  | { readonly kind: "running"; readonly pid: number; readonly stdio: Stdio }
  /** Nothing runs: by the sentry's own words. */
  | { readonly kind: "failed"; readonly why: string }
  /** Nothing runs: it could not be asked. */
  | { readonly kind: "not_asked" }
  /** It did not answer in time: something may run, or come to run. */
  | { readonly kind: "abandoned" };

export interface SentryStartRequest {
  readonly id: string;
  readonly socketPath: string;
  readonly process: ProcessRequest;
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
}

/**
 * Starts a process without a `runsc` on the way, which takes ten times as long to begin with as what it then does. Its
 * input and outputs are fifos, opened again for the sentry: it changes the flags of what it is given.
 */
export async function startInSentry(
  { clock, fifos }: GvisorContext,
  helper: Helper,
  request: SentryStartRequest,
): Promise<SentryStart> {
  const message = executeRequest(request.id, request.process);
  if (Buffer.byteLength(message) > MAX_MESSAGE_BYTES) return { kind: "not_asked" };
  using ends = await takeStdio(fifos);
  const files = ends.descriptors.map((descriptor, index) => ({
    path: `/proc/${String(process.pid)}/fd/${String(descriptor)}`,
    mode: index === 0 ? ("r" as const) : ("w" as const),
  }));
  using patience = createDeadline({ clock, ms: request.deadlineMs, signal: request.signal });
  const { socketPath } = request;
  const asked = helper.send({ socketPath, message, files, signal: patience.signal });
  const start = asked === undefined ? ({ kind: "not_asked" } as const) : await answered(asked, patience.signal);
  if (start.kind === "running") return { ...start, stdio: ends.stdio };
  ends.destroyStreams();
  return start;
}

type Answered = { readonly kind: "running"; readonly pid: number } | Exclude<SentryStart, { readonly kind: "running" }>;

async function answered(asked: Promise<string>, patience: AbortSignal): Promise<Answered> {
  const answer = asked.then(
    toStart,
    (thrown: unknown): Answered => ({
      kind: thrown instanceof HelperRefusal ? "not_asked" : "abandoned",
    }),
  );
  return await raceSignal(answer, patience).catch((thrown: unknown): Answered => {
    if (!patience.aborted) throw thrown;
    return { kind: "abandoned" };
  });
}

/** A connection that ends without an answer belongs to a sentry that died, or is dying; an answer without a pid is broken. */
function toStart(text: string): Answered {
  const answer = readAnswer(text);
  if (answer?.kind === "refusal") return { kind: "failed", why: answer.why };
  const pid = answer?.result;
  return typeof pid === "number" && Number.isSafeInteger(pid) && pid > 0
    ? { kind: "running", pid }
    : { kind: "abandoned" };
}
