/** What a thread sends to the one that owns its database. */
export type Request =
  | { readonly kind: "call"; readonly id: number; readonly name: string; readonly input: unknown }
  /** Ends the thread, after everything that was sent before. */
  | { readonly kind: "close" };

/** What the thread of a database sends. The first one says whether the database can be used. */
export type Answer =
  | { readonly kind: "opened" }
  | { readonly kind: "refused"; readonly failure: ThreadFailure }
  | { readonly kind: "result"; readonly id: number; readonly output: unknown }
  | { readonly kind: "failed"; readonly id: number; readonly failure: ThreadFailure };

/** What crosses of an error. */
export interface ThreadFailure {
  /** The name of its class: "Error" unless it has another one. */
  readonly name: string;
  readonly message: string;
}

export const toFailure = (thrown: unknown): ThreadFailure =>
  thrown instanceof Error ? { name: thrown.name, message: thrown.message } : { name: "Error", message: String(thrown) };
