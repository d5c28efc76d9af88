import {
  type CommandResult,
  type CommandRunner,
  type CommandSpec,
  createChildCommandRunner,
  type RunningCommand,
  type RunSpec,
} from "@turnbox/core";
import { DEFAULT_MAX_OUTPUT_BYTES, onceNotBusy, SYSTEM_PATH } from "@turnbox/core/command";
import { takeStdio } from "../fifo/fifo-stdio.ts";
import { FifoSupply } from "../fifo/fifo-supply.ts";
import type { Helper } from "../helper/helper.ts";
import { runByHelper } from "./run-by-helper.ts";

export interface HostCommandRunnerOptions {
  /** The PATH that programs are looked up in and given. Default `SYSTEM_PATH`. */
  readonly path?: string;
  /** Runs programs that go to their end without input, for as long as it lives. By default they are children of this process. */
  readonly helper?: Helper;
}

interface CallOptions {
  readonly signal?: AbortSignal;
}

/** Runs programs as children of this process or of its helper process, on fifos if they ask for them. Disposal closes the fifos in store. */
export class HostCommandRunner implements CommandRunner, AsyncDisposable {
  readonly #path: string;
  readonly #helper: Helper | undefined;
  readonly #fifos: FifoSupply;
  readonly #children: CommandRunner;

  constructor({ path = SYSTEM_PATH, helper }: HostCommandRunnerOptions = {}) {
    this.#path = path;
    this.#helper = helper;
    this.#fifos = new FifoSupply({ path, ...(helper && { helper }) });
    this.#children = createChildCommandRunner({ path, takeFifos: () => takeStdio(this.#fifos) });
  }

  async start(spec: CommandSpec, options?: CallOptions): Promise<RunningCommand> {
    return await this.#children.start(spec, options);
  }

  async run(spec: RunSpec, options: CallOptions = {}): Promise<CommandResult> {
    const helper = spec.stdin === undefined && spec.stdio !== "fifos" ? this.#helper : undefined;
    const byHelper = helper && (await this.#runByHelper(helper, spec, options.signal));
    return byHelper ?? (await this.#children.run(spec, options));
  }

  async #runByHelper(
    helper: Helper,
    spec: RunSpec,
    signal: AbortSignal | undefined,
  ): Promise<CommandResult | undefined> {
    const env = { PATH: this.#path, ...spec.env };
    const maxOutputBytes = spec.maxOutputBytes ?? DEFAULT_MAX_OUTPUT_BYTES;
    return await onceNotBusy(async () => {
      signal?.throwIfAborted();
      return await runByHelper(helper, { spec, env, maxOutputBytes, signal });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#fifos[Symbol.asyncDispose]();
  }
}
