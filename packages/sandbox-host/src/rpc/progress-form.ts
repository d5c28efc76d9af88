import { type DescField, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { type WireForm, withWireForm } from "@turnbox/rpc/server";
import {
  type AttachToolCallResponse,
  type ExecuteToolStreamResponse,
  type ToolProgress,
  ToolProgressSchema,
} from "@turnbox/protocol/turnbox/host/v1/tool_pb";

/** Below this, copying costs less than a part of its own. */
const MIN_BYTES = 8 * 1024;

/** Lets the output in a message of a stream be sent without copies. `field` is where the message holds it. */
export function withProgressForm<T extends ExecuteToolStreamResponse | AttachToolCallResponse>(
  field: DescField,
  message: T,
): T {
  const { event } = message;
  if (event.case !== "progress" || event.value.data.length < MIN_BYTES) return message;
  return withWireForm(message, formOf(field, event.value));
}

/** The order of fields is free: the bytes come last, and all before them is one small part. */
export function formOf(field: DescField, progress: ToolProgress): WireForm {
  const { data } = progress;
  const rest = toBinary(ToolProgressSchema, { ...progress, data: new Uint8Array() });
  const inner = begin(ToolProgressSchema.field.data, data.length, new BinaryWriter().raw(rest)).finish();
  const head = begin(field, inner.length + data.length, new BinaryWriter())
    .raw(inner)
    .finish();
  return [head, data];
}

const begin = ({ number }: DescField, length: number, writer: BinaryWriter): BinaryWriter =>
  writer.tag(number, WireType.LengthDelimited).uint32(length);
