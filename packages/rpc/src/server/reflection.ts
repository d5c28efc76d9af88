import { create, type DescFile, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, type ConnectRouter } from "@connectrpc/connect";
import {
  file_grpc_reflection_v1_reflection,
  ServerReflection,
  type ServerReflectionRequest,
  ServerReflectionRequestSchema,
  type ServerReflectionResponse,
  ServerReflectionResponseSchema,
} from "@turnbox/protocol/grpc/reflection/v1/reflection_pb";
import {
  ServerReflectionRequestSchema as AlphaRequestSchema,
  ServerReflectionResponseSchema as AlphaResponseSchema,
  ServerReflection as ServerReflectionAlpha,
} from "@turnbox/protocol/grpc/reflection/v1alpha/reflection_pb";
import { file_health_v1_health } from "@turnbox/protocol/health/v1/health_pb";
import { closingSignalOf } from "./call-context.ts";
import { createDescriptorIndex, type DescriptorIndex } from "./descriptor-index.ts";

type Question = ServerReflectionRequest["messageRequest"];

/**
 * Serves gRPC reflection, v1 and v1alpha, over the given files, the standard services and all they import, so that
 * `buf curl` and `grpcurl` need no schema. The two versions are the same bytes under two names.
 */
export function registerReflection(router: ConnectRouter, files: readonly DescFile[]): void {
  const index = createDescriptorIndex([...files, file_health_v1_health, file_grpc_reflection_v1_reflection]);

  const reply = (request: ServerReflectionRequest): ServerReflectionResponse =>
    create(ServerReflectionResponseSchema, {
      validHost: request.host,
      originalRequest: request,
      messageResponse: answer(index, request.messageRequest),
    });

  router.service(ServerReflection, {
    async *serverReflectionInfo(requests, context) {
      for await (const request of endWith(requests, closingSignalOf(context))) yield reply(request);
    },
  });
  router.service(ServerReflectionAlpha, {
    async *serverReflectionInfo(requests, context) {
      for await (const request of endWith(requests, closingSignalOf(context))) {
        const present = fromBinary(ServerReflectionRequestSchema, toBinary(AlphaRequestSchema, request));
        yield fromBinary(AlphaResponseSchema, toBinary(ServerReflectionResponseSchema, reply(present)));
      }
    },
  });
}

function answer(index: DescriptorIndex, question: Question) {
  switch (question.case) {
    case "listServices":
      return { case: "listServicesResponse" as const, value: { service: index.services.map((name) => ({ name })) } };
    case "fileByFilename":
      return descriptors(index.fileByName(question.value), `file ${question.value}`);
    case "fileContainingSymbol":
      return descriptors(index.fileBySymbol(question.value), `symbol ${question.value}`);
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = question.value;
      return descriptors(
        index.fileByExtension(containingType, extensionNumber),
        `extension ${extensionNumber} of ${containingType}`,
      );
    }
    case "allExtensionNumbersOfType": {
      const extensionNumber = index.extensionNumbers(question.value);
      if (extensionNumber === undefined) return refusal(Code.NotFound, `type ${question.value} is not served here`);
      return {
        case: "allExtensionNumbersResponse" as const,
        value: { baseTypeName: question.value, extensionNumber: [...extensionNumber] },
      };
    }
    default:
      return refusal(Code.InvalidArgument, "the request asks nothing");
  }
}

function descriptors(found: readonly Uint8Array[] | undefined, what: string) {
  if (found === undefined) return refusal(Code.NotFound, `${what} is not served here`);
  return { case: "fileDescriptorResponse" as const, value: { fileDescriptorProto: [...found] } };
}

function refusal(errorCode: Code, errorMessage: string) {
  return { case: "errorResponse" as const, value: { errorCode, errorMessage } };
}

/**
 * A stream that also ends, as if by itself, when the signal aborts. Its source is left as it is then: a read may be under
 * way, which is not waited for, and the owner of the source ends it. A reader that stops early ends the source as usual.
 */
async function* endWith<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]();
  try {
    while (!signal.aborted) {
      const next = await nextUnlessAborted(iterator, signal);
      if (next?.done !== false) return;
      yield next.value;
    }
  } finally {
    if (!signal.aborted) await iterator.return?.();
  }
}

async function nextUnlessAborted<T>(
  iterator: AsyncIterator<T, unknown>,
  signal: AbortSignal,
): Promise<IteratorResult<T, unknown> | undefined> {
  return await new Promise((resolve, reject) => {
    const onAbort = (): void => {
      resolve(undefined);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    iterator
      .next()
      .then(resolve, reject)
      .finally(() => {
        signal.removeEventListener("abort", onAbort);
      });
  });
}
