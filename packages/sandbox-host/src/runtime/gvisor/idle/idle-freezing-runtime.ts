import { replaceMembers } from "@turnbox/core";
import type { Runtime } from "../../runtime.ts";
import type { IdleFreezer } from "./idle-freezer.ts";

export interface IdleFreezingOptions {
  readonly idle: IdleFreezer;
  /** Whether the processes that a container lives by are there, and what its own record says of it. */
  readonly liveness: Runtime["liveness"];
}

/**
 * A runtime whose containers are awake while they are used. What is known of a frozen one is returned without a thaw:
 * services that ask about all their sessions from time to time would keep all of them awake.
 */
export function createIdleFreezingRuntime(inner: Runtime, options: IdleFreezingOptions): Runtime {
  const { idle } = options;
  return replaceMembers(inner, {
    ...thatUse(inner, idle),
    ...thatLook(inner, options),
    // It is ended while it is frozen: hundreds that are destroyed at once would all be awake while they wait for their turn.
    stop: async (id, call) => {
      await inner.stop(id, call);
      idle.forget(id);
    },
    close: async (call) => {
      idle.close();
      await inner.close(call);
    },
  });
}

/** The members for which a container is awake, and which count as its use. */
function thatUse(inner: Runtime, idle: IdleFreezer): Partial<Runtime> {
  const { prewarm } = inner;
  const awake = async <Result>(id: string, work: () => Promise<Result>): Promise<Result> => {
    using _held = await idle.hold(id);
    return await work();
  };
  /** Holds until what was begun has ended. */
  const awakeUntilExit = async <Begun extends { readonly exit: Promise<unknown>; kill(): Promise<void> }>(
    id: string,
    begin: () => Promise<Begun>,
  ): Promise<Begun> => {
    const held = await idle.hold(id);
    const letGo = (): void => {
      held[Symbol.dispose]();
    };
    try {
      const begun = await begin();
      void begun.exit.then(letGo, letGo);
      return { ...begun, kill: () => awake(id, () => begun.kill()) };
    } catch (thrown) {
      letGo();
      throw thrown;
    }
  };
  return {
    start: (spec, call) => awake(spec.id, () => inner.start(spec, call)),
    exec: (id, spec, call) => awakeUntilExit(id, () => inner.exec(id, spec, call)),
    spawn: (id, spec, call) => awake(id, () => inner.spawn(id, spec, call)),
    signal: (id, process, spec, call) => awake(id, () => inner.signal(id, process, spec, call)),
    openTerminal: (id, spec, size, call) => awakeUntilExit(id, () => inner.openTerminal(id, spec, size, call)),
    quiesce: (id, call) => awake(id, () => inner.quiesce(id, call)),
    pause: (id, call) => awake(id, () => inner.pause(id, call)),
    resume: (id, call) => awake(id, () => inner.resume(id, call)),
    ...(prewarm && {
      prewarm: replaceMembers(prewarm, {
        anticipate: (id, spec, call) => awake(id, () => prewarm.anticipate(id, spec, call)),
      }),
    }),
  };
}

/** The members that look at a container, which does not count as its use. */
function thatLook(inner: Runtime, { idle, liveness }: IdleFreezingOptions): Partial<Runtime> {
  const looking = async <Result>(id: string, look: () => Promise<Result>): Promise<Result> => {
    using _held = await idle.look(id);
    return await look();
  };
  return {
    inspect: (id, process, call) => looking(id, () => inner.inspect(id, process, call)),
    liveness: async (id, call) => {
      if (idle.frozenProcesses(id) !== undefined) return await liveness(id, call);
      return await looking(id, () => inner.liveness(id, call));
    },
    processes: async (id, call) => {
      const frozen = idle.frozenProcesses(id);
      if (frozen !== undefined && (await liveness(id, call)) !== "gone") return frozen;
      return await looking(id, () => inner.processes(id, call));
    },
    stats: (id, call) => looking(id, () => inner.stats(id, call)),
  };
}
