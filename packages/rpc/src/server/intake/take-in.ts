import type { DescMethod } from "@bufbuild/protobuf";
import type { ContextValues } from "@connectrpc/connect";
import { SandboxError } from "@turnbox/core";
import { toConnectError } from "../../wire/connect-error.ts";
import { requestIdOf } from "../call-context.ts";
import { permitOf } from "../request-gate.ts";
import { maxRequestBytes } from "../method-size.ts";
import { EnvelopedBody } from "./enveloped-body.ts";
import type { LargeTurns } from "./large-turns.ts";
import { MessageCheck } from "./message-check.ts";
import { WholeBody } from "./whole-body.ts";

export interface Arriving {
  readonly method: DescMethod;
  /** Those that say how long the body is and how it is compressed are taken out. */
  readonly header: Headers;
  readonly values: ContextValues;
  readonly body: AsyncIterable<Uint8Array>;
  /** Aborts when the caller is gone. */
  readonly caller: AbortSignal;
}

export interface IntakeLimits {
  /** The most bytes of a message, whatever its method takes. */
  readonly maxMessageBytes: number;
  readonly turns: LargeTurns;
}

const ENVELOPED = /^application\/(?:connect|grpc)/i;
const NUMBER = /^\d{1,15}$/;

/**
 * The body of a request for the protocol layer, held to the bounds of its method: each message is counted to its caller while it
 * arrives, bounded in bytes, values and depth, decompressed and known to decode before it is parsed. Nothing is read before the
 * gate has let the call in.
 */
export function takeIn(arriving: Arriving, { maxMessageBytes, turns }: IntakeLimits): AsyncIterable<Uint8Array> {
  const { method, header, values, body, caller } = arriving;
  const type = header.get("content-type") ?? "";
  const check = new MessageCheck({
    method,
    form: /json/i.test(type) ? "json" : "binary",
    maxBytes: Math.min(maxRequestBytes(method), maxMessageBytes),
    turns,
    permit: () => permitOf(values),
  });
  if (!ENVELOPED.test(type)) {
    const options = { check, promisedBytes: takeLength(header), encoding: takeEncoding(header) };
    return answerable(() => new WholeBody(body, options), values);
  }
  const named = header.get("connect-content-encoding") ?? header.get("grpc-encoding");
  const options = { check, caller, encoding: named === "gzip" ? "gzip" : "none" } as const;
  return answerable(() => new EnvelopedBody(body, options), values);
}

/** What the body is compressed with, which the protocol layer need not know then. It refuses what is not known here. */
function takeEncoding(header: Headers): "gzip" | "none" {
  if (header.get("content-encoding") !== "gzip") return "none";
  header.delete("content-encoding");
  return "gzip";
}

/** The length that a body is said to have. The protocol layer, if it knew, would set aside the memory before anything has come. */
function takeLength(header: Headers): number | undefined {
  const length = header.get("content-length");
  header.delete("content-length");
  return length !== null && NUMBER.test(length) ? Number(length) : undefined;
}

type Messages = Required<Pick<AsyncIterator<Uint8Array>, "next" | "return">>;

/** The protocol layer returns errors of its own kind only. */
function answerable(open: () => Messages, values: ContextValues): AsyncIterable<Uint8Array> {
  const translated = (thrown: unknown): never => {
    throw thrown instanceof SandboxError ? toConnectError(thrown, requestIdOf({ values })) : thrown;
  };
  return {
    [Symbol.asyncIterator]: () => {
      const messages = open();
      return { next: () => messages.next().catch(translated), return: () => messages.return() };
    },
  };
}
