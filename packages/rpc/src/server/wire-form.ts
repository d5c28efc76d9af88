import { create, type DescMessage, type DescMethod, type Message } from "@bufbuild/protobuf";
import { type ContextValues, createContextKey } from "@connectrpc/connect";

/** The binary form of a message: what its parts are when they follow one another. */
export type WireForm = readonly Uint8Array[];

const forms = new WeakMap<Message, WireForm>();

/**
 * Says what the binary form of a message of a stream is, so that its long fields are sent from where they lie. One that is made
 * from the message copies them four times. Whoever gets the message itself or its JSON sees no difference.
 */
export function withWireForm<T extends Message>(message: T, form: WireForm): T {
  forms.set(message, form);
  return message;
}

const BINARY_STREAM = /^application\/(?:connect\+proto|grpc(?:\+proto)?)\s*(?:;|$)/i;
const HEAD_BYTES = 5;

/**
 * What is known of the messages of one answer that are inside the protocol layer. It is given an empty one in the place of each
 * that has a form, and what it makes of that is replaced. It makes one piece of each message, in their order, then at most its own
 * end of the stream.
 */
export class WireForms {
  readonly #inside: (WireForm | undefined)[] = [];

  /** Gives the protocol layer its messages. */
  async *setAside<T extends Message>(messages: AsyncIterable<T>, desc: DescMessage): AsyncIterable<Message> {
    for await (const message of messages) {
      const form = forms.get(message);
      this.#inside.push(form);
      yield form === undefined ? message : create(desc);
    }
  }

  /** What is sent for a piece that the protocol layer made. */
  replace(piece: Uint8Array): WireForm {
    const form = this.#inside.shift();
    return form === undefined ? [piece] : [headOf(form), ...form];
  }
}

/** Answers are never compressed, so no flag is set. */
function headOf(form: WireForm): Uint8Array {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(
    form.reduce((sum, { length }) => sum + length, 0),
    1,
  );
  return head;
}

const formsKey = createContextKey<WireForms | undefined>(undefined, { description: "messages that have a form" });

export const wireFormsOf = (values: ContextValues): WireForms | undefined => values.get(formsKey);

/** For a call whose answer is a stream in binary; no other answer takes notice of forms. */
export function expectWireForms(values: ContextValues, method: DescMethod, header: Headers): WireForms | undefined {
  if (method.methodKind !== "server_streaming" || !BINARY_STREAM.test(header.get("content-type") ?? ""))
    return undefined;
  const expected = new WireForms();
  values.set(formsKey, expected);
  return expected;
}
