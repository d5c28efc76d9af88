import { invalidArgument } from "@turnbox/core";

/** A message of a client stream: the header first, then data. */
interface Part<Header> {
  readonly part:
    | { readonly case: "header"; readonly value: Header }
    | { readonly case: "data"; readonly value: Uint8Array }
    | { readonly case: undefined; readonly value?: undefined };
}

const MAX_DATA_BYTES = 1024 * 1024;

/** Takes a client stream apart. */
export async function openUpload<Header>(
  requests: AsyncIterable<Part<Header>>,
): Promise<{ readonly header: Header; readonly body: AsyncIterable<Uint8Array> }> {
  const parts = requests[Symbol.asyncIterator]();
  const first = await parts.next();
  if (first.done === true || first.value.part.case !== "header")
    throw invalidArgument("header", "must be the first message");
  return { header: first.value.part.value, body: readData(parts) };
}

async function* readData(parts: AsyncIterator<Part<unknown>>): AsyncIterable<Uint8Array> {
  for (let next = await parts.next(); next.done !== true; next = await parts.next()) {
    const { part } = next.value;
    if (part.case !== "data") throw invalidArgument("data", "only data follows the header");
    if (part.value.length > MAX_DATA_BYTES) throw invalidArgument("data", `must have at most ${MAX_DATA_BYTES} bytes`);
    yield part.value;
  }
}
