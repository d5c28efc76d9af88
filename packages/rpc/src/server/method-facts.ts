import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { ServerReflection } from "@turnbox/protocol/grpc/reflection/v1/reflection_pb";
import { ServerReflection as ServerReflectionAlpha } from "@turnbox/protocol/grpc/reflection/v1alpha/reflection_pb";
import { Health } from "@turnbox/protocol/health/v1/health_pb";
import { Lane, lane, Scope, scope, Verb, verb } from "@turnbox/protocol/turnbox/common/v1/access_pb";
import type { MethodFacts } from "@turnbox/core";

const VERBS: ReadonlyMap<Verb, MethodFacts["verb"]> = new Map([
  [Verb.PUBLIC, "public"],
  [Verb.READ, "read"],
  [Verb.EXECUTE, "execute"],
  [Verb.FILES, "files"],
  [Verb.TURN, "turn"],
  [Verb.LIFECYCLE, "lifecycle"],
  [Verb.NETWORK, "network"],
  [Verb.ADMIN, "admin"],
]);

const SCOPES: ReadonlyMap<Scope, MethodFacts["scope"]> = new Map([
  [Scope.SESSION, "session"],
  [Scope.TENANT, "tenant"],
  [Scope.HOST, "host"],
  [Scope.ANY, "none"],
]);

/**
 * The standard gRPC services carry no options of ours. What is asked once and answered at once has reserved room; what
 * stays open for as long as its caller likes has none.
 */
const STANDARD: ReadonlyMap<string, MethodFacts> = new Map([
  [Health.typeName, { verb: "public", lane: "reserved", scope: "none" }],
  [ServerReflection.typeName, { verb: "read", lane: "normal", scope: "none" }],
  [ServerReflectionAlpha.typeName, { verb: "read", lane: "normal", scope: "none" }],
]);

const REFUSED: MethodFacts = { verb: undefined, lane: "normal", scope: "host" };

/** Options are parsed anew each time they are asked for. */
const known = new WeakMap<DescMethod, MethodFacts>();

/** What a method needs, read from the options in its proto. A method that does not say both verb and scope is refused. */
export function methodFacts(method: DescMethod): MethodFacts {
  const facts = known.get(method) ?? readFacts(method);
  known.set(method, facts);
  return facts;
}

function readFacts(method: DescMethod): MethodFacts {
  const standard = STANDARD.get(method.parent.typeName);
  if (standard !== undefined) return method.methodKind === "unary" ? standard : { ...standard, lane: "normal" };
  const ofVerb = VERBS.get(getOption(method, verb));
  const ofScope = ofVerb === "public" ? "none" : SCOPES.get(getOption(method, scope));
  if (ofVerb === undefined || ofScope === undefined) return REFUSED;
  return { verb: ofVerb, lane: getOption(method, lane) === Lane.RESERVED ? "reserved" : "normal", scope: ofScope };
}
