export {
  type Admission,
  type AdmissionLimits,
  createAdmission,
  DEFAULT_ADMISSION_LIMITS,
} from "./admission/admission.ts";
export type { RateLimit } from "./admission/token-bucket.ts";
export { assertBindPolicy, type BindRequest, isLoopback } from "./bind-policy.ts";
export { closingSignalOf, principalOf, requestIdOf } from "./call-context.ts";
export { type Failure, toFailure } from "./failure.ts";
export { createHealthBoard, type HealthBoard, type ServiceStatus } from "./health.ts";
export type { HttpHandler, HttpRequest, HttpResponse } from "./http-handler.ts";
export { DEFAULT_DEADLINE_LIMITS, type DeadlineLimits } from "./interceptors/deadline-interceptor.ts";
export { type BodyLimits, DEFAULT_BODY_LIMITS } from "./read-body.ts";
export { type ListeningServer, type ListenOptions, listen, type TlsMaterial } from "./listen.ts";
export { DEFAULT_LISTEN_LIMITS, type ListenLimits } from "./listen-limits.ts";
export { methodFacts } from "./method-facts.ts";
export { registerReflection } from "./reflection.ts";
export { REQUEST_ID_HEADER } from "./request-id.ts";
export { createSubjectReader, sessionPart } from "./request-subject.ts";
export { createRouterOptions, type ServerPolicy } from "./router-options.ts";
export { createRpcHandler, type RpcHandlerOptions } from "./rpc-handler.ts";
export { type MetricsRoute, serveMetrics } from "./serve-metrics.ts";
