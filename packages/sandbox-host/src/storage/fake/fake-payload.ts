import type { Readable } from "node:stream";
import { type Clock, SandboxError } from "@turnbox/core";
import { streamDamaged } from "../names.ts";
import { ProgressWatch } from "../progress-watch.ts";
import { readFrames } from "../stream-frames.ts";
import type { PackedFile } from "./fake-files.ts";

/** What a stream of the fake storage carries: all files, also where it counts as an increment. */
export interface FakePayload {
  readonly guid: string;
  readonly parentGuid: string | null;
  readonly createdAtMs: number;
  readonly files: readonly PackedFile[];
}

export interface ReadingOptions {
  readonly clock: Clock;
  readonly patienceMs: number;
  readonly signal: AbortSignal;
}

const MAX_BYTES = 256 * 1024 * 1024;

/** Reads a stream to its end. It is destroyed on every way out. */
export async function readPayload(source: Readable, options: ReadingOptions): Promise<FakePayload> {
  const { clock, patienceMs, signal } = options;
  const stop = (reason: SandboxError): void => {
    source.destroy(reason);
  };
  using watch = new ProgressWatch({
    clock,
    patienceMs,
    onStall: () => {
      stop(new SandboxError("STORAGE_UNAVAILABLE", "receiving a snapshot stood still", { admitted: "no" }));
    },
  });
  const onAbort = (): void => {
    stop(SandboxError.from(signal.reason));
  };
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of readFrames(source)) {
      watch.note();
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > MAX_BYTES) throw streamDamaged("it is larger than any that the fake storage writes");
    }
    return JSON.parse(Buffer.concat(chunks).toString("utf8")) as FakePayload;
  } catch (thrown) {
    throw thrown instanceof SandboxError ? thrown : streamDamaged("it broke off", thrown);
  } finally {
    signal.removeEventListener("abort", onAbort);
    source.destroy();
  }
}
