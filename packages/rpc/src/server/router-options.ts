import type { ConnectRouterOptions, Interceptor } from "@connectrpc/connect";
import { compressionGzip } from "@connectrpc/connect-node";
import type { Clock, Log, TokenVerifier } from "@turnbox/core";
import type { RpcMeter } from "../metrics/rpc-metrics.ts";
import { type Admission, createAdmission, DEFAULT_ADMISSION_LIMITS } from "./admission/admission.ts";
import { admissionInterceptor } from "./interceptors/admission-interceptor.ts";
import {
  createDeadlineInterceptor,
  DEFAULT_DEADLINE_LIMITS,
  type DeadlineLimits,
} from "./interceptors/deadline-interceptor.ts";
import { decodeInterceptor } from "./interceptors/decode-interceptor.ts";
import { createErrorInterceptor } from "./interceptors/error-interceptor.ts";
import { createMeterInterceptor } from "./interceptors/meter-interceptor.ts";
import { createScopeInterceptor } from "./interceptors/scope-interceptor.ts";
import { createRequestGate } from "./request-gate.ts";
import { STRICT_JSON } from "./strict-json.ts";

/** What every server of Turnbox puts before its handlers. */
export interface ServerPolicy {
  readonly verifier: TokenVerifier;
  readonly log: Log;
  readonly clock: Clock;
  readonly admission?: Admission;
  readonly deadlines?: DeadlineLimits;
  /** The largest message of a request, after decompression, whatever its method takes. Default 16 MiB. */
  readonly maxMessageBytes?: number;
  /** Its abort, with a `SandboxError` as reason, ends every call. */
  readonly shutdownSignal?: AbortSignal;
  /** Told of every call. */
  readonly meter?: RpcMeter;
  /** What a server puts around the policy, outermost first: it sees what callers are answered. */
  readonly outerInterceptors?: readonly Interceptor[];
  /** What a server puts between the policy and its handlers, outermost first. */
  readonly innerInterceptors?: readonly Interceptor[];
}

/** More than any method takes. */
export const DEFAULT_MAX_MESSAGE_BYTES = 16 * 1024 * 1024;

/** What a method can answer is bounded by the method; the protocol layer has no bound of its own. */
const MAX_ANSWER_BYTES = 0xffff_ffff;

/** Responses are never compressed: compression takes a thread of the I/O pool and more time than it saves on a fast link. */
const NEVER_COMPRESS_BYTES = 0xffff_ffff;

/**
 * The policy as options of a Connect router: for `createRpcHandler`, and for `createRouterTransport` in tests, so that
 * both go through the same gate and interceptors. gRPC-Web is off: browsers speak Connect.
 */
export function createRouterOptions(policy: ServerPolicy): ConnectRouterOptions {
  const { verifier, log, clock, meter, deadlines = DEFAULT_DEADLINE_LIMITS } = policy;
  const admission = policy.admission ?? createAdmission(DEFAULT_ADMISSION_LIMITS, clock);
  const maxMessageBytes = policy.maxMessageBytes ?? DEFAULT_MAX_MESSAGE_BYTES;
  return {
    grpc: true,
    connect: true,
    grpcWeb: false,
    readMaxBytes: maxMessageBytes,
    writeMaxBytes: MAX_ANSWER_BYTES,
    // What a server does not know it does not keep.
    binaryOptions: { readUnknownFields: false },
    acceptCompression: [compressionGzip],
    compressMinBytes: NEVER_COMPRESS_BYTES,
    jsonOptions: STRICT_JSON,
    requestGate: createRequestGate({ verifier, admission, clock, ...(meter === undefined ? {} : { meter }) }),
    // Outermost first. The permit of a call outlasts its deadline: it is given back when the handler has ended.
    interceptors: [
      ...(meter === undefined ? [] : [createMeterInterceptor(meter)]),
      ...(policy.outerInterceptors ?? []),
      createErrorInterceptor({ log, clock }),
      createDeadlineInterceptor(deadlines, clock),
      admissionInterceptor,
      createScopeInterceptor(),
      decodeInterceptor,
      ...(policy.innerInterceptors ?? []),
    ],
    ...(policy.shutdownSignal === undefined ? {} : { shutdownSignal: policy.shutdownSignal }),
  };
}
