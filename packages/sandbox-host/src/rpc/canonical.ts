import { type DescMessage, type MessageShape, toJson } from "@bufbuild/protobuf";
import { canonicalJson } from "@turnbox/core";

/** A request as text in which equal requests are equal, whatever the wire format and the order of their maps. */
export function canonicalRequest<Desc extends DescMessage>(desc: Desc, message: MessageShape<Desc>): string {
  return canonicalJson(toJson(desc, message));
}
