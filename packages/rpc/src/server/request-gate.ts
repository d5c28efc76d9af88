import type { HandlerContext } from "@connectrpc/connect";
import { type ContextValues, createContextKey } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import {
  authorizeMethod,
  type CheckRation,
  type Clock,
  invalidArgument,
  parseBearer,
  SandboxError,
  type Secret,
  type TokenVerifier,
} from "@turnbox/core";
import type { RpcMeter } from "../metrics/rpc-metrics.ts";
import { type Admission, ANYBODY, type CallPermit } from "./admission/admission.ts";
import { createRateLimiter, type RateLimiter } from "./admission/token-bucket.ts";
import { peerOf, setPrincipal, setRequestId } from "./call-context.ts";
import { toFailure } from "./failure.ts";
import { methodFacts } from "./method-facts.ts";
import { REQUEST_ID_HEADER, requestIdFrom } from "./request-id.ts";

const permitKey = createContextKey<CallPermit | undefined>(undefined, { description: "the call's permit" });

/** The permit that the gate gave to a call. */
export function permitOf(values: ContextValues): CallPermit | undefined {
  return values.get(permitKey);
}

export interface RequestGateOptions {
  readonly verifier: TokenVerifier;
  readonly admission: Admission;
  readonly clock: Clock;
  /** Told of every call that is turned away here. */
  readonly meter?: RpcMeter;
}

/**
 * What happens to a call on the strength of its headers alone, before a byte of its body is read: it gets an id, its
 * caller is known, may call the method at all, and there is room. A refused call costs neither parsing nor memory.
 */
export function createRequestGate({
  verifier,
  admission,
  clock,
  meter,
}: RequestGateOptions): (context: HandlerContext) => void {
  const wrongTokens = createRateLimiter(WRONG_TOKENS, clock);
  const admit = (context: HandlerContext): void => {
    assertPlainQuery(context);
    const facts = methodFacts(context.method);
    const bearer = parseBearer(context.requestHeader.get("authorization"));
    let tenant: string;
    let sandbox: string | undefined;
    if (facts.verb === "public") {
      tenant = bearer === undefined ? ANYBODY : tenantOf(bearer, verifier, rationOf(context, wrongTokens));
    } else {
      const principal = verifier.verify(bearer, rationOf(context, wrongTokens));
      authorizeMethod(principal, facts);
      setPrincipal(context, principal);
      ({ tenant, sandbox } = principal);
    }
    const kind = context.method.methodKind === "unary" ? "unary" : "stream";
    const permit = admission.admit({ lane: facts.lane, kind, tenant, sandbox });
    context.values.set(permitKey, permit);
    // The call may end before any handler sees it: a body that does not parse, a client that goes away.
    if (context.signal.aborted) permit.abandon();
    else context.signal.addEventListener("abort", permit.abandon, { once: true });
  };

  return (context) => {
    const requestId = requestIdFrom(context.requestHeader.get(REQUEST_ID_HEADER));
    setRequestId(context, requestId);
    context.responseHeader.set(REQUEST_ID_HEADER, requestId);
    try {
      admit(context);
    } catch (thrown) {
      const { answer } = toFailure(thrown, requestId);
      meter?.refuse(context.method, codeToString(answer.code));
      throw answer;
    }
  };
}

/** For each peer. A check of a signature takes 0.1 ms, so this is a twentieth of a processor. */
const WRONG_TOKENS = { perSecond: 500, burst: 1000 };

function rationOf(context: HandlerContext, wrongTokens: RateLimiter): CheckRation {
  return {
    take: () => {
      const waitMs = wrongTokens.take(peerOf(context));
      if (waitMs > 0) throw new SandboxError("RATE_LIMITED", "too many wrong tokens", { retryAfterMs: waitMs });
    },
    giveBack: () => {
      wrongTokens.giveBack(peerOf(context));
    },
  };
}

/** A message in the address is as long as the address; it is not to be longer than that. */
function assertPlainQuery({ requestMethod, url }: HandlerContext): void {
  if (requestMethod !== "GET") return;
  const compression = new URL(url).searchParams.get("compression") ?? "";
  if (compression !== "" && compression !== "identity")
    throw invalidArgument("compression", "must be absent in a request by GET");
}

/** On whose account a public call goes: a token is not needed, but keeps its holder's room apart from everybody's. */
function tenantOf(bearer: Secret, verifier: TokenVerifier, ration: CheckRation): string {
  try {
    return verifier.verify(bearer, ration).tenant;
  } catch {
    return ANYBODY;
  }
}
