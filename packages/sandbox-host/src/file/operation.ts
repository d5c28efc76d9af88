import type { Walk } from "./walk.ts";

/** A piece of work that a file worker does for the service; see `file-operations.ts`. */
export type Operation<Input, Output> = (context: OperationContext, input: Input) => Output | Promise<Output>;

export interface OperationContext {
  /** Starts at the session's root. Everything that it opened is closed after the job. */
  readonly walk: Walk;
  /** Sends bytes (at most `MAX_BODY_BYTES`) ahead of the output, with a description of them. Blocks until they are taken. */
  send(bytes: Uint8Array, about?: unknown): void;
  /** The bytes of the job's body. Blocks for the next ones; throws `CANCELLED` if they break off. */
  body(): Iterable<Buffer>;
}

export type AnyOperation = Operation<never, unknown>;
export type OperationTable = Readonly<Record<string, AnyOperation>>;

declare const SERVED_BY: unique symbol;

/** The name of an operation of another room, with its types. */
export type ForeignOperation<Op extends AnyOperation> = string & { readonly [SERVED_BY]: Op };

/**
 * Names an operation that another room has. Only the worker's program imports its code, so neither this room nor the
 * caller depends on it:
 *
 *     const TEXT_TOOL = operationName<typeof textTool>("textTool");
 *     await workers.run(TEXT_TOOL, { root, input }, { signal });
 */
export function operationName<Op extends AnyOperation>(name: string): ForeignOperation<Op> {
  return name as ForeignOperation<Op>;
}
