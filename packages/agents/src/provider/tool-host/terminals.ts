import { type CallOptions, SandboxError } from "@turnbox/client";
import { randomToken } from "@turnbox/client/internal";
import { createOutputTail, type OutputTail } from "../launch/output-tail.ts";
import { orAborted } from "../launch/stop-gently.ts";
import { TERMINAL_OUTPUT_BYTES, type TerminalExit, type TerminalSpec, type ToolHost } from "./tool-host.ts";

/** A command that a terminal shows. */
export interface TerminalCommand {
  /** Both streams, as they come; ends with the command. */
  readonly output: AsyncIterable<{ readonly data: Uint8Array; readonly droppedBytes: number }>;
  /** Resolves when the command has ended. */
  readonly exit: Promise<TerminalExit>;
  kill(options?: CallOptions): Promise<void>;
}

export type CommandSpec = Required<Pick<TerminalSpec, "command" | "args" | "env" | "cwd">>;
export type StartCommand = (spec: CommandSpec, options: CallOptions) => Promise<TerminalCommand>;

/** The terminals of one tool host, with ids of its own. */
export type Terminals = Pick<
  ToolHost,
  "killTerminal" | "releaseTerminal" | "terminalOutput" | "waitForTerminalExit" | typeof Symbol.asyncDispose
> & { create(spec: CommandSpec & Pick<TerminalSpec, "outputByteLimit">, options: CallOptions): Promise<string> };

interface Terminal {
  readonly command: TerminalCommand;
  readonly tail: OutputTail;
  /** Resolves when the command has ended and its output was read. */
  readonly ended: Promise<TerminalExit>;
  exit: TerminalExit | undefined;
}

/** Terminals of one host that were not released, ended ones included. */
const MAX_TERMINALS = 64;
/** However much is asked for, no terminal keeps more. */
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
const ID_CHARS = 12;

export function createTerminals(start: StartCommand): Terminals {
  const terminals = new Map<string, Terminal>();
  let starting = 0;

  const find = (id: string): Terminal => {
    const terminal = terminals.get(id);
    if (terminal !== undefined) return terminal;
    throw new SandboxError("PROCESS_NOT_FOUND", `there is no terminal ${id}`, { metadata: { terminalId: id } });
  };

  const release = async (id: string, options?: CallOptions): Promise<void> => {
    const { command, exit } = find(id);
    terminals.delete(id);
    if (exit === undefined) await command.kill(options);
  };

  return {
    create: async (spec, options) => {
      if (terminals.size + starting >= MAX_TERMINALS)
        throw new SandboxError("OVERLOADED", `${MAX_TERMINALS} terminals are open; release some`);
      starting += 1;
      try {
        const limitBytes = Math.min(spec.outputByteLimit ?? TERMINAL_OUTPUT_BYTES, MAX_OUTPUT_BYTES);
        const id = `term_${randomToken(ID_CHARS)}`;
        terminals.set(id, open(await start(spec, options), limitBytes));
        return id;
      } finally {
        starting -= 1;
      }
    },
    killTerminal: async (id, options) => {
      const { command, exit } = find(id);
      if (exit === undefined) await command.kill(options);
    },
    terminalOutput: async (id) => {
      const { tail, exit } = find(id);
      return { output: tail.text(), truncated: tail.truncated, exit };
    },
    waitForTerminalExit: async (id, { signal } = {}) => await orAborted(find(id).ended, signal),
    releaseTerminal: release,
    [Symbol.asyncDispose]: async () => {
      const results = await Promise.allSettled([...terminals.keys()].map((id) => release(id)));
      const failed = results.find((result) => result.status === "rejected");
      if (failed !== undefined) throw SandboxError.from(failed.reason);
    },
  };
}

function open(command: TerminalCommand, limitBytes: number): Terminal {
  const tail = createOutputTail(limitBytes);
  const readAll = async (): Promise<void> => {
    for await (const { data, droppedBytes } of command.output) {
      tail.skip(droppedBytes);
      tail.add(data);
    }
  };
  const ended = Promise.all([command.exit, readAll()]).then(([exit]) => {
    terminal.exit = exit;
    return exit;
  });
  // Rejects for callers that wait; there may be none.
  ended.catch(() => undefined);
  const terminal: Terminal = { command, tail, ended, exit: undefined };
  return terminal;
}
