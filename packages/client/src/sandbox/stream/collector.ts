/** Keeps the beginning of a stream, up to a bound, and counts what it drops. */
export interface Collector {
  add(bytes: Uint8Array): void;
  /** Bytes that never came. */
  miss(bytes: number): void;
  /** As UTF-8; other bytes become U+FFFD. */
  text(): string;
  droppedBytes(): number;
}

export function createCollector(maxBytes: number): Collector {
  const kept: Uint8Array[] = [];
  let keptBytes = 0;
  let droppedBytes = 0;
  return {
    add: (bytes) => {
      const part = bytes.subarray(0, maxBytes - keptBytes);
      if (part.length > 0) kept.push(part);
      keptBytes += part.length;
      droppedBytes += bytes.length - part.length;
    },
    miss: (bytes) => {
      droppedBytes += bytes;
    },
    text: () => Buffer.concat(kept).toString("utf8"),
    droppedBytes: () => droppedBytes,
  };
}
