import { gzipSync } from "node:zlib";
import type { DescMethod } from "@bufbuild/protobuf";
import type { Chance } from "./chance.ts";
import type { Form } from "./input.ts";

const COMPRESSED = 1;
const END_STREAM = 2;

/** Whether the messages of a call are in envelopes. */
export const isEnveloped = ({ methodKind }: DescMethod, { protocol }: Pick<Form, "protocol">): boolean =>
  protocol === "grpc" || (protocol === "connect" && methodKind !== "unary");

/** The pieces that a caller sends, one after the other. */
export function frame(
  messages: readonly Uint8Array[],
  { method, form, chance }: { readonly method: DescMethod; readonly form: Form; readonly chance: Chance },
): readonly Uint8Array[] {
  if (!isEnveloped(method, form)) return messages;
  if (!form.broken) return messages.map((message) => envelope(0, message));
  return messages.flatMap((message) => brokenFrames(message, chance));
}

export function envelope(flags: number, message: Uint8Array, claimed = message.length): Uint8Array {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(claimed >>> 0, 1);
  return Buffer.concat([head, message]);
}

function brokenFrames(message: Uint8Array, chance: Chance): readonly Uint8Array[] {
  switch (chance.below(14)) {
    case 0:
      return [envelope(COMPRESSED, message)];
    case 1:
      return [envelope(COMPRESSED, gzipSync(message))];
    case 2:
      return [envelope(END_STREAM, message)];
    case 3:
      return [envelope(chance.below(256), message)];
    case 4:
      return [envelope(0, message, message.length + 1 + chance.below(100))];
    case 5:
      return [envelope(0, message, chance.below(message.length + 1))];
    case 6:
      return [envelope(0, message, 0xffff_ffff)];
    case 7:
      return [envelope(0, message), envelope(0, message)];
    case 8:
      return [envelope(0, message).subarray(0, chance.below(6))];
    default:
      return [envelope(0, message)];
  }
}
