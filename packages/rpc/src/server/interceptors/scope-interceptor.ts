import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { authorize } from "@turnbox/core";
import { principalOf } from "../call-context.ts";
import { methodFacts } from "../method-facts.ts";
import { createSubjectReader, type SubjectReader } from "../request-subject.ts";

/** Refuses a request that names a session which the caller's token does not cover. In a stream, every message counts. */
export function createScopeInterceptor(): Interceptor {
  const readers = new Map<DescMethod, SubjectReader>();
  const readerOf = (method: DescMethod): SubjectReader => {
    const reader = readers.get(method) ?? createSubjectReader(method);
    readers.set(method, reader);
    return reader;
  };

  return (next) => async (request) => {
    const facts = methodFacts(request.method);
    if (facts.verb === "public") return await next(request);
    const principal = principalOf({ values: request.contextValues });
    if (principal.kind === "home" || principal.sandbox === undefined) return await next(request);
    const read = readerOf(request.method);
    if (!request.stream) {
      authorize(principal, facts, read(request.message));
      return await next(request);
    }
    const check = (message: Message, position: "first" | "later"): void => {
      const subject = read(message);
      if (position === "first" || subject.sessionId !== undefined) authorize(principal, facts, subject);
    };
    return await next({ ...request, message: checked(request.message, check) });
  };
}

async function* checked<T extends Message>(
  messages: AsyncIterable<T>,
  check: (message: T, position: "first" | "later") => void,
): AsyncIterable<T> {
  let position: "first" | "later" = "first";
  for await (const message of messages) {
    check(message, position);
    position = "later";
    yield message;
  }
}
