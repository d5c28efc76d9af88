/** What crosses between the main thread and the database's worker. */
export interface Request {
  readonly id: number;
  readonly name: string;
  readonly input: unknown;
}

export type Answer =
  | { readonly id: number; readonly output: unknown }
  | { readonly id: number; readonly error: string };

/** The request that ends the thread, after everything before it. */
export const CLOSE = "close";

/** Says that the log of the database has grown by what others wrote; there is no answer. */
export const TEND = "tend";
