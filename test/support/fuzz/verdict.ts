import { isReason } from "@turnbox/core";
import type { Answer } from "./answer.ts";

/** Codes that say no more than that something broke. */
const OPAQUE: ReadonlySet<string> = new Set(["Internal", "Unknown", "DataLoss"]);

/** What is wrong with an answer; undefined if it is one that a caller may get. */
export function faultOf(answer: Answer): string | undefined {
  switch (answer.kind) {
    case "done":
    case "cut":
      return undefined;
    case "http":
      return answer.status >= 500 ? `status ${answer.status} of HTTP` : undefined;
    case "lost":
      return `no answer: ${answer.why}`;
    case "refused": {
      const { code, reason, message } = answer;
      const isTyped = isReason(reason) && reason !== "INTERNAL" && !OPAQUE.has(code);
      return isTyped ? undefined : `${code} ${reason === "" ? "without a reason" : reason}: ${message}`;
    }
  }
}

/** In one word, for the tally. */
export function wordFor(answer: Answer): string {
  if (answer.kind === "refused") return answer.reason === "" ? answer.code : answer.reason;
  return answer.kind === "http" ? `http ${answer.status}` : answer.kind;
}
