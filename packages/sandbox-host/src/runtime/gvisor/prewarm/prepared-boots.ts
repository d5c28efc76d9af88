import { hasReason, randomToken } from "@turnbox/core";
import type { ContainerSpec } from "../../runtime.ts";
import { bootContainer } from "../container/boot.ts";
import type { GvisorContext } from "../context.ts";
import { type BootLoad, createBootLoad } from "./boot-load.ts";
import { bootSpare, freezeSpare, makeSpareImage, removeSpare, thawSpare } from "./spare-sandbox.ts";
import { createSpares, type Spares } from "./spares.ts";

const REMOVE_DEADLINE_MS = 10_000;
/** As long as the ids of containers: runsc matches ids by prefix. */
const SPARE_ID_CHARS = 16;

/** Boots containers, those that a caller waits for in a spare sandbox if one fits. */
export class PreparedBoots {
  readonly #context: GvisorContext;
  readonly #load: BootLoad;
  #spares: Spares | undefined;

  constructor(context: GvisorContext) {
    this.#context = context;
    this.#load = createBootLoad(context.clock);
  }

  /** Has spares made from now on, if the machine can. */
  async open(signal: AbortSignal): Promise<void> {
    if (await makeSpareImage(this.#context, signal)) this.#spares ??= this.#createSpares();
  }

  /** Ends the spare, and makes no more. */
  async close(): Promise<void> {
    await this.#spares?.close();
    this.#spares = undefined;
  }

  /** Settles when no caller waits for a boot. */
  async calm(call?: { readonly signal: AbortSignal }): Promise<void> {
    await this.#load.calm(call);
  }

  async boot(spec: ContainerSpec, signal: AbortSignal): Promise<void> {
    await bootContainer(this.#context, spec, { signal });
  }

  /** Boots a container that a caller waits for, and expects another one like it. */
  async bootAwaited(spec: ContainerSpec, signal: AbortSignal): Promise<void> {
    await this.#load.run(async () => {
      const sandboxId = this.#spares?.take(spec);
      if (sandboxId === undefined || !(await this.#bootedIn(sandboxId, spec, signal))) await this.boot(spec, signal);
    });
    this.#spares?.expect(spec);
  }

  /** Whether the container runs in the spare; if not, nothing of either is left. */
  async #bootedIn(sandboxId: string, spec: ContainerSpec, signal: AbortSignal): Promise<boolean> {
    try {
      thawSpare(this.#context, sandboxId);
      await bootContainer(this.#context, spec, { signal, sandboxId });
      return true;
    } catch (thrown) {
      await removeSpare(this.#context, sandboxId, AbortSignal.timeout(REMOVE_DEADLINE_MS));
      signal.throwIfAborted();
      if (!hasReason(thrown, "RUNTIME_UNAVAILABLE")) throw thrown;
      return false;
    }
  }

  #createSpares(): Spares {
    const context = this.#context;
    return createSpares({
      newId: () => randomToken(SPARE_ID_CHARS),
      boot: async (id, { hostname, limits }, signal) => {
        await bootSpare(context, id, { shape: { hostname, limits: { ...context.defaultLimits, ...limits } }, signal });
      },
      freeze: (id, isReady) => freezeSpare(context, id, isReady),
      remove: (id) => removeSpare(context, id, AbortSignal.timeout(REMOVE_DEADLINE_MS)),
      calm: (call) => this.#load.calm(call),
      clock: context.clock,
    });
  }
}
