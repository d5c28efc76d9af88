import { create, fromBinary } from "@bufbuild/protobuf";
import { expect, it } from "@jest/globals";
import { ExecuteToolStreamResponseSchema, OutputStream } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { formOf } from "./progress-form.ts";

const message = (data: Uint8Array) =>
  create(ExecuteToolStreamResponseSchema, {
    event: {
      case: "progress",
      value: { stream: OutputStream.STDERR, data, offset: 5_000_000_000n, droppedBytes: 300n },
    },
  });

it.each([0, 127, 128, 20_000, 500_000])("is the message, with %i bytes that are not copied", (length) => {
  const sent = message(new Uint8Array(length).fill(7));
  if (sent.event.case !== "progress") throw new Error("no output");
  const form = formOf(ExecuteToolStreamResponseSchema.field.progress, sent.event.value);
  expect(form.at(-1)).toBe(sent.event.value.data);
  expect(fromBinary(ExecuteToolStreamResponseSchema, new Uint8Array(Buffer.concat(form)))).toEqual(sent);
});
