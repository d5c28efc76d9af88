import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { invalidArgument, parseKey } from "@turnbox/core";
import { canonicalJson } from "../session/canonical-json.ts";

/** The idempotency key of a request, and all else of it in a canonical form. */
export function keyedRequest<Desc extends DescMessage>(
  desc: Desc,
  request: MessageShape<Desc> & { readonly idempotencyKey: string },
  field = "idempotency_key",
): { readonly idempotencyKey: string; readonly payload: string } {
  return {
    idempotencyKey: parseKey(field, request.idempotencyKey),
    payload: canonicalRequest(desc, { ...request, idempotencyKey: "" }),
  };
}

/**
 * A request as text in which equal requests are equal, whatever the wire format and the order of their maps. Fails with
 * INVALID_ARGUMENT if a field has no such text: binary carries durations that no JSON has, such as one of 2^63 seconds.
 */
export function canonicalRequest<Desc extends DescMessage>(desc: Desc, message: MessageShape<Desc>): string {
  try {
    return canonicalJson(toJson(desc, message));
  } catch (thrown) {
    const field = outOfRange(desc, message);
    if (field === undefined) throw thrown;
    throw invalidArgument(field, "must be in the range of its type");
  }
}

/** The first field that has no JSON form by itself. */
function outOfRange<Desc extends DescMessage>(desc: Desc, message: MessageShape<Desc>): string | undefined {
  const reflected = reflect(desc, message);
  return desc.fields.find((field) => {
    if (field.fieldKind !== "message" || !reflected.isSet(field)) return false;
    try {
      toJson(field.message, reflected.get(field).message);
      return false;
    } catch {
      return true;
    }
  })?.name;
}
