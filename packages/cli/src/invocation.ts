import { resolveServer, type ServerFlags } from "@turnbox/client/internal";
import { Turnbox } from "@turnbox/client";
import { createOutput, type Output } from "./output.ts";
import type { Surroundings } from "./surroundings.ts";

/** One run of the command line, as a verb sees it. */
export interface Invocation {
  readonly surroundings: Surroundings;
  /** Aborted by Ctrl-C; every call that a verb makes takes it. */
  readonly signal: AbortSignal;
  output(options: { readonly json?: boolean }): Output;
  /** The library, on the server that the options and the environment name. The verb disposes of it, and with it of all handles. */
  turnbox(options: ServerFlags): Turnbox;
  /** The exit code of a verb that ends without an error; 0 unless set. */
  exitWith(exitCode: number): void;
}

export interface RunningInvocation extends Invocation {
  readonly exitCode: () => number;
}

export function createInvocation(surroundings: Surroundings): RunningInvocation {
  let exitCode = 0;
  const { connect } = surroundings;
  return {
    surroundings,
    signal: surroundings.interrupts.signal,
    output: ({ json }) => createOutput(surroundings, json === true ? "json" : "text"),
    turnbox: (options) => {
      const endpoint = resolveServer(options, surroundings.environment);
      return Turnbox.connect({ ...endpoint, connect, clock: surroundings.clock, env: {} });
    },
    exitWith: (code) => {
      exitCode = code;
    },
    exitCode: () => exitCode,
  };
}
