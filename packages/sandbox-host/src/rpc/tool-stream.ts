import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { type Clock, invalidArgument, parseEnum } from "@turnbox/core";
import type { CallLimits as WireLimits } from "@turnbox/protocol/turnbox/common/v1/resource_pb";
import {
  OutputStream,
  SlowReader as WireSlowReader,
  type ToolProgress,
  ToolProgressSchema,
} from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import type { CallLimits } from "../tool/call-limits.ts";
import type { LedgerAnswer } from "../tool/ledger.ts";
import type { StreamName } from "../tool/output/capture.ts";
import { FrameReader } from "../tool/output/frame-reader.ts";
import type { Frame, OutputJournal, SlowReader } from "../tool/output/journal.ts";
import { type Offsets, STREAMS } from "../tool/output/segment.ts";

const SLOW_READERS: ReadonlyMap<number, SlowReader> = new Map([
  [WireSlowReader.UNSPECIFIED, "wait"],
  [WireSlowReader.WAIT, "wait"],
  [WireSlowReader.DROP, "drop"],
]);

const WIRE_STREAMS = {
  stdout: OutputStream.STDOUT,
  stderr: OutputStream.STDERR,
} as const satisfies Record<StreamName, OutputStream>;

export const parseSlowReader = (value: WireSlowReader): SlowReader => parseEnum("slow_reader", value, SLOW_READERS);

/** A field at 0 means the tool's default. */
export function parseLimits(limits: WireLimits | undefined): CallLimits {
  if (limits === undefined) return {};
  const timeoutMs = limits.timeout === undefined ? 0 : durationMs(limits.timeout);
  const memoryBytes = parseBytes("limits.memory_bytes", limits.memoryBytes);
  const outputBytes = parseBytes("limits.output_bytes", limits.outputBytes);
  return {
    ...(timeoutMs === 0 ? {} : { timeoutMs }),
    ...(memoryBytes === 0 ? {} : { memoryBytes }),
    ...(outputBytes === 0 ? {} : { outputBytes }),
  };
}

export function parseOffset(field: string, offset: bigint): number {
  return parseBytes(field, offset);
}

function parseBytes(field: string, value: bigint): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw invalidArgument(field, "is too large");
  return Number(value);
}

export type CallEvent =
  | { readonly kind: "progress"; readonly progress: ToolProgress }
  | { readonly kind: "end"; readonly answer: LedgerAnswer };

export interface StreamOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly slowReader: SlowReader;
  readonly from: Offsets;
  /** Whether the end of the output that is no longer kept is reported, by its length. */
  readonly missing: "count" | "ignore";
}

/** The output of a call as it comes, then its end. `begin` starts or joins the call and gives its journal to `onOutput`. */
export async function* streamCall(
  { clock, signal, slowReader, from, missing }: StreamOptions,
  begin: (onOutput: (journal: OutputJournal) => void) => Promise<LedgerAnswer>,
): AsyncGenerator<CallEvent> {
  const reader = new FrameReader({ clock, slowReader, from });
  const close = (): void => {
    reader.close();
  };
  const finish = (): void => {
    reader.finish();
  };
  // A stalled reader that vanishes never resumes this generator, so the signal closes it.
  signal.addEventListener("abort", close, { once: true });
  const coming = begin((journal) => {
    reader.bind(journal);
  });
  coming.then(finish, finish);
  const seen: Record<StreamName, number> = { ...from };
  for await (const frame of reader.frames()) {
    seen[frame.stream] = frame.offset + frame.data.length;
    yield { kind: "progress", progress: toProgress(frame) };
  }
  const answer = await coming;
  for (const stream of missing === "count" ? STREAMS : []) {
    const { totalBytes } = answer.result[stream];
    const droppedBytes = totalBytes - seen[stream];
    if (droppedBytes > 0)
      yield {
        kind: "progress",
        progress: toProgress({ stream, data: new Uint8Array(), offset: totalBytes, droppedBytes }),
      };
  }
  yield { kind: "end", answer };
}

function toProgress({ stream, data, offset, droppedBytes }: Frame): ToolProgress {
  const progress: MessageInitShape<typeof ToolProgressSchema> = {
    stream: WIRE_STREAMS[stream],
    data,
    offset: BigInt(offset),
    droppedBytes: BigInt(droppedBytes),
  };
  return create(ToolProgressSchema, progress);
}
