import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { max_request_bytes } from "@turnbox/protocol/turnbox/common/v1/access_pb";

/** For methods whose proto names no size. */
const DEFAULT_BYTES = 256 * 1024;

/** Options are parsed again each time they are asked for. */
const known = new WeakMap<DescMethod, number>();

/** The most bytes that one message of a request of the method may have, after decompression. */
export function maxRequestBytes(method: DescMethod): number {
  const found = known.get(method);
  if (found !== undefined) return found;
  const named = getOption(method, max_request_bytes);
  const bytes = named === 0 ? DEFAULT_BYTES : named;
  known.set(method, bytes);
  return bytes;
}
