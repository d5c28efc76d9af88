const LENGTH_BYTES = 4;

/** A message to or from an aide: fields of bytes, each behind its length, and the length of all before them. */
export function encodeFrame(fields: readonly (string | number | Uint8Array)[]): Buffer {
  const parts = fields.map((field) => (field instanceof Uint8Array ? field : Buffer.from(String(field))));
  const total = parts.reduce((sum, part) => sum + LENGTH_BYTES + part.length, 0);
  const frame = Buffer.allocUnsafe(LENGTH_BYTES + total);
  let at = frame.writeUInt32BE(total, 0);
  for (const part of parts) {
    at = frame.writeUInt32BE(part.length, at);
    frame.set(part, at);
    at += part.length;
  }
  return frame;
}

/** Takes whole frames out of bytes as they come. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0);

  *read(chunk: Buffer): Generator<readonly Buffer[]> {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= LENGTH_BYTES) {
      const end = LENGTH_BYTES + this.#rest.readUInt32BE(0);
      if (this.#rest.length < end) return;
      yield decodeFields(this.#rest.subarray(LENGTH_BYTES, end));
      this.#rest = this.#rest.subarray(end);
    }
  }
}

function decodeFields(bytes: Buffer): readonly Buffer[] {
  const fields: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const start = at + LENGTH_BYTES;
    at = start + bytes.readUInt32BE(at);
    fields.push(bytes.subarray(start, at));
  }
  return fields;
}
