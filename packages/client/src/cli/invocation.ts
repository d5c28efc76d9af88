import { resolveServer, type ServerFlags } from "../config.ts";
import type { Endpoint } from "../connection.ts";
import { connectHost, connectTurnbox, type HostClients, type TurnboxClients } from "../client.ts";
import { createOutput, type Output } from "./output.ts";
import type { Surroundings } from "./surroundings.ts";

/** One run of the command line, as a verb sees it. */
export interface Invocation {
  readonly surroundings: Surroundings;
  /** Aborted by Ctrl-C; every call that a verb makes takes it. */
  readonly signal: AbortSignal;
  output(options: { readonly json?: boolean }): Output;
  /** Connects to the server that the options and the environment name. The verb disposes of it. */
  server(options: ServerFlags): Promise<TurnboxClients>;
  /** Connects to the host that holds a sandbox. The verb disposes of it. */
  host(endpoint: Endpoint): HostClients;
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
    server: async (options) =>
      await Promise.resolve(connectTurnbox({ ...resolveServer(options, surroundings.environment), connect })),
    host: (endpoint) => connectHost({ ...endpoint, connect }),
    exitWith: (code) => {
      exitCode = code;
    },
    exitCode: () => exitCode,
  };
}
