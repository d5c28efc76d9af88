import type { Invocation } from "../invocation.ts";
import type { OutputOptions } from "../option.ts";
import { createSpinner, type Spinner } from "./spinner.ts";

const SILENT: Spinner = { say: () => undefined, [Symbol.dispose]: () => undefined };

export interface Work<T> {
  /** What is being done, as in `making a sandbox`. */
  readonly text: string;
  readonly options: OutputOptions;
  readonly work: (spinner: Spinner) => Promise<T>;
}

/** Does work that may take a while; on a terminal stderr says so until it ends. Under `--json` nothing is shown. */
export async function whileWorking<T>({ text, options, work }: Work<T>, invocation: Invocation): Promise<T> {
  const { stderr: stream, clock, environment } = invocation.surroundings;
  const { charset } = environment;
  using spinner =
    options.json === true ? SILENT : createSpinner({ stream, clock, signal: invocation.signal, charset, text });
  return await work(spinner);
}
