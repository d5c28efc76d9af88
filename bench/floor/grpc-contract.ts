import type { ServiceDefinition } from "@grpc/grpc-js";

const asIs = (bytes: Buffer): Buffer => bytes;
const method = (path: string, responseStream: boolean) => ({
  path,
  requestStream: false,
  responseStream,
  requestSerialize: asIs,
  requestDeserialize: asIs,
  responseSerialize: asIs,
  responseDeserialize: asIs,
});

/** The smallest service there is: bytes, as they are. */
export const BARE_SERVICE = {
  empty: method("/bench.Bare/Empty", false),
  stream: method("/bench.Bare/Stream", true),
} satisfies ServiceDefinition;

export const MESSAGE_BYTES = 64 * 1024;
