import type { IncomingHttpHeaders } from "node:http2";
import {
  contentTypeUnaryProto,
  errorFromJsonBytes,
  trailerDemux,
  validateResponseWithCompression,
} from "@connectrpc/connect/protocol-connect";
import { toHeaders } from "../wire/http2-fields.ts";
import type { WholeAnswer } from "./send-whole.ts";

/** Throws the failure that an answer to a unary call tells of, or what is wrong with it. */
export function assertAnswered({ status, fields, body }: WholeAnswer): void {
  if (status === 200 && fields["content-type"] === contentTypeUnaryProto && fields["content-encoding"] === undefined)
    return;
  const header = toHeaders(fields);
  const { isUnaryError, unaryError } = validateResponseWithCompression("unary", [], true, status, header);
  if (isUnaryError) throw errorFromJsonBytes(body, header, unaryError);
}

/** Header and trailer of an answer, made when somebody looks at them, which hardly anybody does. */
export class AnswerHead {
  readonly #fields: IncomingHttpHeaders;
  #made: readonly [Headers, Headers] | undefined;

  constructor({ fields }: WholeAnswer) {
    this.#fields = fields;
  }

  get header(): Headers {
    return this.#parts()[0];
  }

  get trailer(): Headers {
    return this.#parts()[1];
  }

  #parts(): readonly [Headers, Headers] {
    return (this.#made ??= trailerDemux(toHeaders(this.#fields)));
  }
}
